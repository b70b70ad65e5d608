// CostPart is a part of a plan's cost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardprop {

struct CostPart {
  // `Load` is overlappable time less compute in one load of an overlap window
  // (window_loads.h).
  struct Load {
    std::size_t index = 0;
    std::int64_t nanoseconds = 0;
  };

  std::int64_t nanoseconds = 0;
  // Each load at most once; any other load is 0. A part has few loads, although
  // a graph may have a window per operator.
  std::vector<Load> loads;
  bool is_possible = true;

  void add_load(std::size_t index, std::int64_t added);
  void add(const CostPart& part);
  // Leaves is_possible as it is.
  void subtract(const CostPart& part);
};

}  // namespace shardprop
