#include "plan/evaluate/live_memory.h"

#include "base/index.h"
#include "base/saturating.h"
#include "plan/evaluate/copy_times.h"

#include <algorithm>
#include <map>
#include <set>

namespace shardprop {
namespace {

class Holdings {
 public:
  Holdings(const PlanProblem& problem, const PlanAssignment& plan,
           KernelMemory kernels)
      : problem_(problem),
        plan_(plan),
        kernels_(kernels),
        end_(static_cast<std::int64_t>(problem.graph().nodes().size())),
        times_(copy_times(problem, plan)) {
    for (const GraphOutput& output : problem.graph().outputs()) {
      if (output.kind == OutputKind::kGradient) {
        gradients_.insert(problem.value(output.value).buffer);
      }
    }
    if (problem.options().accumulate > 1) find_accumulated();
    find_viewed();
    for (const AssignedCopy& copy : plan.copies) {
      if (!copy.source) written_.insert(copy.buffer);
    }
    for (std::size_t s = problem.buffers().size(); s-- > 0;) {
      const PlanBuffer& view = problem.buffers()[s];
      if (!view.view_of_use || !written_.contains(PlanBufferId(s))) continue;
      const PlanVariable& maker = problem.variable(view.producer);
      written_.insert(problem.value(maker.uses[*view.view_of_use]).buffer);
    }
  }

  std::vector<LiveBytes> run() {
    for (std::size_t s = 0; s < problem_.buffers().size(); ++s) {
      add_buffer(PlanBufferId(s));
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
    accumulated_.resize(problem_.buffers().size(), false);
    for (std::size_t v = 0; v < problem_.variables().size(); ++v) {
      const PlanVariable& variable = problem_.variables()[v];
      if (variable.choices->state_layouts.empty()) continue;
      for (std::size_t u = 0; u < variable.uses.size(); ++u) {
        const PlanBufferId id = problem_.value(variable.uses[u]).buffer;
        const auto& copy = plan_.read[id.index()][variable.use_places[u]];
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
  void find_viewed() {
    until_ = plan_.freed_at;
    copy_until_.reserve(plan_.copies.size());
    for (const AssignedCopy& copy : plan_.copies) {
      copy_until_.push_back(copy.freed_at);
    }
    // A source exists until the transfers that read it are complete.
    for (const AssignedCopy& copy : plan_.copies) {
      std::int64_t& until =
          copy.source ? copy_until_[*copy.source] : until_[copy.buffer.index()];
      until =
          std::max(until, problem_.release_slot(problem_.buffer(copy.buffer),
                                                copy.produced_at));
    }
    for (std::size_t s = problem_.buffers().size(); s-- > 0;) {
      const PlanBuffer& view = problem_.buffers()[s];
      if (!view.view_of_use) continue;
      // An accumulated gradient has memory of its own.
      if (!accumulated_.empty() && accumulated_[s]) continue;
      const PlanVariable& producer = problem_.variable(view.producer);
      const PlanBufferId id =
          problem_.value(producer.uses[*view.view_of_use]).buffer;
      const auto& copy =
          plan_.read[id.index()][producer.use_places[*view.view_of_use]];
      std::int64_t& until = copy ? copy_until_[*copy] : until_[id.index()];
      until = std::max(until, until_[s]);
      if (!copy) viewed_[id].push_back({view.produced_at, until_[s]});
    }
  }

  void hold(MemoryKind kind, std::int64_t bytes, std::int64_t from,
            std::int64_t until) {
    if (bytes > 0 && from <= until) out_.push_back({kind, bytes, from, until});
  }

  std::size_t choice(PlanVariableId variable) const {
    return plan_.choices[variable.index()];
  }

  LayoutId layout_of_produced(const PlanBuffer& buffer) const {
    return problem_.variable(buffer.producer)
        .choices->layout(choice(buffer.producer), buffer.operand);
  }

  BufferLayout layout_produced(const PlanBuffer& buffer) const {
    return problem_.layout_produced(buffer, choice(buffer.producer));
  }

  void add_buffer(PlanBufferId id) {
    const PlanBuffer& buffer = problem_.buffer(id);
    const PlanVariable& producer = problem_.variable(buffer.producer);
    if (producer.kind == PlanVariable::Kind::kInput &&
        problem_.graph().inputs()[producer.index].kind ==
            InputKind::kParameter) {
      return add_parameter(id, producer);
    }
    const std::int64_t bytes =
        problem_.local_bytes(buffer.values[0], layout_of_produced(buffer));
    if (!accumulated_.empty() && accumulated_[id.index()]) {
      return hold(kind_of(id, producer), bytes, 0, end_);
    }
    if (buffer.view_of_use) return;
    // A value inside a kernel is written only to be redistributed.
    if (kernels_ == KernelMemory::kFused && buffer.inside_kernel &&
        !written_.contains(id)) {
      return;
    }
    hold(kind_of(id, producer), bytes, buffer.produced_at, until_[id.index()]);
  }

  void add_parameter(PlanBufferId id, const PlanVariable& producer) {
    const PlanBuffer& buffer = problem_.buffer(id);
    const KeptParameter kept =
        kept_parameter(problem_, producer, choice(buffer.producer));
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
  std::vector<SlotSpan> cast_spans(PlanBufferId id) const {
    const PlanBuffer& buffer = problem_.buffer(id);
    std::vector<SlotSpan> spans;
    for (const UseSegment& segment : buffer.segments) {
      spans.push_back(span_of(buffer, segment));
    }
    if (const auto viewed = viewed_.find(id); viewed != viewed_.end()) {
      spans.insert(spans.end(), viewed->second.begin(), viewed->second.end());
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

  MemoryKind kind_of(PlanBufferId id, const PlanVariable& producer) const {
    if (producer.kind == PlanVariable::Kind::kInput) {
      const InputKind kind = problem_.graph().inputs()[producer.index].kind;
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
    const PlanBuffer& buffer = problem_.buffer(copy.buffer);
    const std::vector<LayoutId>& layouts = buffer.kind->layouts[copy.value];
    const ValueId value = buffer.values[copy.value];
    const LayoutId src = layouts[copy.source ? plan_.copies[*copy.source].state
                                             : layout_produced(buffer)];
    const LayoutId dst = layouts[copy.state];
    const std::int64_t bytes = problem_.local_bytes(value, dst);
    hold(gradients_.contains(copy.buffer) ? MemoryKind::kGradient
                                          : MemoryKind::kGathered,
         bytes, accumulated ? 0 : times_[c].exists_from,
         accumulated ? end_ : copy_until_[c]);
    const std::int64_t scratch = problem_.redistribution_peak(value, src, dst) -
                                 problem_.local_bytes(value, src) - bytes;
    if (const auto window = times_[c].window) {
      hold(MemoryKind::kInFlight, scratch,
           problem_.windows().first_slot(*window),
           problem_.windows().last_slot(*window));
    } else {
      hold(MemoryKind::kMoving, scratch, copy.produced_at, copy.produced_at);
    }
  }

  const PlanProblem& problem_;
  const PlanAssignment& plan_;
  KernelMemory kernels_;
  std::int64_t end_;
  std::vector<CopyTimes> times_;  // by copy
  std::set<PlanBufferId> gradients_;
  std::set<PlanBufferId> written_;  // sources of copies as they were produced
  // By buffer and by copy; empty without accumulation.
  std::vector<bool> accumulated_;
  std::vector<bool> accumulated_copies_;
  // By buffer and by copy: the last slot in which its memory is kept.
  std::vector<std::int64_t> until_;
  std::vector<std::int64_t> copy_until_;
  // By buffer: the slots in which views alias it as it was produced.
  std::map<PlanBufferId, std::vector<SlotSpan>> viewed_;
  std::vector<LiveBytes> out_;
};

}  // namespace

std::vector<LiveBytes> live_bytes(const PlanProblem& problem,
                                  const PlanAssignment& assignment,
                                  KernelMemory kernels) {
  return Holdings(problem, assignment, kernels).run();
}

std::vector<std::int64_t> bytes_without_buckets(
    const PlanProblem& problem, const PlanAssignment& assignment,
    KernelMemory kernels) {
  const std::size_t slots = problem.graph().nodes().size() + 1;
  std::vector<WideInt> change(slots + 1, 0);
  std::vector<std::int64_t> moving(slots, 0);
  std::vector<std::int64_t> in_flight(slots, 0);
  for (const LiveBytes& cached : live_bytes(problem, assignment, kernels)) {
    const auto from = index(cached.from);
    if (is_scratch(cached.kind)) {
      auto& scratch = cached.kind == MemoryKind::kMoving ? moving : in_flight;
      for (std::size_t t = from; t <= index(cached.until); ++t) {
        scratch[t] = std::max(scratch[t], cached.bytes);
      }
      continue;
    }
    change[from] += cached.bytes;
    change[index(cached.until) + 1] -= cached.bytes;
  }
  WideInt live = 0;
  std::vector<std::int64_t> out(slots);
  for (std::size_t t = 0; t < slots; ++t) {
    live += change[t];
    out[t] = saturated(live + moving[t] + in_flight[t]);
  }
  return out;
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

SlotSpan span_of(const PlanBuffer& buffer, const UseSegment& segment) {
  SlotSpan span{buffer.uses[segment.first].slot, 0};
  for (std::size_t u = 0; u < segment.count; ++u) {
    span.last = std::max(span.last, buffer.uses[segment.first + u].until);
  }
  return span;
}

}  // namespace shardprop
