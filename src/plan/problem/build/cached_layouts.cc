#include "plan/problem/build/cached_layouts.h"

#include "base/saturating.h"
#include "plan/problem/layout_relations.h"
#include "plan/problem/problem_data.h"

#include <algorithm>
#include <bit>

namespace shardprop {
namespace {

// Unit: mesh dims larger than 1. On meshes with more of them there are too many
// pairs of layouts. Only inputs are then cached in two.
constexpr int kMostPairedDims = 2;

// Counts joined mesh dims as one.
bool few_dims(const PlanProblem& problem) {
  const auto& dims = problem.mesh().dims();
  const auto larger =
      std::count_if(dims.begin(), dims.end(),
                    [](const MeshDim& dim) { return dim.size > 1; });
  return larger - std::popcount(
                      problem.data().set_up.space.joined_dims) <=
         kMostPairedDims;
}

// Returns whether one layout gathers the other or they differ on one mesh dim,
// for a value that has a layout in both.
bool related(const PlanProblem& problem, const StorageClass& kind,
             StorageState a, StorageState b) {
  for (const std::vector<LayoutId>& layouts : kind.layouts) {
    if (!layouts[a].valid() || !layouts[b].valid()) continue;
    const Layout& of_a = problem.layouts()[layouts[a]];
    const Layout& of_b = problem.layouts()[layouts[b]];
    if (mesh_dims_apart(of_a, of_b) <= 1 || gathers(of_a, of_b) ||
        gathers(of_b, of_a)) {
      return true;
    }
  }
  return false;
}

// Returns, by state, the number of uses that may read it.
std::vector<std::size_t> wishes(const StorageClass& kind) {
  std::vector<std::size_t> out(kind.num_states(), 0);
  for (const auto& wanted : kind.wanted) {
    for (const StorageState state : wanted) ++out[state];
  }
  return out;
}

std::vector<StorageState> made_states(const StorageClass& kind) {
  std::vector<StorageState> made = kind.made;
  std::sort(made.begin(), made.end());
  made.erase(std::unique(made.begin(), made.end()), made.end());
  return made;
}

}  // namespace

std::vector<HeldSet> held_sets(const PlanProblem& problem,
                               const PlanStorage& storage) {
  const StorageClass& kind = *storage.kind;
  const std::vector<std::size_t> wanted = wishes(kind);
  const std::vector<StorageState> made = made_states(kind);
  const bool few = few_dims(problem);
  std::vector<HeldSet> sets;
  const auto states = static_cast<StorageState>(kind.num_states());
  if (storage.persistent) {
    for (const StorageState own : made) {
      sets.push_back({own, own});
      for (StorageState other = 0; other < states; ++other) {
        if (other == own || wanted[other] == 0 ||
            !kind.move(own, other).is_reachable() ||
            (!few && !related(problem, kind, own, other))) {
          continue;
        }
        sets.push_back({own, other});
      }
    }
    return sets;
  }
  for (StorageState state = 0; state < states; ++state) {
    sets.push_back({state, state});
  }
  // Caching two layouts can pay only with three or more uses. With two uses,
  // the second one can read from the layout that is cached for the first.
  if (storage.uses.size() < 3 || !few) return sets;
  for (StorageState a = 0; a < states; ++a) {
    for (StorageState b = static_cast<StorageState>(a + 1); b < states; ++b) {
      if (wanted[a] > 0 && wanted[b] > 0 && related(problem, kind, a, b)) {
        sets.push_back({a, b});
      }
    }
  }
  return sets;
}

Transition transition(const PlanStorage& storage, HeldSet from, HeldSet to) {
  const StorageClass& kind = *storage.kind;
  if (storage.persistent && from.first != to.first) {
    return {.is_possible = false};
  }
  const bool first_is_new = !from.has(to.first);
  const bool second_is_new = !from.has(to.second);
  if (!first_is_new && !second_is_new) return {};
  if (to.first == to.second || !first_is_new || !second_is_new) {
    const StorageState made = first_is_new ? to.first : to.second;
    const Taking best = taking(storage, from, made);
    return {best.nanoseconds,
            best.hidden,
            {{made, best.from}},
            best.is_possible};
  }
  // Either layout may be produced first, and the other one from it.
  Transition best{.is_possible = false};
  std::int64_t least = kMostInt;
  for (const auto& [one, other] :
       {std::pair{to.first, to.second}, std::pair{to.second, to.first}}) {
    const Taking first = taking(storage, from, one);
    Taking then = taking(storage, from, other);
    const StorageClass::Move& between = kind.move(one, other);
    if (between.transfer() < then.nanoseconds + then.hidden) {
      then = {between.nanoseconds, between.hidden, one,
              between.is_reachable()};
    }
    if (!first.is_possible || !then.is_possible) continue;
    const std::int64_t transfer =
        first.nanoseconds + first.hidden + then.nanoseconds + then.hidden;
    if (transfer >= least) continue;
    least = transfer;
    best = {first.nanoseconds + then.nanoseconds,
            first.hidden + then.hidden,
            {{one, first.from}, {other, then.from}},
            true};
  }
  return best;
}

Taking taking(const PlanStorage& storage, HeldSet held, StorageState wanted) {
  if (held.has(wanted)) return {0, 0, wanted};
  const StorageClass& kind = *storage.kind;
  const StorageClass::Move& one = kind.move(held.first, wanted);
  const StorageClass::Move& two = kind.move(held.second, wanted);
  const bool from_first = one.transfer() <= two.transfer();
  const StorageClass::Move& best = from_first ? one : two;
  return {best.nanoseconds, best.hidden, from_first ? held.first : held.second,
          best.is_reachable()};
}

Taking once_a_step(const PlanProblem& problem, const PlanStorage& storage,
                   StorageState from, StorageState to) {
  if (from == to) return {0, 0, from};
  const StorageClass& kind = *storage.kind;
  const StorageClass::Move& move = kind.move(from, to);
  if (move.via != StorageClass::Move::kDirect) {
    const auto via = static_cast<StorageState>(move.via);
    const Taking there = once_a_step(problem, storage, from, via);
    const Taking on = once_a_step(problem, storage, via, to);
    return {there.nanoseconds + on.nanoseconds, there.hidden + on.hidden, from};
  }
  const std::int64_t boundary = problem.cut_nanoseconds(
      storage, storage.values[move.value], kind.layouts[move.value][from],
      kind.layouts[move.value][to]);
  return {problem.share_of_step(move.nanoseconds - boundary) + boundary,
          problem.share_of_step(move.hidden), from};
}

}  // namespace shardprop
