#include "plan/network/view_memory.h"

#include <algorithm>

namespace shardprop {
namespace {

PlanStorageId shown_by(const PlanProblem& problem, const PlanStorage& view) {
  const PlanVariable& maker = problem.variable(view.maker);
  return problem.value(maker.uses[*view.shows]).storage;
}

// Returns the first slot after the last use of a buffer.
std::int64_t end_of(const PlanProblem& problem, const PlanStorage& storage) {
  if (storage.persistent) {
    return static_cast<std::int64_t>(problem.graph().nodes().size()) + 1;
  }
  std::int64_t end = storage.made_at + 1;
  for (const StorageUse& use : storage.uses) end = std::max(end, use.until + 1);
  return end;
}

}  // namespace

ShownMemory::ShownMemory(const PlanProblem& problem)
    : views_(problem.storages().size()),
      roots_(problem.storages().size()),
      keepers_(problem.storages().size(), 0) {
  find_lives(problem);
  find_shares(problem);
}

// Views come after the buffers that they alias.
void ShownMemory::find_lives(const PlanProblem& problem) {
  for (std::size_t s = 0; s < roots_.size(); ++s) {
    const PlanStorage& storage = problem.storages()[s];
    roots_[s] = s;
    if (!storage.shows) continue;
    const PlanStorageId shown = shown_by(problem, storage);
    roots_[s] = roots_[shown.index()];
    // A buffer that the aliased one aliases in turn may be in use for longer.
    views_[s].covered_until = std::max(views_[shown.index()].covered_until,
                                       end_of(problem, problem.storage(shown)));
    if (end_of(problem, storage) > views_[s].covered_until) {
      ++keepers_[roots_[s]];
    }
  }
}

// A view may alias a buffer as it was produced, or a copy of it, which has
// bytes of its own. If the aliased buffer is a view itself, the smaller figure
// counts: its own bytes, or the bytes that it aliases.
void ShownMemory::find_shares(const PlanProblem& problem) {
  std::vector<std::vector<std::int64_t>> least(views_.size());  // by state
  for (std::size_t s = 0; s < views_.size(); ++s) {
    const PlanStorage& storage = problem.storages()[s];
    if (!storage.shows) continue;
    const PlanVariable& maker = problem.variable(storage.maker);
    const PlanStorageId shown = shown_by(problem, storage);
    const std::vector<std::int64_t>& bytes =
        least[shown.index()].empty() ? problem.storage(shown).kind->bytes
                                     : least[shown.index()];
    const std::int64_t keepers = std::max<std::int64_t>(keepers_[roots_[s]], 1);
    View& view = views_[s];
    view.by_state.assign(storage.kind->num_states(), kNotMade);
    least[s] = storage.kind->bytes;
    for (std::size_t c = 0; c < maker.choices->size(); ++c) {
      const std::int64_t whole = bytes[problem.state_wanted(
          problem.storage(shown), maker.use_places[*storage.shows], c)];
      const StorageState made = problem.state_made(storage, c);
      view.by_choice.push_back(whole / keepers);
      view.by_state[made] = std::min(view.by_state[made], whole / keepers);
      least[s][made] = std::min(least[s][made], whole);
    }
  }
}

}  // namespace shardprop
