// `CollectiveKind` lists the data movements of plans, by the names that every
// output uses.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace shardprop {

enum class CollectiveKind : std::uint8_t {
  kAllGather,
  kReduceScatter,
  kAllReduce,
  kAllToAll,
  kSlice,  // local; sends no data
  kPermute,
  kBroadcast,
  kSendRecv,
};

inline constexpr CollectiveKind kAllCollectiveKinds[] = {
    CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
    CollectiveKind::kAllReduce, CollectiveKind::kAllToAll,
    CollectiveKind::kSlice,     CollectiveKind::kPermute,
    CollectiveKind::kBroadcast, CollectiveKind::kSendRecv};

// "all_gather", "reduce_scatter", "all_reduce", "all_to_all", "slice",
// "permute", "broadcast", "send_recv".
std::string_view to_string(CollectiveKind kind);
std::optional<CollectiveKind> parse_collective_kind(std::string_view text);

}  // namespace shardprop
