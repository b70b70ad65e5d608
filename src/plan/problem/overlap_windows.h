// `Windows` divides the schedule into overlap windows, one for each block of the
// graph and phase. An overlappable transfer overlaps with the compute of one
// window. The program issues it when that window begins, and waits for it when
// the window ends:
//
//   windows     ... | layer 4     | layer 5      | ... (forward)
//   gather            issued        read                one window ahead
//   windows     ... | layer 5     | layer 4      | ... (backward)
//   reduction         produced      issued, done        one window later
//
// A window takes as long as its compute or as its overlappable transfers,
// whichever is longer. Collectives in line add their time.
//
// A window is a run of slots. The blocks of the forward phase are in order, then
// those of the backward phase in reverse. If nodes of two blocks alternate in
// the schedule, the window of the later block begins at the slot that leaves the
// fewest nodes in the window of another block.
#pragma once

#include "base/index.h"
#include "graph/analysis/blocks.h"

#include <shardprop/graph/graph.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace shardprop {

class Windows {
 public:
  // One window with this number of nodes.
  explicit Windows(std::size_t nodes = 0)
      : of_slot_(nodes + 1, 0), begins_{0}, classes_{0} {}
  Windows(const Graph& graph, const Blocks& blocks);

  // There is at least one window.
  std::size_t size() const { return begins_.size(); }
  // Returns the window of `slot`, which is at most the number of nodes: the
  // slot of the end, which belongs to the last window.
  std::size_t at(std::int64_t slot) const { return of_slot_[index(slot)]; }
  // Returns the first and the last slot of a window.
  std::int64_t first_slot(std::size_t window) const { return begins_[window]; }
  std::int64_t last_slot(std::size_t window) const {
    return window + 1 < size() ? begins_[window + 1] - 1
                               : static_cast<std::int64_t>(of_slot_.size()) - 1;
  }
  // Windows of one class have equal blocks in one phase.
  std::size_t class_of(std::size_t window) const { return classes_[window]; }

  // Returns the window that a gather overlaps if it is first read in `slot`: the
  // window before. Empty in the first window.
  std::optional<std::size_t> of_gather(std::int64_t slot) const;
  // Returns the window that a reduction overlaps if its source is produced just
  // before `slot`: the window after that of the producer. Empty if the producer
  // is in the last window.
  std::optional<std::size_t> of_reduction(std::int64_t slot) const;

 private:
  std::vector<std::uint32_t> of_slot_;
  std::vector<std::int64_t> begins_;  // by window
  std::vector<std::size_t> classes_;  // by window
};

}  // namespace shardprop
