// In checked mode, members exchange descriptions of their calls and compare
// them before any data is sent.
#pragma once

#include <shardprop/collective/collective_call.h>
#include <shardprop/collective/group.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace shardprop::collective {

// `CallRecord` is the description of a call that one member sends another.
// `alike` must be equal on all members, `gives` must equal `takes` of the other
// member, and `text` is for messages.
struct CallRecord {
  static constexpr std::size_t kText = 232;
  std::uint64_t alike = 0;
  std::uint64_t gives = 0;  // to the reader
  std::uint64_t takes = 0;  // from the reader
  char text[kText] = {};
};

// One record per member, by index.
using CallRecords = std::shared_ptr<std::vector<CallRecord>>;

CallRecords call_records(const CollectiveCall& call, const Group::Ranks& ranks);
// Returns empty records, to receive the records of the other members.
CallRecords no_records(const Group::Ranks& ranks);
// Returns the i-th record as memory to send or receive.
LocalTensor record_bytes(const CallRecords& records, std::size_t i);

// Error: kCollectiveMismatch, which names this member and the first that
// differs.
Result<void> compare_records(const Group::Ranks& ranks, std::size_t me,
                             const std::vector<CallRecord>& mine,
                             const std::vector<CallRecord>& theirs);

}  // namespace shardprop::collective
