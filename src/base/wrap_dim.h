// wrapped_dim() converts a dim that is counted from the end.
#pragma once

#include <cstdint>
#include <optional>

namespace shardprop {

// Returns `dim` counted from the front: -1 is the last dim. Returns nullopt if
// a tensor of this rank has no such dim.
inline std::optional<int> wrapped_dim(std::int64_t dim, int rank) {
  if (dim < -rank || dim >= rank) return std::nullopt;
  return static_cast<int>(dim < 0 ? dim + rank : dim);
}

}  // namespace shardprop
