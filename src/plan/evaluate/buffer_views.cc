#include "plan/evaluate/buffer_views.h"

#include "plan/evaluate/buckets.h"

#include <algorithm>

namespace shardprop {

BufferViews::BufferViews(const PlanProblem& problem, const PlanAssignment& plan)
    : problem_(problem),
      plan_(plan),
      copies_(problem, plan),
      times_(copy_times(problem, plan)),
      freed_at_(plan.freed_at),
      behind_(problem.graph().values().size()) {
  // A buffer exists until the transfers that read it are complete.
  for (const AssignedCopy& copy : plan.copies) {
    if (copy.source) continue;
    std::int64_t& until = freed_at_[copy.buffer.index()];
    until = std::max(until, problem.release_slot(problem.buffer(copy.buffer),
                                                 copy.produced_at));
  }
  // So does a buffer whose copy waits for others of its bucket.
  for (const Bucket& bucket : buckets_of(problem, plan)) {
    for (const std::size_t c : bucket.copies) {
      const AssignedCopy& copy = plan.copies[c];
      if (bucket.filled_at <= copy.produced_at ||
          bucket.filled_at < bucket.emptied_at) {
        continue;
      }
      times_[c].complete_from = bucket.filled_at;
      std::int64_t& until = freed_at_[copy.buffer.index()];
      until = std::max(until, bucket.filled_at);
    }
  }
  for (std::size_t s = 0; s < problem.buffers().size(); ++s) {
    const PlanBuffer& buffer = problem.buffers()[s];
    if (buffer.values.size() < 2) continue;
    FirstCopies first;
    for (const std::size_t c : copies_.of(PlanBufferId(s))) {
      first.emplace(plan.copies[c].state, c);
    }
    for (std::size_t v = 1; v < buffer.values.size(); ++v) {
      const ValueId value = buffer.values[v];
      behind_[value.index()] = choose(value, v, PlanBufferId(s), first);
    }
  }
}

BufferLayout BufferViews::state(PlanBufferId buffer,
                                const std::optional<std::size_t>& copy) const {
  if (copy) return plan_.copies[*copy].state;
  const PlanBuffer& of = problem_.buffer(buffer);
  return problem_.layout_produced(of, plan_.choices[of.producer.index()]);
}

LayoutId BufferViews::layout(ValueId value,
                             const std::optional<std::size_t>& copy) const {
  const PlanValue& planned = problem_.value(value);
  return problem_.buffer(planned.buffer)
      .kind->layouts[planned.place][state(planned.buffer, copy)];
}

bool BufferViews::shares_elements(const PlanProblem& problem,
                                  const PlanBuffer& buffer, std::size_t place,
                                  BufferLayout state) {
  const Graph& graph = problem.graph();
  const ValueId viewed =
      graph.node(graph.value(buffer.values[place]).producer).inputs[0];
  const auto& layouts = buffer.kind->layouts;
  return layouts[place][state].valid() &&
         layouts[problem.value(viewed).place][state].valid();
}

// Returns the copy that the node of a view reads, or none for the buffer as it
// was produced. Both the view and the value that it views must have a layout in
// it, so that the node has a strategy. (A copy may be of the view alone: a
// gradient that is an output in shards which its views do not have.)
//
// The first of these that exists is chosen:
//   1. the buffer as it was produced, if it exists when the node runs;
//   2. the first copy that is complete when the node runs;
//   3. the first copy of all.
// If every user of a view reads a copy made before the view's node runs, the
// view's source may already be freed. The view is then created again at the
// copy.
std::optional<std::size_t> BufferViews::choose(ValueId value, std::size_t place,
                                               PlanBufferId id,
                                               const FirstCopies& first) const {
  const PlanBuffer& buffer = problem_.buffer(id);
  const auto slot =
      static_cast<std::int64_t>(problem_.graph().value(value).producer.index());
  const auto shares = [&](BufferLayout state) {
    return BufferViews::shares_elements(problem_, buffer, place, state);
  };
  const bool as_made = shares(state(id, std::nullopt));
  if (as_made && slot <= freed_at_[id.index()]) return std::nullopt;
  std::optional<std::size_t> earliest;
  const auto offer = [&](std::size_t c) {
    if (shares(plan_.copies[c].state)) {
      earliest = std::min(earliest.value_or(c), c);
    }
  };
  copies_.cached_at(id, slot, [&](std::size_t c) {
    if (times_[c].complete_from <= slot) offer(c);
  });
  if (earliest || as_made) return earliest;
  for (const auto& [state, c] : first) offer(c);
  return earliest;
}

}  // namespace shardprop
