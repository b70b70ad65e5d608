// PlanProblem: a graph on a mesh as variables with choices.
//
// Variables
//   * a graph input chooses its layout: any that a consumer takes it in
//     (whole values, without strides), or R;
//   * an operator chooses one of its strategies;
//   * an output chooses among the whole layouts that its value is made in, or
//     R: nothing is handed back as a partial.
// Views that keep every element are no variables (plan_storage.h). A use is an
// operand of a variable: an operator's input, an output's value, and the ties
// of an input, whose gradient and update end in its own layout.
//
// A storage is held in the state that it is made in and in copies of it; which,
// and for how long, is part of an assignment (plan_assignment.h).
//
// The space of strategies is that of op_strategies() without empty shards, with
// strided shards on meshes of up to two dims larger than 1 only, and on meshes
// of more than three such dims in runs of neighbouring dims
// (StrategyOptions::most_assignments = 256). A strategy that carries a partial
// from an input to the output is in it only where an operator before this one
// makes that partial.
//
//   x: f32[16,8] -> mm(x, w) -> relu, on [2]
//     variables x w mm relu output, storages x w mm relu
#pragma once

#include "plan/plan_storage.h"
#include "plan/set_up.h"

#include <shardprop/base/result.h>
#include <shardprop/graph/graph.h>
#include <shardprop/mesh/topology.h>
#include <shardprop/ops/op_library.h>
#include <shardprop/plan/plan.h>
#include <shardprop/plan/plan_options.h>
#include <shardprop/plan/plan_space.h>
#include <shardprop/redistribute/planner.h>
#include <shardprop/strategy/op_cost.h>
#include <shardprop/strategy/op_strategy.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace shardprop {

class DimRoles;  // private to src/plan

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

class PlanProblem {
 public:
  // `graph` must outlive the problem. Errors: those of validate() and
  // check_topology(), kNoStrategy (options.strict), kPinMatchesNothing,
  // kPinDoesNotFit, kPinNoStrategy, kPinConflict, kProblemTooLarge, kStopped,
  // kOutOfMemory, kRedistributeMeshTooLarge (a tensor has too many layouts on
  // the mesh) and those of RedistributePlanner::create().
  static Result<PlanProblem> create(const Graph& graph, DeviceMesh mesh,
                                    Topology topology, const OpLibrary& library,
                                    const PlanOptions& options,
                                    const SetUp& set_up = {});
  PlanProblem(PlanProblem&&) noexcept;
  PlanProblem& operator=(PlanProblem&&) noexcept;
  ~PlanProblem();

  const Graph& graph() const;
  const DeviceMesh& mesh() const;
  const Topology& topology() const;
  const PlanOptions& options() const;
  const LayoutTable& layouts() const;
  // The recipes that fit the mesh and the graph, on the mesh.
  std::span<const Recipe> known_recipes() const;
  const DimRoles& roles() const;
  // What became of the pins.
  std::vector<PlanPin> pins() const;

  // Inputs first, then operators in schedule order, then outputs.
  std::span<const PlanVariable> variables() const;
  const PlanVariable& variable(PlanVariableId id) const;
  const PlanValue& value(ValueId id) const;
  std::span<const PlanStorage> storages() const;
  const PlanStorage& storage(PlanStorageId id) const;
  // The state in which its maker makes a storage, and in which a user takes it,
  // by the choice of either.
  StorageState state_made(const PlanStorage& storage, std::size_t choice) const;
  StorageState state_wanted(const PlanStorage& storage, std::size_t use,
                            std::size_t choice) const;
  // The variable of a node; invalid for mere assertions and for views that
  // share the storage of what they view.
  PlanVariableId variable_of(NodeId node) const;
  // The strategies of a node; nullptr for mere assertions.
  const ChoiceSet* choices_of(NodeId node) const;

  // What carrying the value from one layout to the other takes, without what
  // compute may hide; kUnreachable where nothing does. 0 for equal layouts.
  std::int64_t move_nanoseconds(ValueId value, LayoutId src,
                                LayoutId dst) const;
  // The rest of it: what compute may hide. 0 where nothing leads there.
  std::int64_t hideable_nanoseconds(ValueId value, LayoutId src,
                                    LayoutId dst) const;
  // What carrying a value of the storage costs beside the transfer, because it
  // cuts a kernel in two: a launch, writing and reading. Mostly 0.
  std::int64_t cut_nanoseconds(const PlanStorage& storage, ValueId value,
                               LayoutId src, LayoutId dst) const;
  // The schedule falls into windows, those of its phases: what may hide hides
  // behind the compute of the window in which it is moved. `slot` as in
  // plan_storage.h.
  std::size_t num_windows() const;
  std::size_t window_of(std::int64_t slot) const;
  // The collectives themselves. Precondition: reachable.
  RedistributePlan redistribution(ValueId value, LayoutId src,
                                  LayoutId dst) const;
  // Most bytes a rank holds while that runs, source and result included.
  // Precondition: reachable.
  std::int64_t redistribution_peak(ValueId value, LayoutId src,
                                   LayoutId dst) const;
  // Bytes of the largest local part.
  std::int64_t local_bytes(ValueId value, LayoutId layout) const;
  // What one micro-batch has to bear of what takes so long once a step.
  std::int64_t share_of_step(std::int64_t nanoseconds) const;
  // Whether the gradient that a parameter takes is reduced once a step.
  bool is_reduced_late(const PlanVariable& variable, std::size_t choice) const {
    return !variable.choices->reduced_late.empty() &&
           variable.choices->reduced_late[choice];
  }
  // Tensors of optimizer state beside a parameter that is trained.
  std::int64_t optimizer_tensors() const;
  // Whether a parameter is trained in 16 bits and kept in f32 between steps, in
  // the layout of its optimizer's state. Its gradient is in f32, too.
  bool is_kept_in_f32(ValueId parameter) const;

  struct Body;  // private to src/plan
  const Body& body() const { return *body_; }

 private:
  friend class RestrictedProblem;
  explicit PlanProblem(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};

}  // namespace shardprop
