#include "plan/evaluate/buffer_views.h"

namespace shardprop {

StorageViews::StorageViews(const PlanProblem& problem,
                           const PlanAssignment& plan)
    : problem_(problem),
      plan_(plan),
      copies_(problem, plan),
      behind_(problem.graph().values().size()) {
  for (std::size_t s = 0; s < problem.storages().size(); ++s) {
    const PlanStorage& storage = problem.storages()[s];
    if (storage.values.size() < 2) continue;
    FirstCopies first;
    for (const std::size_t c : copies_.of(PlanStorageId(s))) {
      first.emplace(plan.copies[c].state, c);
    }
    for (std::size_t v = 1; v < storage.values.size(); ++v) {
      const ValueId value = storage.values[v];
      behind_[value.index()] = choose(value, v, PlanStorageId(s), first);
    }
  }
}

StorageState StorageViews::state(PlanStorageId storage,
                                 const std::optional<std::size_t>& copy) const {
  if (copy) return plan_.copies[*copy].state;
  const PlanStorage& of = problem_.storage(storage);
  return problem_.state_made(of, plan_.choices[of.maker.index()]);
}

LayoutId StorageViews::layout(ValueId value,
                              const std::optional<std::size_t>& copy) const {
  const PlanValue& planned = problem_.value(value);
  return problem_.storage(planned.storage)
      .kind->layouts[planned.place][state(planned.storage, copy)];
}

bool StorageViews::shows(const PlanProblem& problem, const PlanStorage& storage,
                         std::size_t place, StorageState state) {
  const Graph& graph = problem.graph();
  const ValueId viewed =
      graph.node(graph.value(storage.values[place]).producer).inputs[0];
  const auto& layouts = storage.kind->layouts;
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
//   2. the first copy that exists when the node runs;
//   3. the first copy of all.
// If every user of a view reads a copy made before the view's node runs, the
// view's source may already be freed. The view is then created again at the
// copy.
std::optional<std::size_t> StorageViews::choose(
    ValueId value, std::size_t place, PlanStorageId id,
    const FirstCopies& first) const {
  const PlanStorage& storage = problem_.storage(id);
  const auto slot =
      static_cast<std::int64_t>(problem_.graph().value(value).producer.index());
  const auto shows = [&](StorageState state) {
    return StorageViews::shows(problem_, storage, place, state);
  };
  const bool as_made = shows(state(id, std::nullopt));
  if (as_made && slot <= plan_.freed_at[id.index()]) return std::nullopt;
  std::optional<std::size_t> earliest;
  const auto offer = [&](std::size_t c) {
    if (shows(plan_.copies[c].state)) {
      earliest = std::min(earliest.value_or(c), c);
    }
  };
  copies_.held_at(id, slot, offer);
  if (earliest || as_made) return earliest;
  for (const auto& [state, c] : first) offer(c);
  return earliest;
}

}  // namespace shardprop
