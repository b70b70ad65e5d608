// The least cost of a plan problem on one mesh dim by counting through all
// choices and, storage by storage, through all ways to hold it. Memory is left
// out. Knows the space as plan_assignment.h states it and nothing of how it is
// searched.
#pragma once

#include "plan/problem/build/cached_layouts.h"
#include "plan/problem/plan_problem.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>
#include <vector>

namespace shardprop::test {

// The least of `cost()` over all combinations of choices, which are put into
// `choices` one after the other.
template <class Cost>
std::int64_t least_of_all(const PlanProblem& problem,
                          std::vector<std::uint32_t>& choices,
                          const Cost& cost) {
  choices.assign(problem.variables().size(), 0);
  std::int64_t best = std::numeric_limits<std::int64_t>::max();
  while (true) {
    best = std::min(best, cost());
    std::size_t v = 0;
    while (v < choices.size() &&
           ++choices[v] == problem.variables()[v].choices->size()) {
      choices[v++] = 0;
    }
    if (v == choices.size()) return best;
  }
}

class Exhaustive {
 public:
  explicit Exhaustive(const PlanProblem& problem) : problem_(problem) {}

  // How many combinations of choices there are.
  double size() const {
    double product = 1;
    for (const PlanVariable& v : problem_.variables()) {
      product *= static_cast<double>(v.choices->size());
    }
    return product;
  }

  std::int64_t least() {
    return least_of_all(problem_, choices_, [&] { return cost(); });
  }

 private:
  using States = std::set<StorageState>;

  std::size_t pick(PlanVariableId variable, std::size_t operand) const {
    return problem_.variable(variable).choices->pick(choices_[variable.index()],
                                                     operand);
  }

  std::int64_t cost() const {
    std::int64_t sum = 0;
    for (std::size_t v = 0; v < choices_.size(); ++v) {
      sum += problem_.variables()[v].choices->costs[choices_[v]];
    }
    for (const PlanStorage& storage : problem_.storages()) {
      const StorageState made =
          storage.kind->made[pick(storage.maker, storage.operand)];
      sum += from_segment(storage, made, 0, {made});
    }
    return sum;
  }

  // The least that the segments from `segment` on cost when `held` is held
  // before.
  std::int64_t from_segment(const PlanStorage& storage, StorageState made,
                            std::size_t segment, const States& held) const {
    if (segment == storage.segments.size()) return 0;
    const auto states = static_cast<StorageState>(storage.kind->num_states());
    std::int64_t best = std::numeric_limits<std::int64_t>::max();
    for (StorageState a = 0; a < states; ++a) {
      for (StorageState b = a; b < states; ++b) {
        const States next{a, b};
        if (!may_hold(storage, made, next)) continue;
        std::int64_t sum = making(*storage.kind, held, next);
        const UseSegment& uses = storage.segments[segment];
        for (std::size_t u = uses.first; u < uses.first + uses.count; ++u) {
          const StorageState wanted = storage.kind->wanted[u][pick(
              storage.uses[u].variable, storage.uses[u].operand)];
          if (!next.contains(wanted)) {
            sum += is_late(storage.uses[u])
                       ? late(storage, next, wanted)
                       : nearest(*storage.kind, next, wanted);
          }
        }
        if (sum >= best) continue;
        best = std::min(best,
                        sum + from_segment(storage, made, segment + 1, next));
      }
    }
    return best;
  }

  // On one mesh dim any two states are neighbours.
  static bool may_hold(const PlanStorage& storage, StorageState made,
                       const States& states) {
    return !storage.persistent || states.contains(made);
  }

  // Whether the use is of an accumulated gradient, once a step.
  bool is_late(const StorageUse& use) const {
    return problem_.is_reduced_late(problem_.variable(use.variable),
                                    choices_[use.variable.index()]);
  }

  std::int64_t late(const PlanStorage& storage, const States& held,
                    StorageState wanted) const {
    const StorageClass& kind = *storage.kind;
    const StorageState from = *std::min_element(
        held.begin(), held.end(), [&](StorageState a, StorageState b) {
          return kind.move(a, wanted).transfer() <
                 kind.move(b, wanted).transfer();
        });
    return kind.move(from, wanted).is_reachable()
               ? once_a_step(problem_, storage, from, wanted).nanoseconds
               : kUnreachable;
  }

  static std::int64_t nearest(const StorageClass& kind, const States& held,
                              StorageState wanted) {
    std::int64_t least = kUnreachable;
    for (const StorageState from : held) {
      least = std::min(least, kind.move(from, wanted).nanoseconds);
    }
    return least;
  }

  // The new states in the better of both orders.
  static std::int64_t making(const StorageClass& kind, const States& held,
                             const States& next) {
    std::vector<StorageState> fresh;
    for (const StorageState s : next) {
      if (!held.contains(s)) fresh.push_back(s);
    }
    std::int64_t best = std::numeric_limits<std::int64_t>::max();
    do {
      States have = held;
      std::int64_t sum = 0;
      for (const StorageState s : fresh) {
        sum += nearest(kind, have, s);
        have.insert(s);
      }
      best = std::min(best, sum);
    } while (std::next_permutation(fresh.begin(), fresh.end()));
    return best;
  }

  const PlanProblem& problem_;
  std::vector<std::uint32_t> choices_;
};

}  // namespace shardprop::test
