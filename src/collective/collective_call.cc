#include <shardprop/collective/collective_call.h>

#include <shardprop/base/error.h>

#include <algorithm>

namespace shardprop {
namespace {

std::int64_t message_bytes(const Message& message) {
  std::int64_t bytes = 0;
  for (const LocalTensor& piece : message.pieces) bytes += piece.bytes();
  return bytes;
}

// Returns the bytes of the largest shard of each of the T tensors, summed over
// T.
std::int64_t largest_shards(const std::vector<LocalTensor>& shards,
                            std::int64_t ranks) {
  std::int64_t bytes = 0;
  for (std::size_t t = 0; t < shards.size();
       t += static_cast<std::size_t>(ranks)) {
    std::int64_t largest = 0;
    for (std::size_t r = 0; r < static_cast<std::size_t>(ranks); ++r) {
      largest = std::max(largest, shards[t + r].bytes());
    }
    bytes += largest;
  }
  return bytes;
}

std::int64_t sent_to_others(const CollectiveCall& call, std::int64_t ranks,
                            std::int64_t index) {
  std::int64_t all = 0;
  std::int64_t largest = 0;
  for (const Message& message : call.sends) {
    const std::int64_t bytes = message_bytes(message);
    largest = std::max(largest, bytes);
    if (message.peer != index) all += bytes;
  }
  return call.padded ? (ranks - 1) * largest : all;
}

}  // namespace

std::int64_t payload_bytes(const CollectiveCall& call, std::int64_t ranks,
                           std::int64_t index) {
  switch (call.kind) {
    case CollectiveKind::kAllGather:
      return (ranks - 1) * largest_shards(call.outputs, ranks);
    case CollectiveKind::kReduceScatter:
      return (ranks - 1) * largest_shards(call.inputs, ranks);
    case CollectiveKind::kAllReduce: {
      std::int64_t bytes = 0;
      for (const LocalTensor& input : call.inputs) {
        bytes += 2 * (ranks - 1) * ((input.numel() + ranks - 1) / ranks) *
                 item_size(input.dtype());
      }
      return bytes;
    }
    case CollectiveKind::kBroadcast: {
      std::int64_t bytes = 0;
      if (ranks == 1) return bytes;
      for (const LocalTensor& input : call.inputs) bytes += input.bytes();
      return bytes;
    }
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kPermute:
    case CollectiveKind::kSendRecv:
      return sent_to_others(call, ranks, index);
    case CollectiveKind::kSlice:
      return 0;
  }
  throw InternalError("a collective kind outside its enumeration");
}

std::string to_string(const CollectiveCall& call) {
  std::string out(to_string(call.kind));
  if (call.kind == CollectiveKind::kAllReduce ||
      call.kind == CollectiveKind::kReduceScatter) {
    out += '(';
    out += to_string(call.op);
    out += ')';
  }
  if (call.kind == CollectiveKind::kBroadcast) {
    out += " from index " + std::to_string(call.root);
  }
  const std::vector<LocalTensor>& shown =
      call.kind == CollectiveKind::kBroadcast ? call.outputs : call.inputs;
  for (std::size_t i = 0; i < std::min<std::size_t>(shown.size(), 3); ++i) {
    out += (i == 0 ? " of " : ", ") + to_string(shown[i]);
  }
  if (shown.size() > 3) {
    out += " and " + std::to_string(shown.size() - 3) + " more";
  }
  std::size_t messages = 0;
  std::int64_t bytes = 0;
  for (const Message& message : call.sends) {
    ++messages;
    bytes += message_bytes(message);
  }
  if (messages > 0) {
    out += " of " + std::to_string(messages) + " messages, " +
           std::to_string(bytes) + " bytes";
  }
  if (!call.where.empty()) out += " (" + call.where + ")";
  return out;
}

}  // namespace shardprop
