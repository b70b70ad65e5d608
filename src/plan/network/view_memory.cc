#include "plan/network/view_memory.h"

#include <algorithm>

namespace shardprop {
namespace {

PlanBufferId viewed_by(const PlanProblem& problem, const PlanBuffer& view) {
  const PlanVariable& producer = problem.variable(view.producer);
  return problem.value(producer.uses[*view.view_of_use]).buffer;
}

// Returns the first slot after the last use of a buffer.
std::int64_t end_of(const PlanProblem& problem, const PlanBuffer& buffer) {
  if (buffer.persistent) {
    return static_cast<std::int64_t>(problem.graph().nodes().size()) + 1;
  }
  std::int64_t end = buffer.produced_at + 1;
  for (const BufferUse& use : buffer.uses) end = std::max(end, use.until + 1);
  return end;
}

}  // namespace

ViewMemory::ViewMemory(const PlanProblem& problem)
    : views_(problem.buffers().size()),
      roots_(problem.buffers().size()),
      keepers_(problem.buffers().size(), 0) {
  find_lives(problem);
  find_shares(problem);
}

// Views come after the buffers that they alias.
void ViewMemory::find_lives(const PlanProblem& problem) {
  for (std::size_t s = 0; s < roots_.size(); ++s) {
    const PlanBuffer& buffer = problem.buffers()[s];
    roots_[s] = s;
    if (!buffer.view_of_use) continue;
    const PlanBufferId viewed = viewed_by(problem, buffer);
    roots_[s] = roots_[viewed.index()];
    // A buffer that the aliased one aliases in turn may be in use for longer.
    views_[s].covered_until = std::max(views_[viewed.index()].covered_until,
                                       end_of(problem, problem.buffer(viewed)));
    if (end_of(problem, buffer) > views_[s].covered_until) {
      ++keepers_[roots_[s]];
    }
  }
}

// A view may alias a buffer as it was produced, or a copy of it, which has
// bytes of its own. If the aliased buffer is a view itself, the smaller figure
// counts: its own bytes, or the bytes that it aliases.
void ViewMemory::find_shares(const PlanProblem& problem) {
  std::vector<std::vector<std::int64_t>> least(views_.size());  // by state
  for (std::size_t s = 0; s < views_.size(); ++s) {
    const PlanBuffer& buffer = problem.buffers()[s];
    if (!buffer.view_of_use) continue;
    const PlanVariable& producer = problem.variable(buffer.producer);
    const PlanBufferId viewed = viewed_by(problem, buffer);
    const std::vector<std::int64_t>& bytes =
        least[viewed.index()].empty() ? problem.buffer(viewed).kind->bytes
                                      : least[viewed.index()];
    const std::int64_t keepers = std::max<std::int64_t>(keepers_[roots_[s]], 1);
    View& view = views_[s];
    view.by_state.assign(buffer.kind->num_states(), kNotMade);
    least[s] = buffer.kind->bytes;
    for (std::size_t c = 0; c < producer.choices->size(); ++c) {
      const std::int64_t whole = bytes[problem.layout_required(
          problem.buffer(viewed), producer.use_places[*buffer.view_of_use], c)];
      const BufferLayout produced = problem.layout_produced(buffer, c);
      view.by_choice.push_back(whole / keepers);
      view.by_state[produced] =
          std::min(view.by_state[produced], whole / keepers);
      least[s][produced] = std::min(least[s][produced], whole);
    }
  }
}

}  // namespace shardprop
