// Windows of the schedule: what is hideable hides behind the compute of its own
// window, and behind no other.
#pragma once

#include <shardprop/graph/graph.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/index.h"

namespace shardprop {

// Stretches of nodes of one phase; what is moved behind the last node belongs
// to the last window. At least one.
class Windows {
 public:
  explicit Windows(const Graph& graph);

  std::size_t size() const { return size_; }
  // `slot` up to the number of nodes, which stands for the end.
  std::size_t at(std::int64_t slot) const { return of_slot_[index(slot)]; }

 private:
  std::size_t size_ = 1;
  std::vector<std::uint32_t> of_slot_;
};

}  // namespace shardprop
