// PlanVariable is one decision of a plan problem, and ChoiceSet what it may
// choose from.
#pragma once

#include "plan/plan_storage.h"

#include <shardprop/strategy/op_strategy.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace shardprop {

// What a variable may choose from. Shared by all variables with the same
// choices: repeated layers are worked out once.
struct ChoiceSet {
  // Per operand, uses first, then what it makes: the distinct layouts, in order
  // of first appearance (spec classes).
  std::vector<std::vector<LayoutId>> layouts;
  std::size_t num_uses = 0;
  // [choice * layouts.size() + operand]: index into layouts[operand].
  std::vector<std::uint32_t> picks;
  std::vector<std::int64_t> costs;  // by choice
  // Operators only, by choice: the part of its cost that is not collectives.
  std::vector<std::int64_t> compute;
  // Parameters with an optimizer only, by choice: the part of the gather behind
  // the update that compute may hide; not in `costs`.
  std::vector<std::int64_t> hidden;
  // Parameters whose gradient is accumulated only, by choice: whether it is
  // added up as it is made and reduced once a step; else it is reduced for each
  // micro-batch and added up as its state lies.
  std::vector<bool> reduced_late;
  // Parameters with an optimizer only, by choice: how its state lies.
  std::vector<LayoutId> state_layouts;
  // Operators only: choice i is op.strategies[i].
  OpStrategy op;
  std::string unsupported;  // why it has no strategy but all replicated

  std::size_t size() const { return costs.size(); }
  std::size_t pick(std::size_t choice, std::size_t operand) const {
    return picks[choice * layouts.size() + operand];
  }
  LayoutId layout(std::size_t choice, std::size_t operand) const {
    return layouts[operand][pick(choice, operand)];
  }
};

struct PlanVariable {
  enum class Kind : std::uint8_t { kInput, kOperator, kOutput };
  Kind kind = Kind::kOperator;
  // Index of the input, node or output in the graph.
  std::size_t index = 0;
  std::shared_ptr<const ChoiceSet> choices;
  std::vector<ValueId> uses;  // the first operands of `choices`
  // By use: where it stands among the uses of its value's storage.
  std::vector<std::uint32_t> use_places;
  std::vector<ValueId> makes;  // the others
};

// A value of the graph, by ValueId.
struct PlanValue {
  PlanStorageId storage;
  std::uint32_t place = 0;  // among the values of its storage
  // Equal for equal shapes, dtypes and `hideable`. The dtype is that in which
  // the value is kept and moved: f32 for a gradient in mixed precision.
  std::uint32_t tensor = 0;
  // Moving it can hide behind compute, in buckets with others: a parameter, or
  // a gradient on its way out.
  bool hideable = false;
};

}  // namespace shardprop
