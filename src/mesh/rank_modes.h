// A strided rank layout is a list of modes (size, stride); the last mode is the
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

// Returns the index that has this offset. Ranks of a mesh are distinct and its
// strides are positive. If the modes do not interleave, taking the largest
// strides first finds the only candidate. If they interleave, mode_index()
// searches.
std::optional<std::int64_t> mode_index(const RankModes& modes,
                                       std::int64_t offset);

// Returns the modes without those of size 1; contiguous neighbours are merged.
RankModes coalesced(const RankModes& modes);

}  // namespace shardprop
