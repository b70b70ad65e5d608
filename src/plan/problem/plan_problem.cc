#include "plan/problem/plan_problem.h"

namespace shardprop {

std::vector<PlanPin> PlanProblem::pins() const {
  std::vector<PlanPin> out;
  for (std::size_t p = 0; p < data_.pinned.size(); ++p) {
    out.push_back({data_.options.pins[p], data_.pinned[p].matched,
                   data_.pinned[p].pinned});
  }
  return out;
}

std::int64_t PlanProblem::move_nanoseconds(ValueId value, LayoutId src,
                                           LayoutId dst) const {
  return data_.move_nanoseconds(this->value(value), src, dst);
}

BufferLayout PlanProblem::layout_produced(const PlanBuffer& buffer,
                                          std::size_t choice) const {
  return buffer.kind->produced[variable(buffer.producer)
                                   .choices->pick(choice, buffer.operand)];
}

BufferLayout PlanProblem::layout_required(const PlanBuffer& buffer,
                                          std::size_t use,
                                          std::size_t choice) const {
  const BufferUse& at = buffer.uses[use];
  return buffer.kind
      ->required[use][variable(at.variable).choices->pick(choice, at.operand)];
}

std::int64_t PlanProblem::cut_nanoseconds(const PlanBuffer& buffer,
                                          ValueId value, LayoutId src,
                                          LayoutId dst) const {
  return data_.cut_nanoseconds(buffer, this->value(value), src, dst);
}

std::int64_t PlanProblem::overlappable_nanoseconds(ValueId value, LayoutId src,
                                                   LayoutId dst) const {
  return data_.overlappable_nanoseconds(this->value(value), src, dst);
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
