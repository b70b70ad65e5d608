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

#include "plan/problem_data.h"

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
#include <utility>
#include <vector>

namespace shardprop {

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

  const Graph& graph() const { return data_.graph; }
  const DeviceMesh& mesh() const { return data_.mesh; }
  const Topology& topology() const { return data_.topology; }
  const PlanOptions& options() const { return data_.options; }
  const LayoutTable& layouts() const { return data_.layouts; }
  // The recipes that fit the mesh and the graph, on the mesh.
  std::span<const Recipe> known_recipes() const { return data_.known_recipes; }
  const DimRoles& roles() const { return *data_.roles; }
  // What became of the pins.
  std::vector<PlanPin> pins() const;

  // Inputs first, then operators in schedule order, then outputs.
  std::span<const PlanVariable> variables() const { return data_.variables; }
  const PlanVariable& variable(PlanVariableId id) const {
    return data_.variables[id.index()];
  }
  const PlanValue& value(ValueId id) const { return data_.values[id.index()]; }
  std::span<const PlanStorage> storages() const { return data_.storages; }
  const PlanStorage& storage(PlanStorageId id) const {
    return data_.storages[id.index()];
  }
  // The state in which its maker makes a storage, and in which a user takes it,
  // by the choice of either.
  StorageState state_made(const PlanStorage& storage, std::size_t choice) const;
  StorageState state_wanted(const PlanStorage& storage, std::size_t use,
                            std::size_t choice) const;
  // The variable of a node; invalid for mere assertions and for views that
  // share the storage of what they view.
  PlanVariableId variable_of(NodeId node) const {
    return data_.of_node[node.index()];
  }
  // The strategies of a node; nullptr for mere assertions.
  const ChoiceSet* choices_of(NodeId node) const {
    return data_.choices_of_node[node.index()].get();
  }

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
  std::size_t num_windows() const { return data_.windows.size(); }
  std::size_t window_of(std::int64_t slot) const {
    return data_.windows.at(slot);
  }
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
  std::int64_t share_of_step(std::int64_t nanoseconds) const {
    return data_.share_of_step(nanoseconds);
  }
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

  // For analyses of src/plan that need more than the queries above.
  const ProblemData& data() const { return data_; }

 private:
  friend class RestrictedProblem;
  explicit PlanProblem(ProblemData data) : data_(std::move(data)) {}
  ProblemData data_;
};

}  // namespace shardprop
