// The least cost of a plan problem on one mesh dim by counting through all
// choices and, buffer by buffer, through all ways to cache it. Memory is left
// out. Variables that choose alike have one choice. The code knows the space as
// plan_assignment.h states it and nothing of how it is searched.
#pragma once

#include "plan/problem/build/cached_layouts.h"
#include "plan/problem/equal_choices.h"
#include "plan/problem/plan_problem.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>
#include <vector>

namespace shardprop::test {

// Returns, by variable, the variables that choose with it; empty if an earlier
// variable lists it.
inline std::vector<std::vector<std::size_t>> choosing_together(
    const PlanProblem& problem) {
  std::vector<std::vector<std::size_t>> out(problem.variables().size());
  for (std::size_t v = 0; v < out.size(); ++v) {
    out[problem.equal_choices().first(PlanVariableId(v)).index()].push_back(v);
  }
  return out;
}

// Returns the least `cost()` of any combination of choices. Before each
// call, `choices` holds one of them.
template <class Cost>
std::int64_t least_of_all(const PlanProblem& problem,
                          std::vector<std::uint32_t>& choices,
                          const Cost& cost) {
  choices.assign(problem.variables().size(), 0);
  const std::vector<std::vector<std::size_t>> together =
      choosing_together(problem);
  const auto choose = [&](std::size_t v, std::uint32_t choice) {
    for (const std::size_t each : together[v]) choices[each] = choice;
  };
  std::int64_t best = std::numeric_limits<std::int64_t>::max();
  while (true) {
    best = std::min(best, cost());
    std::size_t v = 0;
    for (; v < choices.size(); ++v) {
      if (together[v].empty()) continue;
      if (choices[v] + 1 < problem.variables()[v].choices->size()) {
        choose(v, choices[v] + 1);
        break;
      }
      choose(v, 0);
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
    const auto together = choosing_together(problem_);
    for (std::size_t v = 0; v < together.size(); ++v) {
      if (together[v].empty()) continue;
      product *= static_cast<double>(problem_.variables()[v].choices->size());
    }
    return product;
  }

  std::int64_t least() {
    return least_of_all(problem_, choices_, [&] { return cost(); });
  }

 private:
  using States = std::set<BufferLayout>;

  std::size_t pick(PlanVariableId variable, std::size_t operand) const {
    return problem_.variable(variable).choices->pick(choices_[variable.index()],
                                                     operand);
  }

  std::int64_t cost() const {
    std::int64_t sum = 0;
    for (std::size_t v = 0; v < choices_.size(); ++v) {
      sum += problem_.variables()[v].choices->costs[choices_[v]];
    }
    for (const PlanBuffer& buffer : problem_.buffers()) {
      const BufferLayout produced =
          buffer.kind->produced[pick(buffer.producer, buffer.operand)];
      sum += from_segment(buffer, produced, 0, {produced});
    }
    return sum;
  }

  // The least that the segments from `segment` on cost when `cached` is held
  // before.
  std::int64_t from_segment(const PlanBuffer& buffer, BufferLayout produced,
                            std::size_t segment, const States& cached) const {
    if (segment == buffer.segments.size()) return 0;
    const auto states = static_cast<BufferLayout>(buffer.kind->num_states());
    std::int64_t best = std::numeric_limits<std::int64_t>::max();
    for (BufferLayout a = 0; a < states; ++a) {
      for (BufferLayout b = a; b < states; ++b) {
        const States next{a, b};
        if (!may_hold(buffer, produced, next)) continue;
        std::int64_t sum = making(*buffer.kind, cached, next);
        const UseSegment& uses = buffer.segments[segment];
        for (std::size_t u = uses.first; u < uses.first + uses.count; ++u) {
          const BufferLayout required = buffer.kind->required[u][pick(
              buffer.uses[u].variable, buffer.uses[u].operand)];
          if (!next.contains(required)) {
            sum += is_late(buffer.uses[u])
                       ? late(buffer, next, required)
                       : nearest(*buffer.kind, next, required);
          }
        }
        if (sum >= best) continue;
        best = std::min(
            best, sum + from_segment(buffer, produced, segment + 1, next));
      }
    }
    return best;
  }

  // On one mesh dim any two states are neighbours.
  static bool may_hold(const PlanBuffer& buffer, BufferLayout produced,
                       const States& states) {
    return !buffer.persistent || states.contains(produced);
  }

  // Whether the use is of an accumulated gradient, once a step.
  bool is_late(const BufferUse& use) const {
    return problem_.is_reduced_late(problem_.variable(use.variable),
                                    choices_[use.variable.index()]);
  }

  std::int64_t late(const PlanBuffer& buffer, const States& cached,
                    BufferLayout required) const {
    const BufferClass& kind = *buffer.kind;
    const BufferLayout from = *std::min_element(
        cached.begin(), cached.end(), [&](BufferLayout a, BufferLayout b) {
          return kind.move(a, required).transfer() <
                 kind.move(b, required).transfer();
        });
    return kind.move(from, required).is_reachable()
               ? once_a_step(problem_, buffer, from, required).nanoseconds
               : kUnreachable;
  }

  static std::int64_t nearest(const BufferClass& kind, const States& cached,
                              BufferLayout required) {
    std::int64_t least = kUnreachable;
    for (const BufferLayout from : cached) {
      least = std::min(least, kind.move(from, required).nanoseconds);
    }
    return least;
  }

  // The new states in the better of both orders.
  static std::int64_t making(const BufferClass& kind, const States& cached,
                             const States& next) {
    std::vector<BufferLayout> fresh;
    for (const BufferLayout s : next) {
      if (!cached.contains(s)) fresh.push_back(s);
    }
    std::int64_t best = std::numeric_limits<std::int64_t>::max();
    do {
      States have = cached;
      std::int64_t sum = 0;
      for (const BufferLayout s : fresh) {
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
