#include "redistribute/detour.h"

namespace shardprop::redistribute {
namespace {

// Returns the mesh dims that cut a tensor dim on which some cut is strided.
Mask strided_cuts(const State& state, const ActiveDims& active,
                  const Alphabet& alphabet) {
  Mask cuts = 0;
  for (int i = 0; i < active.count; ++i) {
    const Alphabet::Symbol& symbol = alphabet[state.symbol[i]];
    if (!symbol.placement.is_strided()) continue;
    for (int j = 0; j < active.count; ++j) {
      if (alphabet[state.symbol[j]].dim == symbol.dim) cuts |= Mask{1} << j;
    }
  }
  return cuts;
}

State without(State state, Mask cuts) {
  for (int i = 0; i < kMaxPlannedDims; ++i) {
    if ((cuts >> i & 1U) == 0) continue;
    state.symbol[i] = 0;
    state.order[i] = 0;
  }
  return state;
}

// Returns the same layout in the symbols of another alphabet.
State translated(State state, const ActiveDims& active, const Alphabet& from,
                 const Alphabet& to) {
  for (int i = 0; i < active.count; ++i) {
    const auto symbol = to.find(from[state.symbol[i]].placement);
    if (!symbol) throw InternalError("a detour leaves its alphabet");
    state.symbol[i] = *symbol;
  }
  return state;
}

void append_step(const SearchProblem& problem, const PathStep& step,
                 Path& path) {
  MovePricer pricer(problem.times, problem.active, problem.alphabet,
                    problem.meta);
  path.nanoseconds +=
      pricer
          .price(step.move, step.group, step.from, pricer.local_size(step.from),
                 step.to, pricer.local_size(step.to))
          .nanoseconds;
  path.steps.push_back(step);
}

}  // namespace

std::optional<Path> path_around_strides(const SearchProblem& problem,
                                        const State& source,
                                        const State& target) {
  const ActiveDims& active = problem.active;
  const Alphabet& alphabet = problem.alphabet;
  const Mask gathered = strided_cuts(source, active, alphabet);
  const Mask sliced = strided_cuts(target, active, alphabet);
  const State first = without(source, gathered);
  const State last = without(target, sliced);
  const Layout others = Layout::replicated(problem.mesh.ndim());
  const Layout ends[] = {to_layout(first, active, alphabet, others),
                         to_layout(last, active, alphabet, others)};
  const auto plain =
      Alphabet::create(active, problem.meta, ends, SplitFactors::kEndpoints);
  if (!plain) throw InternalError("fewer placements are too many");
  const SearchProblem inner{active,       *plain,       problem.times,
                            problem.mesh, problem.meta, std::nullopt,
                            nullptr};
  const auto between =
      shortest_path(inner, translated(first, active, alphabet, *plain),
                    translated(last, active, alphabet, *plain));
  if (!between) return std::nullopt;
  Path path;
  if (gathered != 0) {
    append_step(problem, {Move::kGather, gathered, source, first}, path);
  }
  path.nanoseconds += between->nanoseconds;
  for (const PathStep& step : between->steps) {
    path.steps.push_back({step.move, step.group,
                          translated(step.from, active, *plain, alphabet),
                          translated(step.to, active, *plain, alphabet)});
  }
  if (sliced != 0) {
    append_step(problem, {Move::kSlice, sliced, last, target}, path);
  }
  return path;
}

}  // namespace shardprop::redistribute
