#include "plan/problem/build/cached_layouts.h"

#include "base/saturating.h"
#include "plan/problem/layout_relations.h"
#include "plan/problem/problem_data.h"
#include "plan/transfer_time.h"
#include "plan/tuning.h"

#include <algorithm>
#include <bit>

namespace shardprop {
namespace {

// Counts joined mesh dims as one.
bool few_dims(const PlanProblem& problem) {
  const std::uint32_t joined = problem.data().set_up.space.joined_dims;
  return problem.mesh().num_active_dims() - std::popcount(joined) <=
         tuning::kMostDimsOfPairedLayouts;
}

// Returns whether one layout gathers the other or they differ on one mesh dim,
// for a value that has a layout in both.
bool related(const PlanProblem& problem, const BufferClass& kind,
             BufferLayout a, BufferLayout b) {
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
std::vector<std::size_t> wishes(const BufferClass& kind) {
  std::vector<std::size_t> out(kind.num_states(), 0);
  for (const auto& required : kind.required) {
    for (const BufferLayout state : required) ++out[state];
  }
  return out;
}

std::vector<BufferLayout> produced_layouts(const BufferClass& kind) {
  std::vector<BufferLayout> produced = kind.produced;
  std::sort(produced.begin(), produced.end());
  produced.erase(std::unique(produced.begin(), produced.end()), produced.end());
  return produced;
}

}  // namespace

std::vector<CachedLayouts> cached_layouts(const PlanProblem& problem,
                                          const PlanBuffer& buffer) {
  const BufferClass& kind = *buffer.kind;
  const std::vector<std::size_t> required = wishes(kind);
  const std::vector<BufferLayout> produced = produced_layouts(kind);
  const bool few = few_dims(problem);
  std::vector<CachedLayouts> sets;
  const auto states = static_cast<BufferLayout>(kind.num_states());
  if (buffer.persistent) {
    for (const BufferLayout own : produced) {
      sets.push_back({own, own});
      for (BufferLayout other = 0; other < states; ++other) {
        if (other == own || required[other] == 0 ||
            !kind.move(own, other).is_reachable() ||
            (!few && !related(problem, kind, own, other))) {
          continue;
        }
        sets.push_back({own, other});
      }
    }
    return sets;
  }
  for (BufferLayout state = 0; state < states; ++state) {
    sets.push_back({state, state});
  }
  // Caching two layouts can pay only with three or more uses. With two uses,
  // the second one can read from the layout that is cached for the first.
  if (buffer.uses.size() < 3 || !few) return sets;
  for (BufferLayout a = 0; a < states; ++a) {
    for (BufferLayout b = static_cast<BufferLayout>(a + 1); b < states; ++b) {
      if (required[a] > 0 && required[b] > 0 && related(problem, kind, a, b)) {
        sets.push_back({a, b});
      }
    }
  }
  return sets;
}

Transition transition(const PlanBuffer& buffer, CachedLayouts from,
                      CachedLayouts to) {
  const BufferClass& kind = *buffer.kind;
  if (buffer.persistent && from.first != to.first) {
    return {.is_possible = false};
  }
  const bool first_is_new = !from.has(to.first);
  const bool second_is_new = !from.has(to.second);
  if (!first_is_new && !second_is_new) return {};
  if (to.first == to.second || !first_is_new || !second_is_new) {
    const BufferLayout produced = first_is_new ? to.first : to.second;
    const Fetch best = fetch(buffer, from, produced);
    return {best.nanoseconds,
            best.overlapped,
            {{produced, best.from}},
            best.is_possible};
  }
  // Either layout may be produced first, and the other one from it.
  Transition best{.is_possible = false};
  std::int64_t least = kMostInt;
  for (const auto& [one, other] :
       {std::pair{to.first, to.second}, std::pair{to.second, to.first}}) {
    const Fetch first = fetch(buffer, from, one);
    Fetch then = fetch(buffer, from, other);
    const BufferClass::Move& between = kind.move(one, other);
    if (between.transfer() < then.nanoseconds + then.overlapped) {
      then = {between.nanoseconds, between.overlapped, one,
              between.is_reachable()};
    }
    if (!first.is_possible || !then.is_possible) continue;
    const std::int64_t transfer = first.nanoseconds + first.overlapped +
                                  then.nanoseconds + then.overlapped;
    if (transfer >= least) continue;
    least = transfer;
    best = {first.nanoseconds + then.nanoseconds,
            first.overlapped + then.overlapped,
            {{one, first.from}, {other, then.from}},
            true};
  }
  return best;
}

Fetch fetch(const PlanBuffer& buffer, CachedLayouts cached,
            BufferLayout required) {
  if (cached.has(required)) return {0, 0, required};
  const BufferClass& kind = *buffer.kind;
  const BufferClass::Move& one = kind.move(cached.first, required);
  const BufferClass::Move& two = kind.move(cached.second, required);
  const bool from_first = one.transfer() <= two.transfer();
  const BufferClass::Move& best = from_first ? one : two;
  return {best.nanoseconds, best.overlapped,
          from_first ? cached.first : cached.second, best.is_reachable()};
}

Fetch once_a_step(const PlanProblem& problem, const PlanBuffer& buffer,
                  BufferLayout from, BufferLayout to) {
  if (from == to) return {0, 0, from};
  const BufferClass& kind = *buffer.kind;
  const BufferClass::Move& move = kind.move(from, to);
  if (move.via != BufferClass::Move::kDirect) {
    const auto via = static_cast<BufferLayout>(move.via);
    const Fetch there = once_a_step(problem, buffer, from, via);
    const Fetch on = once_a_step(problem, buffer, via, to);
    return {.nanoseconds = there.nanoseconds + on.nanoseconds,
            .overlapped = there.overlapped + on.overlapped,
            .from = from,
            .is_once_a_step = true};
  }
  const std::int64_t boundary = problem.cut_nanoseconds(
      buffer, buffer.values[move.value], kind.layouts[move.value][from],
      kind.layouts[move.value][to]);
  const TransferTime share = share_of_step(
      problem.options(), {move.nanoseconds - boundary, move.overlapped});
  return {.nanoseconds = share.waited + boundary,
          .overlapped = share.overlappable,
          .from = from,
          .is_once_a_step = true};
}

}  // namespace shardprop
