#include "plan/plan_problem.h"

#include "plan/problem_body.h"

#include <utility>

namespace shardprop {

PlanProblem::PlanProblem(std::unique_ptr<Body> body) : body_(std::move(body)) {}
PlanProblem::PlanProblem(PlanProblem&&) noexcept = default;
PlanProblem& PlanProblem::operator=(PlanProblem&&) noexcept = default;
PlanProblem::~PlanProblem() = default;

const Graph& PlanProblem::graph() const { return body_->graph; }
const DeviceMesh& PlanProblem::mesh() const { return body_->mesh; }
const Topology& PlanProblem::topology() const { return body_->topology; }
const PlanOptions& PlanProblem::options() const { return body_->options; }
const LayoutTable& PlanProblem::layouts() const { return body_->layouts; }

std::span<const Recipe> PlanProblem::known_recipes() const {
  return body_->known_recipes;
}
const DimRoles& PlanProblem::roles() const { return *body_->roles; }
std::vector<PlanPin> PlanProblem::pins() const {
  std::vector<PlanPin> out;
  for (std::size_t p = 0; p < body_->pinned.size(); ++p) {
    out.push_back({to_string(body_->options.pins[p]), body_->pinned[p].matched,
                   body_->pinned[p].pinned});
  }
  return out;
}

std::span<const PlanVariable> PlanProblem::variables() const {
  return body_->variables;
}
const PlanVariable& PlanProblem::variable(PlanVariableId id) const {
  return body_->variables[id.index()];
}
const PlanValue& PlanProblem::value(ValueId id) const {
  return body_->values[id.index()];
}
std::span<const PlanStorage> PlanProblem::storages() const {
  return body_->storages;
}
const PlanStorage& PlanProblem::storage(PlanStorageId id) const {
  return body_->storages[id.index()];
}
const ChoiceSet* PlanProblem::choices_of(NodeId node) const {
  return body_->choices_of_node[node.index()].get();
}
PlanVariableId PlanProblem::variable_of(NodeId node) const {
  return body_->of_node[node.index()];
}

std::int64_t PlanProblem::move_nanoseconds(ValueId value, LayoutId src,
                                           LayoutId dst) const {
  return body_->move_nanoseconds(this->value(value), src, dst);
}

StorageState PlanProblem::state_made(const PlanStorage& storage,
                                     std::size_t choice) const {
  return storage.kind
      ->made[variable(storage.maker).choices->pick(choice, storage.operand)];
}

StorageState PlanProblem::state_wanted(const PlanStorage& storage,
                                       std::size_t use,
                                       std::size_t choice) const {
  const StorageUse& at = storage.uses[use];
  return storage.kind
      ->wanted[use][variable(at.variable).choices->pick(choice, at.operand)];
}

std::int64_t PlanProblem::cut_nanoseconds(const PlanStorage& storage,
                                          ValueId value, LayoutId src,
                                          LayoutId dst) const {
  return body_->cut_nanoseconds(storage, this->value(value), src, dst);
}

std::int64_t PlanProblem::hideable_nanoseconds(ValueId value, LayoutId src,
                                               LayoutId dst) const {
  return body_->hideable_nanoseconds(this->value(value), src, dst);
}

std::size_t PlanProblem::num_windows() const { return body_->windows.size(); }

std::size_t PlanProblem::window_of(std::int64_t slot) const {
  return body_->windows.at(slot);
}

RedistributePlan PlanProblem::redistribution(ValueId value, LayoutId src,
                                             LayoutId dst) const {
  return body_->moves.plan(this->value(value).tensor, src, dst);
}

std::int64_t PlanProblem::redistribution_peak(ValueId value, LayoutId src,
                                              LayoutId dst) const {
  return body_->moves.peak_bytes(this->value(value).tensor, src, dst);
}

std::int64_t PlanProblem::share_of_step(std::int64_t nanoseconds) const {
  return body_->share_of_step(nanoseconds);
}

std::int64_t PlanProblem::optimizer_tensors() const {
  return body_->options.optimizer == Optimizer::kAdamW ? 2 : 0;
}

bool PlanProblem::is_kept_in_f32(ValueId parameter) const {
  const Graph& graph = body_->graph;
  return keeps_f32(body_->options) &&
         item_size(graph.value(parameter).meta.dtype()) == 2;
}

std::int64_t PlanProblem::local_bytes(ValueId value, LayoutId layout) const {
  return body_->moves.local_bytes(this->value(value).tensor, layout);
}

}  // namespace shardprop
