// Checked mode: what members tell each other of their calls before any data
// goes, and the comparison.
#pragma once

#include <shardprop/collective/collective_call.h>
#include <shardprop/collective/group.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace shardprop::collective {

// What one member tells another: what all must have alike, what the two must
// agree on, and its call in words.
struct CallRecord {
  static constexpr std::size_t kText = 232;
  std::uint64_t alike = 0;
  std::uint64_t gives = 0;  // to the reader
  std::uint64_t takes = 0;  // from the reader
  char text[kText] = {};
};

// One a member, by index.
using CallRecords = std::shared_ptr<std::vector<CallRecord>>;

CallRecords call_records(const CollectiveCall& call, const Group::Ranks& ranks);
// Room for those of the others.
CallRecords no_records(const Group::Ranks& ranks);
// The i-th as memory to send or receive.
LocalTensor record_bytes(const CallRecords& records, std::size_t i);

// Error: kCollectiveMismatch, naming this member and the first that differs.
Result<void> compare_records(const Group::Ranks& ranks, std::size_t me,
                             const std::vector<CallRecord>& mine,
                             const std::vector<CallRecord>& theirs);

}  // namespace shardprop::collective
