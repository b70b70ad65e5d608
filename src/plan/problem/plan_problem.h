// PlanProblem states a graph on a mesh as variables with choices.
//
// Variables
//   * a graph input chooses its layout: R, or any without partials and strides
//     that a consumer reads it in;
//   * an operator chooses one of its strategies;
//   * an output chooses R, or a layout without partials and strides that its
//     value is produced in. So no output is a partial.
//
// Views that keep every element have no variables (plan_storage.h). A use is an
// operand of a variable: an operator's input, an output's value, or an output
// that is bound to an input. The gradient and the update of an input are bound
// to it: they end in its own layout.
//
// A buffer exists in the layout in which it is produced and in copies of it. An
// assignment decides which copies exist, and for how long (plan_assignment.h).
//
// The space of strategies is that of op_strategies() without empty shards.
// Strided shards are in it on meshes of up to two dims larger than 1 only. On
// meshes of more than three such dims, strategies shard runs of neighbouring
// dims (StrategyOptions::most_assignments = 256). A strategy that carries a
// partial from an input to the output is in it only if an operator before this
// one produces that partial.
//
//   x: f32[16,8] -> mm(x, w) -> relu, on [2]
//     variables x w mm relu output, buffers x w mm relu
#pragma once

#include "plan/problem/problem_data.h"

#include <shardprop/base/result.h>
#include <shardprop/graph/graph.h>
#include <shardprop/mesh/topology.h>
#include <shardprop/ops/op_library.h>
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

struct PlanPin;  // plan.h

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
  // Returns the recipes that fit the mesh and the graph, with their mesh dims.
  std::span<const Recipe> known_recipes() const { return data_.known_recipes; }
  const DimRoles& roles() const { return *data_.roles; }
  // Returns, by pin, how many values it matched and how many it pinned.
  std::vector<PlanPin> pins() const;

  // The order is inputs, operators in schedule order, outputs.
  std::span<const PlanVariable> variables() const { return data_.variables; }
  const PlanVariable& variable(PlanVariableId id) const {
    return data_.variables[id.index()];
  }
  const PlanValue& value(ValueId id) const { return data_.values[id.index()]; }
  std::span<const PlanBuffer> buffers() const { return data_.buffers; }
  const PlanBuffer& buffer(PlanBufferId id) const {
    return data_.buffers[id.index()];
  }
  // Returns the layout in which the producer makes a buffer, or in which a use
  // reads it, by the choice of the producer or user.
  BufferLayout layout_produced(const PlanBuffer& buffer,
                               std::size_t choice) const;
  BufferLayout layout_required(const PlanBuffer& buffer, std::size_t use,
                               std::size_t choice) const;
  // Returns the variable of a node. It is invalid for assertions, and for views
  // that share the buffer of the value that they view.
  PlanVariableId variable_of(NodeId node) const {
    return data_.of_node[node.index()];
  }
  // Returns the strategies of a node; nullptr for assertions.
  const ChoiceSet* choices_of(NodeId node) const {
    return data_.choices_of_node[node.index()].get();
  }

  // Returns the time of moving the value from one layout to another, without
  // the part that may overlap compute. It is kUnreachable if no redistribution
  // leads there, and 0 for equal layouts.
  std::int64_t move_nanoseconds(ValueId value, LayoutId src,
                                LayoutId dst) const;
  // Returns the part of that time that may overlap compute; 0 if no
  // redistribution leads there.
  std::int64_t overlappable_nanoseconds(ValueId value, LayoutId src,
                                        LayoutId dst) const;
  // Returns the cost of moving a value of the buffer in addition to the
  // transfer. If the buffer is produced and read inside one kernel, the move
  // splits the kernel: that costs a launch, a write and a read. Otherwise 0.
  std::int64_t cut_nanoseconds(const PlanBuffer& buffer, ValueId value,
                               LayoutId src, LayoutId dst) const;
  // Overlap windows divide the schedule (overlap_windows.h). `slot` is defined
  // in plan_storage.h.
  const Windows& windows() const { return data_.windows; }
  std::size_t num_windows() const { return data_.windows.size(); }
  WindowLoads window_loads() const { return data_.window_loads(); }
  std::size_t window_of(std::int64_t slot) const {
    return data_.windows.at(slot);
  }
  // Returns the window that a move of the buffer overlaps if its result is needed
  // in `slot`. It depends on the window of the slot alone. It is empty if the
  // program waits for the move: because no use begins in that window, or because
  // it is the first or the last window.
  std::optional<std::size_t> overlap_window(const PlanBuffer& buffer,
                                            std::int64_t slot) const;
  // Returns the slot in which the result of that move is complete: for a
  // parameter, the first slot of the window that reads it.
  std::int64_t ready_slot(const PlanBuffer& buffer, std::int64_t slot) const;
  // Returns the first slot in which the result of that move exists.
  std::int64_t issue_slot(const PlanBuffer& buffer, std::int64_t slot) const;
  // Returns the last slot in which that move reads its source.
  std::int64_t release_slot(const PlanBuffer& buffer, std::int64_t slot) const;
  // Returns the window that the gather of a parameter after its update overlaps:
  // in the next step, the one before its first use.
  std::optional<std::size_t> window_after_update(
      const PlanVariable& parameter) const;
  // Returns the collectives of the move. Precondition: reachable.
  RedistributePlan redistribution(ValueId value, LayoutId src,
                                  LayoutId dst) const;
  // Returns its steps, which are cached.
  const std::vector<RedistributeStep>& redistribution_steps(ValueId value,
                                                            LayoutId src,
                                                            LayoutId dst) const;
  // Returns the peak bytes of a rank during the move, source and result
  // included. Precondition: reachable.
  std::int64_t redistribution_peak(ValueId value, LayoutId src,
                                   LayoutId dst) const;
  // Returns the bytes of the largest local part.
  std::int64_t local_bytes(ValueId value, LayoutId layout) const;
  // Returns whether the gradient of a parameter is reduced once a step.
  bool is_reduced_late(const PlanVariable& variable, std::size_t choice) const {
    return !variable.choices->reduced_late.empty() &&
           variable.choices->reduced_late[choice];
  }
  // Returns the number of state tensors that the optimizer keeps for each
  // parameter.
  std::int64_t optimizer_tensors() const;
  // Returns whether a parameter is trained in 16 bits and kept in f32 between
  // steps, in the layout of its optimizer's state. Its gradient is in f32, too.
  bool is_kept_in_f32(ValueId parameter) const;

  // Returns the problem in which equal layers choose alone. It shares the tables of
  // this one.
  PlanProblem with_free_layers() const;

  // Returns the variables that choose alike.
  const EqualChoices& equal_choices() const { return *data_.equal_choices; }

  // Returns the data for analyses that need more than the queries above.
  const ProblemData& data() const { return data_; }

 private:
  friend class RestrictedProblem;
  explicit PlanProblem(ProblemData data) : data_(std::move(data)) {}
  ProblemData data_;
};

}  // namespace shardprop
