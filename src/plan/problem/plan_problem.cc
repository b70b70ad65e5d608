#include "plan/problem/plan_problem.h"

#include "plan/problem/equal_choices.h"
#include "plan/problem/transfer_costs.h"

#include <shardprop/plan/plan.h>

#include <algorithm>
#include <memory>

namespace shardprop {
namespace {

bool has_use(const PlanBuffer& buffer, std::int64_t first, std::int64_t last) {
  const auto at = std::lower_bound(
      buffer.uses.begin(), buffer.uses.end(), first,
      [](const BufferUse& use, std::int64_t slot) { return use.slot < slot; });
  return at != buffer.uses.end() && at->slot <= last;
}

}  // namespace

PlanProblem PlanProblem::with_free_layers() const {
  PlanProblem out{ProblemData(data_)};
  out.data_.options.layers = Layers::kFree;
  out.data_.equal_choices = std::make_shared<const EqualChoices>(out.data_);
  return out;
}

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

std::optional<std::size_t> PlanProblem::overlap_window(
    const PlanBuffer& buffer, std::int64_t slot) const {
  const Windows& windows = data_.windows;
  switch (buffer.in_flight) {
    case InFlight::kNever:
      break;
    case InFlight::kAhead: {
      const std::size_t window = windows.at(slot);
      if (has_use(buffer, windows.first_slot(window),
                  windows.last_slot(window))) {
        return windows.of_gather(slot);
      }
      break;
    }
    case InFlight::kLater:
      if (slot == buffer.uses.back().slot) return windows.of_reduction(slot);
      break;
  }
  return std::nullopt;
}

std::int64_t PlanProblem::ready_slot(const PlanBuffer& buffer,
                                     std::int64_t slot) const {
  if (buffer.in_flight != InFlight::kAhead) return slot;
  return data_.windows.first_slot(data_.windows.at(slot));
}

std::int64_t PlanProblem::issue_slot(const PlanBuffer& buffer,
                                     std::int64_t slot) const {
  const auto window = overlap_window(buffer, slot);
  return window && buffer.in_flight == InFlight::kAhead
             ? data_.windows.first_slot(*window)
             : ready_slot(buffer, slot);
}

std::int64_t PlanProblem::release_slot(const PlanBuffer& buffer,
                                       std::int64_t slot) const {
  const auto window = overlap_window(buffer, slot);
  return window && buffer.in_flight == InFlight::kLater
             ? data_.windows.last_slot(*window)
             : slot;
}

std::optional<std::size_t> PlanProblem::window_after_update(
    const PlanVariable& parameter) const {
  const PlanBuffer& buffer = this->buffer(value(parameter.makes[0]).buffer);
  if (buffer.uses.empty()) return std::nullopt;
  return data_.windows.of_gather(buffer.uses[0].slot);
}

RedistributePlan PlanProblem::redistribution(ValueId value, LayoutId src,
                                             LayoutId dst) const {
  return data_.moves.plan(this->value(value).tensor, src, dst);
}

const std::vector<RedistributeStep>& PlanProblem::redistribution_steps(
    ValueId value, LayoutId src, LayoutId dst) const {
  return data_.moves.steps(this->value(value).tensor, src, dst);
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
