#include "plan/memory_at.h"

#include <algorithm>
#include <set>

namespace shardprop {
namespace {

class MemoryAt {
 public:
  MemoryAt(const PlanProblem& problem, const PlanAssignment& plan,
           std::int64_t slot)
      : problem_(problem), plan_(plan), slot_(slot) {
    for (const GraphOutput& output : problem.graph().outputs()) {
      if (output.kind == OutputKind::kGradient) {
        gradients_.insert(problem.value(output.value).storage);
      }
    }
  }

  PlanMemory run() {
    for (std::size_t s = 0; s < problem_.storages().size(); ++s) {
      const PlanStorage& storage = problem_.storages()[s];
      if (!held(storage.made_at, plan_.freed_at[s])) continue;
      kind_of(PlanStorageId(s)) +=
          problem_.local_bytes(storage.values[0], layout_made(storage));
    }
    std::int64_t moving = 0;
    for (const AssignedCopy& copy : plan_.copies) {
      if (held(copy.made_at, copy.freed_at)) add(copy, moving);
    }
    out_.gathered_bytes += moving;
    for (std::size_t v = 0; v < problem_.variables().size(); ++v) {
      const PlanVariable& variable = problem_.variables()[v];
      if (variable.choices->state_layouts.empty()) continue;
      out_.optimizer_bytes +=
          problem_.optimizer_tensors() *
          problem_.local_bytes(
              variable.makes[0],
              variable.choices->state_layouts[plan_.choices[v]]);
    }
    out_.peak_at = slot_;
    out_.peak_bytes = out_.parameter_bytes + out_.optimizer_bytes +
                      out_.gradient_bytes + out_.activation_bytes +
                      out_.gathered_bytes + out_.buffer_bytes;
    return out_;
  }

 private:
  bool held(std::int64_t from, std::int64_t until) const {
    return from <= slot_ && slot_ <= until;
  }

  LayoutId layout_made(const PlanStorage& storage) const {
    return problem_.variable(storage.maker)
        .choices->layout(plan_.choices[storage.maker.index()], storage.operand);
  }

  StorageState state_made(const PlanStorage& storage) const {
    return storage.kind
        ->made[problem_.variable(storage.maker)
                   .choices->pick(plan_.choices[storage.maker.index()],
                                  storage.operand)];
  }

  std::int64_t& kind_of(PlanStorageId id) {
    const PlanVariable& maker = problem_.variable(problem_.storage(id).maker);
    if (maker.kind == PlanVariable::Kind::kInput) {
      switch (problem_.graph().inputs()[maker.index].kind) {
        case InputKind::kParameter:
          return out_.parameter_bytes;
        case InputKind::kBuffer:
        case InputKind::kConstant:
          return out_.buffer_bytes;
        case InputKind::kUser:
          return out_.activation_bytes;
      }
    }
    return gradients_.contains(id) ? out_.gradient_bytes
                                   : out_.activation_bytes;
  }

  // A copy of a gradient is the gradient, as it is handed back.
  void add(const AssignedCopy& copy, std::int64_t& moving) {
    const PlanStorage& storage = problem_.storage(copy.storage);
    const std::vector<LayoutId>& layouts = storage.kind->layouts[copy.value];
    const ValueId value = storage.values[copy.value];
    const LayoutId src = layouts[copy.source ? plan_.copies[*copy.source].state
                                             : state_made(storage)];
    const LayoutId dst = layouts[copy.state];
    const std::int64_t bytes = problem_.local_bytes(value, dst);
    (gradients_.contains(copy.storage) ? out_.gradient_bytes
                                       : out_.gathered_bytes) += bytes;
    if (copy.made_at != slot_) return;
    // Copies for one slot are made one after the other.
    moving = std::max(moving, problem_.redistribution_peak(value, src, dst) -
                                  problem_.local_bytes(value, src) - bytes);
  }

  const PlanProblem& problem_;
  const PlanAssignment& plan_;
  std::int64_t slot_;
  std::set<PlanStorageId> gradients_;
  PlanMemory out_;
};

}  // namespace

PlanMemory memory_at(const PlanProblem& problem,
                     const PlanAssignment& assignment, std::int64_t slot) {
  return MemoryAt(problem, assignment, slot).run();
}

}  // namespace shardprop
