// As exhaustive.h, where what hides in a window is bounded by its compute: the
// ways to hold the storages are then tied to each other. Counts through all
// choices; for each, the ways of every storage are combined, kept as long as no
// other has both less cost and less to hide in every window.
#pragma once

#include "plan/evaluate/plan_assignment.h"
#include "plan/exhaustive.h"
#include "plan/problem/plan_problem.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
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
  using States = std::set<BufferLayout>;
  struct Way {
    std::int64_t cost = 0;
    std::vector<std::int64_t> overlappable;  // by load (window_loads.h)
  };
  using Ways = std::vector<Way>;

  std::size_t pick(PlanVariableId variable, std::size_t operand) const {
    return problem_.variable(variable).choices->pick(choices_[variable.index()],
                                                     operand);
  }

  Way nothing() const {
    return {0, std::vector<std::int64_t>(problem_.window_loads().size(), 0)};
  }

  static Way sum(Way a, const Way& b) {
    a.cost += b.cost;
    for (std::size_t w = 0; w < a.overlappable.size(); ++w) {
      a.overlappable[w] += b.overlappable[w];
    }
    return a;
  }

  static bool no_worse(const Way& a, const Way& b) {
    if (a.cost > b.cost) return false;
    for (std::size_t w = 0; w < a.overlappable.size(); ++w) {
      if (a.overlappable[w] > b.overlappable[w]) return false;
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
    const WindowLoads loads = problem_.window_loads();
    std::vector<std::int64_t> compute(loads.size(), 0);
    for (std::size_t v = 0; v < choices_.size(); ++v) {
      const PlanVariable& variable = problem_.variables()[v];
      given.cost += variable.choices->costs[choices_[v]];
      if (variable.kind == PlanVariable::Kind::kOperator) {
        loads.divide(
            problem_.window_of(static_cast<std::int64_t>(variable.index)),
            variable.choices->compute[choices_[v]],
            [&](std::size_t load, std::int64_t part) {
              compute[load] += part;
            });
      } else if (!variable.choices->overlapped.empty()) {
        const auto window = problem_.window_after_update(variable);
        (window ? given.overlappable[loads.first(*window)] : given.cost) +=
            variable.choices->overlapped[choices_[v]];
      }
    }
    Ways all{given};
    for (const PlanBuffer& buffer : problem_.buffers()) {
      const BufferLayout produced =
          buffer.kind->produced[pick(buffer.producer, buffer.operand)];
      const Ways own = from_segment(buffer, produced, 0, {produced});
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
        cost += std::max<std::int64_t>(0, way.overlappable[w] - compute[w]);
      }
      best = std::min(best, cost);
    }
    return best;
  }

  void add(Way& way, std::optional<std::size_t> window,
           std::int64_t nanoseconds) const {
    if (!window) {
      way.cost += nanoseconds;
      return;
    }
    problem_.window_loads().divide(*window, nanoseconds,
                                   [&](std::size_t load, std::int64_t part) {
                                     way.overlappable[load] += part;
                                   });
  }

  void pay(Way& way, const PlanBuffer& buffer, const BufferClass::Move& move,
           std::int64_t slot) const {
    way.cost += move.nanoseconds;
    add(way, problem_.overlap_window(buffer, slot), move.overlapped);
  }

  Ways from_segment(const PlanBuffer& buffer, BufferLayout produced,
                    std::size_t segment, const States& cached) const {
    if (segment == buffer.segments.size()) return {nothing()};
    const auto states = static_cast<BufferLayout>(buffer.kind->num_states());
    const UseSegment& uses = buffer.segments[segment];
    const std::int64_t begin = buffer.uses[uses.first].slot;
    Ways ways;
    for (BufferLayout a = 0; a < states; ++a) {
      for (BufferLayout b = a; b < states; ++b) {
        const States next{a, b};
        if (buffer.persistent && !next.contains(produced)) continue;
        Way here = nothing();
        if (!make(buffer, cached, next, begin, here)) continue;
        bool possible = true;
        for (std::size_t u = uses.first; u < uses.first + uses.count; ++u) {
          const BufferLayout required = buffer.kind->required[u][pick(
              buffer.uses[u].variable, buffer.uses[u].operand)];
          if (next.contains(required)) continue;
          const BufferClass::Move& move = nearest(*buffer.kind, next, required);
          possible = possible && move.nanoseconds < kUnreachable;
          if (possible && is_late(buffer.uses[u])) {
            pay_late(here, buffer, next, required, buffer.uses[u].slot);
          } else {
            pay(here, buffer, move, buffer.uses[u].slot);
          }
        }
        if (!possible) continue;
        for (const Way& rest :
             from_segment(buffer, produced, segment + 1, next)) {
          keep(ways, sum(here, rest));
        }
      }
    }
    return ways;
  }

  // Whether the use is of an accumulated gradient, once a step.
  bool is_late(const BufferUse& use) const {
    return problem_.is_reduced_late(problem_.variable(use.variable),
                                    choices_[use.variable.index()]);
  }

  void pay_late(Way& way, const PlanBuffer& buffer, const States& cached,
                BufferLayout required, std::int64_t slot) const {
    const BufferClass& kind = *buffer.kind;
    const BufferLayout from = *std::min_element(
        cached.begin(), cached.end(), [&](BufferLayout a, BufferLayout b) {
          return kind.move(a, required).transfer() <
                 kind.move(b, required).transfer();
        });
    const Fetch share = once_a_step(problem_, buffer, from, required);
    way.cost += share.nanoseconds;
    const auto window = problem_.overlap_window(buffer, slot);
    (window ? way.overlappable[problem_.window_loads().last(*window)]
            : way.cost) += share.overlapped;
  }

  static const BufferClass::Move& nearest(const BufferClass& kind,
                                          const States& cached,
                                          BufferLayout required) {
    const BufferClass::Move* least = nullptr;
    for (const BufferLayout from : cached) {
      const BufferClass::Move& move = kind.move(from, required);
      if (least == nullptr || move.transfer() < least->transfer()) {
        least = &move;
      }
    }
    return *least;
  }

  // The new states in the better of both orders.
  bool make(const PlanBuffer& buffer, const States& cached, const States& next,
            std::int64_t slot, Way& way) const {
    const BufferClass& kind = *buffer.kind;
    std::vector<BufferLayout> fresh;
    for (const BufferLayout s : next) {
      if (!cached.contains(s)) fresh.push_back(s);
    }
    std::int64_t best = std::numeric_limits<std::int64_t>::max();
    Way produced;
    do {
      States have = cached;
      Way order = way;
      std::int64_t transfer = 0;
      for (const BufferLayout s : fresh) {
        const BufferClass::Move& move = nearest(kind, have, s);
        transfer += move.transfer();
        pay(order, buffer, move, slot);
        have.insert(s);
      }
      if (transfer < best) {
        best = transfer;
        produced = order;
      }
    } while (std::next_permutation(fresh.begin(), fresh.end()));
    way = std::move(produced);
    return best < kUnreachable;
  }

  const PlanProblem& problem_;
  std::vector<std::uint32_t> choices_;
};

}  // namespace shardprop::test
