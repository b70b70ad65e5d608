// Lists the elements of a tensor that a rank holds.
#pragma once

#include <shardprop/placement/local_region.h>

#include <cstdint>
#include <vector>

namespace shardprop::execute {

// Returns row-major indices in the full tensor, in the order in which the rank
// holds them.
inline std::vector<std::int64_t> elements_of(const LocalRegion& region,
                                             const Dims& whole) {
  if (region.empty()) return {};
  std::vector<std::int64_t> at = {0};
  for (std::size_t d = 0; d < whole.size(); ++d) {
    std::vector<std::int64_t> next;
    for (const std::int64_t base : at) {
      for (const Interval& run : region.dims()[d]) {
        for (std::int64_t i = run.begin; i < run.end; ++i) {
          next.push_back(base * whole[d] + i);
        }
      }
    }
    at = std::move(next);
  }
  return at;
}

}  // namespace shardprop::execute
