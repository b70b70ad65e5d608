// PlanVariable is one decision of a plan problem. ChoiceSet lists its choices.
#pragma once

#include "plan/problem/buffer.h"

#include <shardprop/strategy/op_strategy.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace shardprop {

// ChoiceSet lists the choices of a variable. All variables with the same
// choices share it, so repeated layers are computed once.
struct ChoiceSet {
  // By operand, uses first, then outputs: the distinct layouts, in order of
  // first appearance (spec classes).
  std::vector<std::vector<LayoutId>> layouts;
  std::size_t num_uses = 0;
  // [choice * layouts.size() + operand]: index into layouts[operand].
  std::vector<std::uint32_t> picks;
  std::vector<std::int64_t> costs;  // by choice
  // Operators only, by choice: the part of its cost that is not collectives.
  std::vector<std::int64_t> compute;
  // Parameters with an optimizer only, by choice: the part of the gather after
  // the update that may overlap compute. `costs` excludes it.
  std::vector<std::int64_t> overlapped;
  // Parameters whose gradient is accumulated only, by choice: whether the
  // gradient is accumulated as it is produced and reduced once a step. If not,
  // it is reduced in each micro-batch and accumulated in the layout of the
  // optimizer's state.
  std::vector<bool> reduced_late;
  // Parameters with an optimizer only, by choice: the layout of its state.
  std::vector<LayoutId> state_layouts;
  // Operators only: choice i is op.strategies[i].
  OpStrategy op;
  std::string unsupported;  // why all replicated is the only strategy

  std::size_t size() const { return costs.size(); }
  std::size_t pick(std::size_t choice, std::size_t operand) const {
    return picks[choice * layouts.size() + operand];
  }
  LayoutId layout(std::size_t choice, std::size_t operand) const {
    return layouts[operand][pick(choice, operand)];
  }
};

// Returns whether choice i of both sets has the same layouts, for all i. Costs
// may differ: a first layer may share a kernel with the embedding.
inline bool have_same_choices(const ChoiceSet& a, const ChoiceSet& b) {
  return &a == &b ||
         (a.num_uses == b.num_uses && a.layouts == b.layouts &&
          a.picks == b.picks && a.state_layouts == b.state_layouts &&
          a.reduced_late == b.reduced_late);
}

struct PlanVariable {
  enum class Kind : std::uint8_t { kInput, kOperator, kOutput };
  Kind kind = Kind::kOperator;
  // Index of the input, node or output in the graph.
  std::size_t index = 0;
  std::shared_ptr<const ChoiceSet> choices;
  std::vector<ValueId> uses;  // the first operands of `choices`
  // By use: its index among the uses of its value's buffer.
  std::vector<std::uint32_t> use_places;
  std::vector<ValueId> makes;  // the others
};

// PlanValue describes a value of the graph, by ValueId.
struct PlanValue {
  PlanBufferId buffer;
  std::uint32_t place = 0;  // index among the values of its buffer
  // Equal for equal shapes, dtypes and `overlappable`. The dtype is that in which
  // the value is stored and moved: f32 for a gradient in mixed precision.
  std::uint32_t tensor = 0;
  // Whether its moves may overlap compute and share buckets: a parameter, or a
  // gradient on its way to an output.
  bool overlappable = false;
};

}  // namespace shardprop
