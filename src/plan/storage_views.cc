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

// The storage as made or a copy of it: one in which the view and what it views
// can both be had, so that the node of the view has a strategy. (A copy may be
// of the view alone: a gradient that is handed back in shards which its views
// do not carry.) One that is there when the node runs, if any; as made before
// any copy, then the first copy. A view whose users all take a copy made early
// may be of what is no longer there: it is replayed where the copy is made.
std::optional<std::size_t> StorageViews::choose(ValueId value,
                                                std::size_t place,
                                                const PlanStorage& storage,
                                                PlanStorageId id) const {
  const NodeId producer = problem_.graph().value(value).producer;
  const auto slot = static_cast<std::int64_t>(producer.index());
  const ValueId parent = problem_.graph().node(producer).inputs[0];
  const auto& layouts = storage.kind->layouts;
  const auto shows = [&](const std::optional<std::size_t>& copy) {
    const StorageState in = state(id, copy);
    return layouts[place][in].valid() &&
           layouts[problem_.value(parent).place][in].valid();
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
