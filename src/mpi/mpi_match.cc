#include "mpi/mpi_match.h"

#include <shardprop/base/error.h>
#include <shardprop/base/hash.h>

#include "base/try.h"
#include "collective/call_check.h"
#include "mpi/mpi_collectives.h"

#include <cstring>
#include <memory>

namespace shardprop::mpi {
namespace {

// What one member tells another: what all must have alike, what the two must
// agree on, and its call in words.
struct Record {
  static constexpr std::size_t kText = 232;
  std::uint64_t alike = 0;
  std::uint64_t gives = 0;  // to the reader
  std::uint64_t takes = 0;  // from the reader
  char text[kText] = {};
};

std::size_t with_tensor(std::size_t seed, const LocalTensor& tensor) {
  return hash_range(hash_mix(seed, static_cast<std::size_t>(tensor.dtype())),
                    tensor.sizes());
}

// What all members have alike.
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
  const Message* message = collective::find_message(messages, peer);
  if (message == nullptr) return 0;
  std::size_t hash = hash_mix(1, message->pieces.size());
  for (const LocalTensor& piece : message->pieces) {
    hash = with_tensor(hash, piece);
  }
  return hash;
}

Record record_for(const CollectiveCall& call, std::int64_t peer) {
  Record record;
  record.alike = common_hash(call);
  record.gives = message_hash(call.sends, peer);
  record.takes = message_hash(call.receives, peer);
  const std::string text = to_string(call);
  std::memcpy(record.text, text.data(),
              std::min(text.size(), Record::kText - 1));
  return record;
}

LocalTensor as_bytes(const std::shared_ptr<std::vector<Record>>& records,
                     std::size_t i) {
  return LocalTensor::wrap(&(*records)[i],
                           {static_cast<std::int64_t>(sizeof(Record))},
                           DType::kU8, records);
}

}  // namespace

Result<void> post_matched(MpiOp& op) {
  const auto n = static_cast<std::size_t>(op.ranks());
  const auto me = static_cast<std::size_t>(op.group().index);
  auto mine = std::make_shared<std::vector<Record>>(n);
  auto theirs = std::make_shared<std::vector<Record>>(n);
  for (std::size_t r = 0; r < n; ++r) {
    const auto peer = static_cast<std::int64_t>(r);
    (*mine)[r] = record_for(op.call(), peer);
    if (r == me) continue;
    SP_CHECK(op.send(peer, as_bytes(mine, r)));
    SP_CHECK(op.receive(peer, as_bytes(theirs, r)));
  }
  op.then([mine, theirs, me](MpiOp& self) -> Result<void> {
    const Group::Ranks& ranks = self.group().ranks;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      if (r == me) continue;
      const Record& a = (*mine)[r];
      const Record& b = (*theirs)[r];
      if (a.alike == b.alike && a.gives == b.takes && a.takes == b.gives) {
        continue;
      }
      const std::string mine_is = "rank " + std::to_string(ranks[me]);
      const std::string other_is = "rank " + std::to_string(ranks[r]);
      return fail(Error{
          ErrorCode::kCollectiveMismatch,
          "ranks " + std::to_string(ranks[me]) + " and " +
              std::to_string(ranks[r]) + " call collectives that do not meet",
          {},
          {mine_is + " calls " + a.text, other_is + " calls " + b.text},
          "all members of a group make the same calls in the same order"});
    }
    return post_directly(self);
  });
  return {};
}

}  // namespace shardprop::mpi
