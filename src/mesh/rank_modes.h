// Arithmetic of strided rank layouts: modes of (size, stride), the last one
// fastest.
#pragma once

#include <shardprop/mesh/rank_group.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace shardprop {

inline std::int64_t mode_count(const RankModes& modes) {
  std::int64_t count = 1;
  for (const RankMode& mode : modes) count *= mode.size;
  return count;
}

inline std::int64_t mode_offset(const RankModes& modes, std::int64_t index) {
  std::int64_t offset = 0;
  for (std::size_t i = modes.size(); i-- > 0;) {
    offset += index % modes[i].size * modes[i].stride;
    index /= modes[i].size;
  }
  return offset;
}

// The index whose offset it is. Ranks of a mesh are distinct and its strides
// positive, so taking the largest strides first finds the only candidate
// whenever modes do not interleave; when they do, it searches.
std::optional<std::int64_t> mode_index(const RankModes& modes,
                                       std::int64_t offset);

// Modes of size 1 dropped, and neighbours that run on merged.
RankModes coalesced(const RankModes& modes);

}  // namespace shardprop
