// As exhaustive.h, where what hides in a window is bounded by its compute: the
// ways to hold the storages are then tied to each other. Counts through all
// choices; for each, the ways of every storage are combined, kept as long as no
// other has both less cost and less to hide in every window.
#pragma once

#include "plan/exhaustive.h"
#include "plan/evaluate/plan_assignment.h"
#include "plan/problem/plan_problem.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>
#include <vector>

namespace shardprop::test {

class ExhaustiveWindows {
 public:
  explicit ExhaustiveWindows(const PlanProblem& problem) : problem_(problem) {}

  std::int64_t least() {
    return least_of_all(problem_, choices_, [&] { return least_of_choices(); });
  }

 private:
  using States = std::set<StorageState>;
  struct Way {
    std::int64_t cost = 0;
    std::vector<std::int64_t> hideable;  // by window
  };
  using Ways = std::vector<Way>;

  std::size_t pick(PlanVariableId variable, std::size_t operand) const {
    return problem_.variable(variable).choices->pick(choices_[variable.index()],
                                                     operand);
  }

  Way nothing() const {
    return {0, std::vector<std::int64_t>(problem_.num_windows(), 0)};
  }

  static Way sum(Way a, const Way& b) {
    a.cost += b.cost;
    for (std::size_t w = 0; w < a.hideable.size(); ++w) {
      a.hideable[w] += b.hideable[w];
    }
    return a;
  }

  static bool no_worse(const Way& a, const Way& b) {
    if (a.cost > b.cost) return false;
    for (std::size_t w = 0; w < a.hideable.size(); ++w) {
      if (a.hideable[w] > b.hideable[w]) return false;
    }
    return true;
  }

  static void keep(Ways& ways, Way way) {
    for (const Way& other : ways) {
      if (no_worse(other, way)) return;
    }
    std::erase_if(ways, [&](const Way& other) { return no_worse(way, other); });
    ways.push_back(std::move(way));
  }

  std::int64_t least_of_choices() const {
    Way given = nothing();
    std::vector<std::int64_t> compute(problem_.num_windows(), 0);
    for (std::size_t v = 0; v < choices_.size(); ++v) {
      const PlanVariable& variable = problem_.variables()[v];
      given.cost += variable.choices->costs[choices_[v]];
      if (variable.kind == PlanVariable::Kind::kOperator) {
        compute[problem_.window_of(static_cast<std::int64_t>(
            variable.index))] += variable.choices->compute[choices_[v]];
      } else if (!variable.choices->hidden.empty()) {
        given.hideable[0] += variable.choices->hidden[choices_[v]];
      }
    }
    Ways all{given};
    for (const PlanStorage& storage : problem_.storages()) {
      const StorageState made =
          storage.kind->made[pick(storage.maker, storage.operand)];
      const Ways own = from_segment(storage, made, 0, {made});
      Ways combined;
      for (const Way& a : all) {
        for (const Way& b : own) keep(combined, sum(a, b));
      }
      all = std::move(combined);
    }
    std::int64_t best = std::numeric_limits<std::int64_t>::max();
    for (const Way& way : all) {
      std::int64_t cost = way.cost;
      for (std::size_t w = 0; w < compute.size(); ++w) {
        cost += std::max<std::int64_t>(0, way.hideable[w] - compute[w]);
      }
      best = std::min(best, cost);
    }
    return best;
  }

  void pay(Way& way, const StorageClass::Move& move, std::int64_t slot) const {
    way.cost += move.nanoseconds;
    way.hideable[problem_.window_of(slot)] += move.hidden;
  }

  Ways from_segment(const PlanStorage& storage, StorageState made,
                    std::size_t segment, const States& held) const {
    if (segment == storage.segments.size()) return {nothing()};
    const auto states = static_cast<StorageState>(storage.kind->num_states());
    const UseSegment& uses = storage.segments[segment];
    const std::int64_t begin = storage.uses[uses.first].slot;
    Ways ways;
    for (StorageState a = 0; a < states; ++a) {
      for (StorageState b = a; b < states; ++b) {
        const States next{a, b};
        if (storage.persistent && !next.contains(made)) continue;
        Way here = nothing();
        if (!make(*storage.kind, held, next, begin, here)) continue;
        bool possible = true;
        for (std::size_t u = uses.first; u < uses.first + uses.count; ++u) {
          const StorageState wanted = storage.kind->wanted[u][pick(
              storage.uses[u].variable, storage.uses[u].operand)];
          if (next.contains(wanted)) continue;
          const StorageClass::Move& move = nearest(*storage.kind, next, wanted);
          possible = possible && move.nanoseconds < kUnreachable;
          if (possible && is_late(storage.uses[u])) {
            pay_late(here, storage, next, wanted, storage.uses[u].slot);
          } else {
            pay(here, move, storage.uses[u].slot);
          }
        }
        if (!possible) continue;
        for (const Way& rest : from_segment(storage, made, segment + 1, next)) {
          keep(ways, sum(here, rest));
        }
      }
    }
    return ways;
  }

  // Whether the use is of an accumulated gradient, once a step.
  bool is_late(const StorageUse& use) const {
    return problem_.is_reduced_late(problem_.variable(use.variable),
                                    choices_[use.variable.index()]);
  }

  void pay_late(Way& way, const PlanStorage& storage, const States& held,
                StorageState wanted, std::int64_t slot) const {
    const StorageClass& kind = *storage.kind;
    const StorageState from = *std::min_element(
        held.begin(), held.end(), [&](StorageState a, StorageState b) {
          return kind.move(a, wanted).transfer() <
                 kind.move(b, wanted).transfer();
        });
    const Taking share = once_a_step(problem_, storage, from, wanted);
    way.cost += share.nanoseconds;
    way.hideable[problem_.window_of(slot)] += share.hidden;
  }

  static const StorageClass::Move& nearest(const StorageClass& kind,
                                           const States& held,
                                           StorageState wanted) {
    const StorageClass::Move* least = nullptr;
    for (const StorageState from : held) {
      const StorageClass::Move& move = kind.move(from, wanted);
      if (least == nullptr || move.transfer() < least->transfer()) {
        least = &move;
      }
    }
    return *least;
  }

  // The new states in the better of both orders.
  bool make(const StorageClass& kind, const States& held, const States& next,
            std::int64_t slot, Way& way) const {
    std::vector<StorageState> fresh;
    for (const StorageState s : next) {
      if (!held.contains(s)) fresh.push_back(s);
    }
    std::int64_t best = std::numeric_limits<std::int64_t>::max();
    Way made;
    do {
      States have = held;
      Way order = way;
      std::int64_t transfer = 0;
      for (const StorageState s : fresh) {
        const StorageClass::Move& move = nearest(kind, have, s);
        transfer += move.transfer();
        pay(order, move, slot);
        have.insert(s);
      }
      if (transfer < best) {
        best = transfer;
        made = order;
      }
    } while (std::next_permutation(fresh.begin(), fresh.end()));
    way = std::move(made);
    return best < kUnreachable;
  }

  const PlanProblem& problem_;
  std::vector<std::uint32_t> choices_;
};

}  // namespace shardprop::test
