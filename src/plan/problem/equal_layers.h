// `EqualLayers` groups the variables of a plan problem that choose alike: the
// counterparts in the equal blocks of a run (graph/analysis/blocks.h).
//
//   layers.0.w, layers.1.w, layers.2.w    one group: their choices are equal
//   layers.0.w pinned to S(0)             {layers.0.w} {layers.1.w, layers.2.w}
//
// Counterparts are in one group if two conditions hold:
//   1. They have the same choices. A pin, a forced strategy or a recipe may
//      leave one of them other choices than the rest.
//   2. They are inputs or outputs of the graph, or operators with counterparts
//      as producers and as readers. An operator at the end of a run may read or
//      feed operators outside the run. It then chooses alone.
#pragma once

#include "plan/problem/buffer.h"

#include <cstdint>
#include <span>
#include <vector>

namespace shardprop {

struct ProblemData;

class EqualLayers {
 public:
  // Every variable chooses alone.
  EqualLayers() = default;
  // The variables and buffers of `data` must be complete.
  explicit EqualLayers(const ProblemData& data);

  // Returns whether every variable chooses alone.
  bool empty() const { return first_.empty(); }
  // Returns the first variable of the group; the variable itself if it chooses
  // alone.
  PlanVariableId first(PlanVariableId variable) const {
    return empty() ? variable : first_[variable.index()];
  }
  // Returns the slots of operators that are counterparts, in the order of their
  // blocks. There is a list for each position in the blocks of a run.
  std::span<const std::vector<std::int64_t>> counterpart_slots() const {
    return slots_;
  }
  // Returns whether the variables of each group have the same choice. `choices`
  // is indexed by PlanVariableId.
  bool are_alike(std::span<const std::uint32_t> choices) const;

 private:
  std::vector<PlanVariableId> first_;  // by variable
  std::vector<std::vector<std::int64_t>> slots_;
};

}  // namespace shardprop
