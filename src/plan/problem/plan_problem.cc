#include "plan/problem/plan_problem.h"

namespace shardprop {

std::vector<PlanPin> PlanProblem::pins() const {
  std::vector<PlanPin> out;
  for (std::size_t p = 0; p < data_.pinned.size(); ++p) {
    out.push_back({to_string(data_.options.pins[p]), data_.pinned[p].matched,
                   data_.pinned[p].pinned});
  }
  return out;
}

std::int64_t PlanProblem::move_nanoseconds(ValueId value, LayoutId src,
                                           LayoutId dst) const {
  return data_.move_nanoseconds(this->value(value), src, dst);
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
  return data_.cut_nanoseconds(storage, this->value(value), src, dst);
}

std::int64_t PlanProblem::hideable_nanoseconds(ValueId value, LayoutId src,
                                               LayoutId dst) const {
  return data_.hideable_nanoseconds(this->value(value), src, dst);
}

RedistributePlan PlanProblem::redistribution(ValueId value, LayoutId src,
                                             LayoutId dst) const {
  return data_.moves.plan(this->value(value).tensor, src, dst);
}

std::int64_t PlanProblem::redistribution_peak(ValueId value, LayoutId src,
                                              LayoutId dst) const {
  return data_.moves.peak_bytes(this->value(value).tensor, src, dst);
}

std::int64_t PlanProblem::optimizer_tensors() const {
  return data_.options.optimizer == Optimizer::kAdamW ? 2 : 0;
}

bool PlanProblem::is_kept_in_f32(ValueId parameter) const {
  const Graph& graph = data_.graph;
  return keeps_f32(data_.options) &&
         item_size(graph.value(parameter).meta.dtype()) == 2;
}

std::int64_t PlanProblem::local_bytes(ValueId value, LayoutId layout) const {
  return data_.moves.local_bytes(this->value(value).tensor, layout);
}

}  // namespace shardprop
