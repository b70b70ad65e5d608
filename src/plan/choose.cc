#include <shardprop/plan/choose.h>

#include "plan/copies.h"
#include "plan/liveness.h"
#include "plan/local_prices.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <numeric>
#include <utility>

namespace shardprop {
namespace {

using Clock = std::chrono::steady_clock;

// When to stop: a wall clock that is read between rounds, and a count of work.
class Budget {
 public:
  explicit Budget(const PlanOptions& options)
      : end_(Clock::now() +
             std::chrono::duration_cast<Clock::duration>(
                 std::chrono::duration<double>(options.time_limit_seconds))),
        work_(options.work_limit.value_or(
            std::numeric_limits<std::int64_t>::max())) {}

  void spend(std::size_t choices) {
    work_ -= static_cast<std::int64_t>(choices);
  }
  bool spent() const { return work_ <= 0 || Clock::now() >= end_; }

 private:
  Clock::time_point end_;
  std::int64_t work_;
};

class Chooser {
 public:
  Chooser(const PlanProblem& problem, Budget& budget)
      : problem_(problem), budget_(budget), prices_(problem, choices_) {}

  const std::vector<std::uint32_t>& choices() const { return choices_; }
  void set_choices(std::vector<std::uint32_t> choices) {
    choices_ = std::move(choices);
  }
  LocalPrices& prices() { return prices_; }

  // In schedule order. `starts` decides variables beforehand. What a node takes
  // from an undecided input is what the input becomes.
  void greedy(const std::vector<std::uint32_t>& starts) {
    choices_ = starts;
    const auto variables = problem_.variables();
    for (std::size_t v = 0; v < variables.size(); ++v) {
      if (variables[v].kind == PlanVariable::Kind::kInput) continue;
      decide(PlanVariableId(v));
      for (std::size_t u = 0; u < variables[v].uses.size(); ++u) {
        follow(problem_.value(variables[v].uses[u]).maker,
               variables[v].choices->layout(choices_[v], u));
      }
    }
    for (std::size_t v = 0; v < variables.size(); ++v) {
      if (choices_[v] == kUndecided) decide(PlanVariableId(v));
    }
  }

  // Every variable anew given its neighbours, forwards and backwards, until
  // nothing changes. Never makes the assignment cost more.
  void improve() {
    const std::size_t count = problem_.variables().size();
    std::vector<bool> stale(count, true);
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (bool changed = true; changed && !budget_.spent();) {
      changed = false;
      for (const std::size_t v : order) {
        if (!stale[v]) continue;
        stale[v] = false;
        if (!decide(PlanVariableId(v))) continue;
        changed = true;
        mark_neighbours(v, stale);
      }
      std::reverse(order.begin(), order.end());
    }
  }

 private:
  // Takes the cheapest choice; stays where it is among equals.
  bool decide(PlanVariableId id) {
    const std::vector<std::int64_t>& prices = prices_.of(id);
    budget_.spend(prices.size());
    std::uint32_t& choice = choices_[id.index()];
    std::uint32_t best = choice == kUndecided ? 0 : choice;
    for (std::uint32_t c = 0; c < prices.size(); ++c) {
      if (prices[c] < prices[best]) best = c;
    }
    return std::exchange(choice, best) != best;
  }

  void follow(PlanVariableId maker, LayoutId wanted) {
    if (choices_[maker.index()] != kUndecided) return;
    const ChoiceSet& set = *problem_.variable(maker).choices;
    const std::size_t operand = set.num_uses;
    for (std::uint32_t c = 0; c < set.size(); ++c) {
      if (set.layout(c, operand) == wanted) choices_[maker.index()] = c;
    }
    if (choices_[maker.index()] == kUndecided) decide(maker);
  }

  void mark_neighbours(std::size_t v, std::vector<bool>& stale) const {
    const PlanVariable& variable = problem_.variables()[v];
    const auto mark_users = [&](ValueId value) {
      for (const PlanUse& use : problem_.value(value).uses) {
        if (use.variable.index() != v) stale[use.variable.index()] = true;
      }
    };
    for (const ValueId value : variable.uses) {
      stale[problem_.value(value).maker.index()] = true;
      mark_users(value);
    }
    for (const ValueId value : variable.makes) mark_users(value);
  }

  const PlanProblem& problem_;
  Budget& budget_;
  std::vector<std::uint32_t> choices_;
  LocalPrices prices_;
};

std::int64_t least_unary_costs(const PlanProblem& problem) {
  std::int64_t sum = 0;
  for (const PlanVariable& variable : problem.variables()) {
    const auto& costs = variable.choices->costs;
    sum += *std::min_element(costs.begin(), costs.end());
  }
  return sum;
}

// Starts: the user inputs of the program laid out alike, in every way that
// shards one of their dims over a set of mesh dims; and nothing decided.
std::vector<std::vector<std::uint32_t>> starts_of(const PlanProblem& problem) {
  const std::vector<std::uint32_t> open(problem.variables().size(),
                                        kUndecided);
  std::vector<std::vector<std::uint32_t>> starts{open};
  const int ndim = problem.mesh().ndim();
  for (std::uint32_t mask = 0; mask < 1U << ndim; ++mask) {
    std::vector<std::uint32_t> start = open;
    bool any = false;
    for (std::size_t v = 0; v < problem.variables().size(); ++v) {
      const PlanVariable& variable = problem.variables()[v];
      if (variable.kind != PlanVariable::Kind::kInput ||
          problem.graph().inputs()[variable.index].kind != InputKind::kUser) {
        continue;
      }
      for (std::uint32_t c = 0; c < variable.choices->size(); ++c) {
        const Layout& layout =
            problem.layouts()[variable.choices->layout(c, variable.uses.size())];
        bool wanted = layout.has_default_order();
        for (int m = 0; m < ndim && wanted; ++m) {
          wanted = layout[m] == ((mask >> m & 1U) != 0
                                     ? Placement::shard(0)
                                     : Placement::replicate());
        }
        if (!wanted) continue;
        start[v] = c;
        any = true;
      }
    }
    if (any) starts.push_back(std::move(start));
  }
  return starts;
}

struct Judged {
  std::vector<std::uint32_t> choices;
  std::int64_t objective = 0;
  std::int64_t peak_bytes = 0;
};

Judged judge(const PlanProblem& problem, std::vector<std::uint32_t> choices) {
  Judged out;
  out.objective = objective_nanoseconds(problem, choices);
  if (out.objective < kUnreachable) {
    const std::vector<NeededCopy> copies = needed_copies(problem, choices);
    out.peak_bytes = liveness(problem, choices, copies).peak_bytes;
  } else {
    out.peak_bytes = std::numeric_limits<std::int64_t>::max();
  }
  out.choices = std::move(choices);
  return out;
}

// Values with memory of their own that is held at the peak.
std::vector<bool> at_peak(const PlanProblem& problem,
                          const std::vector<std::uint32_t>& choices) {
  const std::vector<NeededCopy> copies = needed_copies(problem, choices);
  const Liveness live = liveness(problem, choices, copies);
  std::vector<bool> out(problem.graph().values().size(), false);
  for (const LiveRange& range : live.ranges) {
    if (range.begin <= live.peak_at && live.peak_at <= range.end) {
      out[range.value.index()] = true;
    }
  }
  return out;
}

// Whether `a` is to be preferred: what fits the limit before what does not,
// then the cheaper, of what does not fit the smaller.
bool better(const Judged& a, const Judged& b,
            std::optional<std::int64_t> limit) {
  const bool a_fits = !limit || a.peak_bytes <= *limit;
  const bool b_fits = !limit || b.peak_bytes <= *limit;
  if (a_fits != b_fits) return a_fits;
  if (a_fits) return a.objective < b.objective;
  return a.peak_bytes < b.peak_bytes;
}

// Raises the price of bytes at the peak until the plan fits.
Judged squeeze(const PlanProblem& problem, Budget& budget, Judged best,
               std::int64_t limit) {
  constexpr int kAttempts = 12;
  constexpr double kFirstPrice = 1e-4;  // nanoseconds a byte
  Chooser chooser(problem, budget);
  chooser.set_choices(best.choices);
  double price = kFirstPrice;
  for (int i = 0; i < kAttempts && best.peak_bytes > limit && !budget.spent();
       ++i, price *= 3) {
    chooser.prices().set_memory_price(price,
                                      at_peak(problem, chooser.choices()));
    chooser.improve();
    Judged found = judge(problem, chooser.choices());
    if (better(found, best, limit)) best = std::move(found);
  }
  return best;
}

}  // namespace

PlanChoice choose(const PlanProblem& problem) {
  Budget budget(problem.options());
  const auto limit = problem.options().memory_limit;
  Judged best;
  bool first = true;
  for (const auto& start : starts_of(problem)) {
    if (!first && budget.spent()) break;
    Chooser chooser(problem, budget);
    chooser.greedy(start);
    chooser.improve();
    Judged found = judge(problem, chooser.choices());
    if (limit && found.peak_bytes > *limit &&
        found.objective < kUnreachable) {
      found = squeeze(problem, budget, std::move(found), *limit);
    }
    if (first || better(found, best, limit)) best = std::move(found);
    first = false;
  }
  PlanChoice out;
  out.objective = best.objective;
  out.lower_bound = std::min(least_unary_costs(problem), best.objective);
  out.feasible = best.objective < kUnreachable &&
                 (!limit || best.peak_bytes <= *limit);
  out.choices = std::move(best.choices);
  return out;
}

}  // namespace shardprop
