#include "collective/call_record.h"

#include <shardprop/base/error.h>
#include <shardprop/base/hash.h>

#include "collective/call_check.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace shardprop::collective {
namespace {

std::size_t with_tensor(std::size_t seed, const LocalTensor& tensor) {
  return hash_range(hash_mix(seed, static_cast<std::size_t>(tensor.dtype())),
                    tensor.sizes());
}

// The hash of the part of a call that is equal on all members.
std::size_t common_hash(const CollectiveCall& call) {
  std::size_t hash = hash_mix(0, static_cast<std::size_t>(call.kind));
  const auto add = [&hash](const std::vector<LocalTensor>& tensors) {
    hash = hash_mix(hash, tensors.size());
    for (const LocalTensor& tensor : tensors) hash = with_tensor(hash, tensor);
  };
  switch (call.kind) {
    case CollectiveKind::kAllGather:
      add(call.outputs);
      break;
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllReduce:
      hash = hash_mix(hash, static_cast<std::size_t>(call.op));
      add(call.inputs);
      break;
    case CollectiveKind::kBroadcast:
      hash = hash_mix(hash, static_cast<std::size_t>(call.root));
      add(call.outputs);
      break;
    default:
      break;
  }
  return hash;
}

std::uint64_t message_hash(const std::vector<Message>& messages,
                           std::int64_t peer) {
  const Message* message = find_message(messages, peer);
  if (message == nullptr) return 0;
  std::size_t hash = hash_mix(1, message->pieces.size());
  for (const LocalTensor& piece : message->pieces) {
    hash = with_tensor(hash, piece);
  }
  return hash;
}

}  // namespace

CallRecords call_records(const CollectiveCall& call,
                         const Group::Ranks& ranks) {
  CallRecords records = no_records(ranks);
  const std::string text = to_string(call);
  const std::uint64_t alike = common_hash(call);
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    CallRecord& record = (*records)[r];
    const auto peer = static_cast<std::int64_t>(r);
    record.alike = alike;
    record.gives = message_hash(call.sends, peer);
    record.takes = message_hash(call.receives, peer);
    std::memcpy(record.text, text.data(),
                std::min(text.size(), CallRecord::kText - 1));
  }
  return records;
}

CallRecords no_records(const Group::Ranks& ranks) {
  return std::make_shared<std::vector<CallRecord>>(ranks.size());
}

LocalTensor record_bytes(const CallRecords& records, std::size_t i) {
  return LocalTensor::wrap(&(*records)[i],
                           {static_cast<std::int64_t>(sizeof(CallRecord))},
                           DType::kU8, records);
}

Result<void> compare_records(const Group::Ranks& ranks, std::size_t me,
                             const std::vector<CallRecord>& mine,
                             const std::vector<CallRecord>& theirs) {
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    if (r == me) continue;
    const CallRecord& a = mine[r];
    const CallRecord& b = theirs[r];
    if (a.alike == b.alike && a.gives == b.takes && a.takes == b.gives) {
      continue;
    }
    const std::string i = "rank " + std::to_string(ranks[me]);
    const std::string other = "rank " + std::to_string(ranks[r]);
    return fail(Error{
        ErrorCode::kCollectiveMismatch,
        "ranks " + std::to_string(ranks[me]) + " and " +
            std::to_string(ranks[r]) + " call collectives that do not meet",
        {},
        {i + " calls " + a.text, other + " calls " + b.text},
        "all members of a group make the same calls in the same order"});
  }
  return {};
}

}  // namespace shardprop::collective
