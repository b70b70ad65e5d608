#include "plan/storage_views.h"

namespace shardprop {

StorageViews::StorageViews(const PlanProblem& problem,
                           const PlanAssignment& plan)
    : problem_(problem),
      plan_(plan),
      copies_of_(problem.storages().size()),
      behind_(problem.graph().values().size()) {
  for (std::size_t c = 0; c < plan.copies.size(); ++c) {
    copies_of_[plan.copies[c].storage.index()].push_back(c);
  }
  for (std::size_t s = 0; s < problem.storages().size(); ++s) {
    const PlanStorage& storage = problem.storages()[s];
    for (std::size_t v = 1; v < storage.values.size(); ++v) {
      const ValueId value = storage.values[v];
      behind_[value.index()] = choose(value, v, storage, PlanStorageId(s));
    }
  }
}

StorageState StorageViews::state(PlanStorageId storage,
                                 const std::optional<std::size_t>& copy) const {
  if (copy) return plan_.copies[*copy].state;
  const PlanStorage& of = problem_.storage(storage);
  const ChoiceSet& maker = *problem_.variable(of.maker).choices;
  return of.kind->made[maker.pick(plan_.choices[of.maker.index()], of.operand)];
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

// What is there when the node of the view runs and can be seen so: the storage
// as made before any copy, a copy that a user takes before others. A view that
// has no users then may be of what is no longer there.
std::optional<std::size_t> StorageViews::choose(ValueId value,
                                                std::size_t place,
                                                const PlanStorage& storage,
                                                PlanStorageId id) const {
  const auto slot =
      static_cast<std::int64_t>(problem_.graph().value(value).producer.index());
  const auto shows = [&](const std::optional<std::size_t>& copy) {
    return StorageViews::shows(problem_, storage, place, state(id, copy));
  };
  const bool as_made = shows(std::nullopt);
  if (as_made && slot <= plan_.freed_at[id.index()]) return std::nullopt;
  std::optional<std::size_t> later;
  for (const std::size_t c : copies_of_[id.index()]) {
    const AssignedCopy& copy = plan_.copies[c];
    if (!shows(c)) continue;
    if (copy.made_at <= slot && slot <= copy.freed_at) return c;
    if (!later) later = c;
  }
  return as_made ? std::nullopt : later;
}

}  // namespace shardprop
