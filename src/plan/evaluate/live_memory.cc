#include "plan/evaluate/live_memory.h"

#include "base/saturating.h"

#include <algorithm>
#include <map>
#include <set>

namespace shardprop {
namespace {

class Holdings {
 public:
  Holdings(const PlanProblem& problem, const PlanAssignment& plan)
      : problem_(problem),
        plan_(plan),
        end_(static_cast<std::int64_t>(problem.graph().nodes().size())) {
    for (const GraphOutput& output : problem.graph().outputs()) {
      if (output.kind == OutputKind::kGradient) {
        gradients_.insert(problem.value(output.value).storage);
      }
    }
    if (problem.options().accumulate > 1) find_accumulated();
    find_shown();
  }

  std::vector<HeldBytes> run() {
    for (std::size_t s = 0; s < problem_.storages().size(); ++s) {
      add_storage(PlanStorageId(s));
    }
    for (std::size_t c = 0; c < plan_.copies.size(); ++c) add_copy(c);
    return std::move(out_);
  }

 private:
  // Micro-batches add their gradients to an accumulator, which exists
  // throughout. It is the copy that the optimizer reads. If the gradient is
  // reduced once a step, or is not copied, it is the gradient as it was
  // produced.
  void find_accumulated() {
    accumulated_copies_.resize(plan_.copies.size(), false);
    accumulated_.resize(problem_.storages().size(), false);
    for (std::size_t v = 0; v < problem_.variables().size(); ++v) {
      const PlanVariable& variable = problem_.variables()[v];
      if (variable.choices->state_layouts.empty()) continue;
      for (std::size_t u = 0; u < variable.uses.size(); ++u) {
        const PlanStorageId id = problem_.value(variable.uses[u]).storage;
        const auto& copy = plan_.taken[id.index()][variable.use_places[u]];
        if (copy && !problem_.is_reduced_late(variable, plan_.choices[v])) {
          accumulated_copies_[*copy] = true;
        } else {
          accumulated_[id.index()] = true;
        }
      }
    }
  }

  // A buffer that a view aliases is kept as long as the view. Views come after
  // the buffers that they alias, so one pass from the last one covers views of
  // views.
  void find_shown() {
    until_ = plan_.freed_at;
    copy_until_.reserve(plan_.copies.size());
    for (const AssignedCopy& copy : plan_.copies) {
      copy_until_.push_back(copy.freed_at);
    }
    for (std::size_t s = problem_.storages().size(); s-- > 0;) {
      const PlanStorage& view = problem_.storages()[s];
      if (!view.shows) continue;
      const PlanVariable& maker = problem_.variable(view.maker);
      const PlanStorageId id = problem_.value(maker.uses[*view.shows]).storage;
      const auto& copy = plan_.taken[id.index()][maker.use_places[*view.shows]];
      std::int64_t& until = copy ? copy_until_[*copy] : until_[id.index()];
      until = std::max(until, until_[s]);
      if (!copy) shown_[id].push_back({view.made_at, until_[s]});
    }
  }

  void hold(MemoryKind kind, std::int64_t bytes, std::int64_t from,
            std::int64_t until) {
    if (bytes > 0 && from <= until) out_.push_back({kind, bytes, from, until});
  }

  std::size_t choice(PlanVariableId variable) const {
    return plan_.choices[variable.index()];
  }

  LayoutId layout_made(const PlanStorage& storage) const {
    return problem_.variable(storage.maker)
        .choices->layout(choice(storage.maker), storage.operand);
  }

  StorageState state_made(const PlanStorage& storage) const {
    return problem_.state_made(storage, choice(storage.maker));
  }

  void add_storage(PlanStorageId id) {
    const PlanStorage& storage = problem_.storage(id);
    const PlanVariable& maker = problem_.variable(storage.maker);
    if (maker.kind == PlanVariable::Kind::kInput &&
        problem_.graph().inputs()[maker.index].kind == InputKind::kParameter) {
      return add_parameter(id, maker);
    }
    const std::int64_t bytes =
        problem_.local_bytes(storage.values[0], layout_made(storage));
    if (!accumulated_.empty() && accumulated_[id.index()]) {
      return hold(kind_of(id, maker), bytes, 0, end_);
    }
    if (storage.shows) return;
    hold(kind_of(id, maker), bytes, storage.made_at, until_[id.index()]);
  }

  void add_parameter(PlanStorageId id, const PlanVariable& maker) {
    const PlanStorage& storage = problem_.storage(id);
    const KeptParameter kept =
        kept_parameter(problem_, maker, choice(storage.maker));
    hold(MemoryKind::kParameter, kept.parameter, 0, end_);
    hold(MemoryKind::kOptimizer, kept.optimizer, 0, end_);
    hold(MemoryKind::kGathered, kept.working, 0, end_);
    if (kept.cast == 0) return;
    for (const SlotSpan& span : cast_spans(id)) {
      hold(MemoryKind::kGathered, kept.cast, span.first, span.last);
    }
  }

  // Returns the slots in which the 16-bit copy exists: those of each segment of
  // uses, and those in which views alias it.
  std::vector<SlotSpan> cast_spans(PlanStorageId id) const {
    const PlanStorage& storage = problem_.storage(id);
    std::vector<SlotSpan> spans;
    for (const UseSegment& segment : storage.segments) {
      spans.push_back(span_of(storage, segment));
    }
    if (const auto shown = shown_.find(id); shown != shown_.end()) {
      spans.insert(spans.end(), shown->second.begin(), shown->second.end());
    }
    std::sort(
        spans.begin(), spans.end(),
        [](const SlotSpan& a, const SlotSpan& b) { return a.first < b.first; });
    std::vector<SlotSpan> apart;
    for (const SlotSpan& span : spans) {
      if (apart.empty() || apart.back().last < span.first) {
        apart.push_back(span);
      } else {
        apart.back().last = std::max(apart.back().last, span.last);
      }
    }
    return apart;
  }

  MemoryKind kind_of(PlanStorageId id, const PlanVariable& maker) const {
    if (maker.kind == PlanVariable::Kind::kInput) {
      const InputKind kind = problem_.graph().inputs()[maker.index].kind;
      return kind == InputKind::kUser ? MemoryKind::kActivation
                                      : MemoryKind::kBuffer;
    }
    return gradients_.contains(id) ? MemoryKind::kGradient
                                   : MemoryKind::kActivation;
  }

  // A copy of a gradient counts as the gradient that is an output.
  void add_copy(std::size_t c) {
    const AssignedCopy& copy = plan_.copies[c];
    const bool accumulated =
        !accumulated_copies_.empty() && accumulated_copies_[c];
    const PlanStorage& storage = problem_.storage(copy.storage);
    const std::vector<LayoutId>& layouts = storage.kind->layouts[copy.value];
    const ValueId value = storage.values[copy.value];
    const LayoutId src = layouts[copy.source ? plan_.copies[*copy.source].state
                                             : state_made(storage)];
    const LayoutId dst = layouts[copy.state];
    const std::int64_t bytes = problem_.local_bytes(value, dst);
    hold(gradients_.contains(copy.storage) ? MemoryKind::kGradient
                                           : MemoryKind::kGathered,
         bytes, accumulated ? 0 : copy.made_at,
         accumulated ? end_ : copy_until_[c]);
    hold(MemoryKind::kMoving,
         problem_.redistribution_peak(value, src, dst) -
             problem_.local_bytes(value, src) - bytes,
         copy.made_at, copy.made_at);
  }

  const PlanProblem& problem_;
  const PlanAssignment& plan_;
  std::int64_t end_;
  std::set<PlanStorageId> gradients_;
  // By buffer and by copy; empty without accumulation.
  std::vector<bool> accumulated_;
  std::vector<bool> accumulated_copies_;
  // By buffer and by copy: the last slot in which its memory is kept.
  std::vector<std::int64_t> until_;
  std::vector<std::int64_t> copy_until_;
  // By buffer: the slots in which views alias it as it was produced.
  std::map<PlanStorageId, std::vector<SlotSpan>> shown_;
  std::vector<HeldBytes> out_;
};

}  // namespace

std::vector<HeldBytes> held_bytes(const PlanProblem& problem,
                                  const PlanAssignment& assignment) {
  return Holdings(problem, assignment).run();
}

KeptParameter kept_parameter(const PlanProblem& problem,
                             const PlanVariable& parameter,
                             std::size_t choice) {
  const ValueId value = parameter.makes[0];
  const ChoiceSet& choices = *parameter.choices;
  const LayoutId own = choices.layout(choice, parameter.uses.size());
  KeptParameter kept;
  if (choices.state_layouts.empty()) {
    kept.parameter = problem.local_bytes(value, own);
    return kept;
  }
  const LayoutId state = choices.state_layouts[choice];
  const std::int64_t part = problem.local_bytes(value, state);
  if (!problem.is_kept_in_f32(value)) {
    kept.parameter = problem.local_bytes(value, own);
    kept.optimizer = sat_mul(problem.optimizer_tensors(), part);
    return kept;
  }
  const std::int64_t widened =
      item_size(DType::kF32) /
      item_size(problem.graph().value(value).meta.dtype());
  kept.parameter = sat_mul(widened, part);
  kept.optimizer = sat_mul(problem.optimizer_tensors(), kept.parameter);
  (state == own ? kept.cast : kept.working) = problem.local_bytes(value, own);
  return kept;
}

SlotSpan span_of(const PlanStorage& storage, const UseSegment& segment) {
  SlotSpan span{storage.uses[segment.first].slot, 0};
  for (std::size_t u = 0; u < segment.count; ++u) {
    span.last = std::max(span.last, storage.uses[segment.first + u].until);
  }
  return span;
}

}  // namespace shardprop
