// Windows divides the schedule into overlap windows. Overlappable transfers
// overlap the compute of their own window only.
#pragma once

#include <shardprop/graph/graph.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/index.h"

namespace shardprop {

// A window is a run of nodes of one phase. Transfers after the last node belong
// to the last window. There is at least one window.
class Windows {
 public:
  explicit Windows(const Graph& graph);

  std::size_t size() const { return size_; }
  // Returns the window of `slot`, which is at most the number of nodes: the
  // slot of the end.
  std::size_t at(std::int64_t slot) const { return of_slot_[index(slot)]; }

 private:
  std::size_t size_ = 1;
  std::vector<std::uint32_t> of_slot_;
};

}  // namespace shardprop
