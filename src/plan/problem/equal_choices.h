// `EqualChoices` groups the variables of a plan problem that choose alike.
//
//   layers.0.w, layers.1.w, layers.2.w    one group: their choices are equal
//   layers.0.w pinned to S(0)             {layers.0.w} {layers.1.w, layers.2.w}
//   relu, relu_again                      one group, with any --layers
//
// Counterparts in the equal blocks of a run (counterparts.h) are in one group
// with `--layers alike`, if they have the same choices. A pin, a forced
// strategy or a recipe may leave one of them other choices than the rest.
//
// Both runs of an operator (graph/recompute.h) are in one group if they have
// the same choices, as constraints/second_run_choices.h provides. Kernels of
// other shapes may round otherwise, and a mask of the maximum must find the
// maximum again.
#pragma once

#include "plan/problem/buffer.h"

#include <cstdint>
#include <span>
#include <vector>

namespace shardprop {

struct ProblemData;

class EqualChoices {
 public:
  // Every variable chooses alone.
  EqualChoices() = default;
  // The variables and buffers of `data` must be complete.
  explicit EqualChoices(const ProblemData& data);

  // Returns whether every variable chooses alone.
  bool empty() const { return first_.empty(); }
  // Returns whether counterparts in several blocks are in one group.
  bool have_layers() const { return !slots_.empty(); }
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
