#include <shardprop/plan/choose.h>

#include "plan/copies.h"
#include "plan/liveness.h"
#include "plan/local_search.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace shardprop {
namespace {

std::int64_t least_unary_costs(const PlanProblem& problem) {
  std::int64_t sum = 0;
  for (const PlanVariable& variable : problem.variables()) {
    const auto& costs = variable.choices->costs;
    sum += *std::min_element(costs.begin(), costs.end());
  }
  return sum;
}

// The choice of an input that shards `tensor_dim` over the mesh dims in `mask`
// and is replicated over the others; kUndecided where there is none.
std::uint32_t choice_sharded_over(const PlanProblem& problem,
                                  const PlanVariable& input, int tensor_dim,
                                  std::uint32_t mask) {
  for (std::uint32_t c = 0; c < input.choices->size(); ++c) {
    const Layout& layout =
        problem.layouts()[input.choices->layout(c, input.uses.size())];
    bool wanted = layout.has_default_order();
    for (int m = 0; m < problem.mesh().ndim() && wanted; ++m) {
      const bool sharded = (mask >> m & 1U) != 0;
      wanted = layout[m] == (sharded ? Placement::shard(tensor_dim)
                                     : Placement::replicate());
    }
    if (wanted) return c;
  }
  return kUndecided;
}

// Where to start from: nothing decided; then the user inputs sharded along
// their first or second dim (batch, sequence) over every set of mesh dims.
std::vector<std::vector<std::uint32_t>> starts_of(const PlanProblem& problem) {
  const std::vector<std::uint32_t> open(problem.variables().size(), kUndecided);
  std::vector<std::vector<std::uint32_t>> starts{open};
  const std::uint32_t sets = 1U << problem.mesh().ndim();
  for (int tensor_dim = 0; tensor_dim < 2; ++tensor_dim) {
    for (std::uint32_t mask = tensor_dim == 0 ? 0 : 1; mask < sets; ++mask) {
      std::vector<std::uint32_t> start = open;
      for (std::size_t v = 0; v < problem.variables().size(); ++v) {
        const PlanVariable& variable = problem.variables()[v];
        if (variable.kind == PlanVariable::Kind::kInput &&
            problem.graph().inputs()[variable.index].kind == InputKind::kUser) {
          start[v] = choice_sharded_over(problem, variable, tensor_dim, mask);
        }
      }
      if (start != open) starts.push_back(std::move(start));
    }
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
Judged squeeze(const PlanProblem& problem, SearchBudget& budget, Judged best,
               std::int64_t limit) {
  constexpr int kAttempts = 12;
  constexpr double kFirstPrice = 1e-4;  // nanoseconds a byte
  LocalSearch search(problem, budget);
  search.set_choices(best.choices);
  double price = kFirstPrice;
  for (int i = 0; i < kAttempts && best.peak_bytes > limit && !budget.spent();
       ++i, price *= 3) {
    search.prices().set_memory_price(price, at_peak(problem, search.choices()));
    search.improve();
    Judged found = judge(problem, search.choices());
    if (better(found, best, limit)) best = std::move(found);
  }
  return best;
}

}  // namespace

PlanChoice choose(const PlanProblem& problem) {
  SearchBudget budget(problem.options());
  const auto limit = problem.options().memory_limit;
  Judged best;
  bool first = true;
  for (const auto& start : starts_of(problem)) {
    if (!first && budget.spent()) break;
    LocalSearch search(problem, budget);
    search.greedy(start);
    search.improve();
    search.spread_copies();
    Judged found = judge(problem, search.choices());
    if (limit && found.peak_bytes > *limit && found.objective < kUnreachable) {
      found = squeeze(problem, budget, std::move(found), *limit);
    }
    if (first || better(found, best, limit)) best = std::move(found);
    first = false;
  }
  PlanChoice out;
  out.objective = best.objective;
  out.lower_bound = std::min(least_unary_costs(problem), best.objective);
  out.feasible =
      best.objective < kUnreachable && (!limit || best.peak_bytes <= *limit);
  out.choices = std::move(best.choices);
  return out;
}

}  // namespace shardprop
