#include <shardprop/base/error.h>
#include <shardprop/mesh/collective_kind.h>

namespace shardprop {

std::string_view to_string(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllGather:
      return "all_gather";
    case CollectiveKind::kReduceScatter:
      return "reduce_scatter";
    case CollectiveKind::kAllReduce:
      return "all_reduce";
    case CollectiveKind::kAllToAll:
      return "all_to_all";
    case CollectiveKind::kSlice:
      return "slice";
    case CollectiveKind::kPermute:
      return "permute";
    case CollectiveKind::kBroadcast:
      return "broadcast";
    case CollectiveKind::kSendRecv:
      return "send_recv";
  }
  throw InternalError("a collective kind outside its enumeration");
}

std::optional<CollectiveKind> parse_collective_kind(std::string_view text) {
  for (const CollectiveKind kind : kAllCollectiveKinds) {
    if (to_string(kind) == text) return kind;
  }
  return std::nullopt;
}

}  // namespace shardprop
