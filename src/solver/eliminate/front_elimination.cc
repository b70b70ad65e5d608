#include "solver/eliminate/front_elimination.h"

#include "solver/bound/shifted_costs.h"
#include "solver/eliminate/front.h"
#include "solver/eliminate/front_order.h"
#include "solver/tuning.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace shardprop::solver {
namespace {

// Returns the neighbours by variable, those with the fewest choices first.
std::vector<std::vector<int>> neighbours_of(const Core& core) {
  std::vector<std::vector<int>> out;
  for (int v = 0; v < core.size(); ++v) {
    std::vector<int>& mine = out.emplace_back();
    for (const Arc& arc : core.arcs(v)) mine.push_back(arc.other);
    std::stable_sort(mine.begin(), mine.end(), [&](int a, int b) {
      return core.choices(a) < core.choices(b);
    });
  }
  return out;
}

bool is_too_large(const Core& core) {
  const auto n = static_cast<double>(core.size());
  std::size_t entries = 0;
  for (const CoreEdge& edge : core.edges) {
    entries += index(core.choices(edge.a)) * index(core.choices(edge.b));
  }
  return n * n > tuning::kMostOrderingSteps ||
         entries > tuning::kMostShiftedEntries;
}

// After rounding, a forbidden choice may seem cheap.
bool is_allowed(const Core& core, const std::vector<int>& choices) {
  for (int v = 0; v < core.size(); ++v) {
    if (core.cost(v)[choices[index(v)]] >= core.ceiling) return false;
  }
  return std::all_of(
      core.edges.begin(), core.edges.end(), [&](const CoreEdge& edge) {
        const std::size_t at =
            index(choices[index(edge.a)]) * index(core.choices(edge.b)) +
            index(choices[index(edge.b)]);
        return edge.table[at] < core.ceiling;
      });
}

// Given is the input of an elimination: the remaining choices of the core's
// variables.
struct Given {
  const Core& core;
  const ShiftedCosts& costs;
  const std::vector<std::vector<int>>& left;
  const std::vector<std::vector<int>>& neighbours;
  std::int64_t gap;  // in quanta, above the least of the costs
};

// No assignment costs less than the least of the costs plus `beyond`.
// `choices` is an assignment of this cost, if it is known.
struct Outcome {
  std::int64_t beyond = 0;  // in quanta
  bool is_cut = false;      // the front held too many entries
  std::vector<int> choices;
};

template <class Cost>
constexpr std::int64_t most_cost() {
  return static_cast<std::int64_t>(Front<Cost>::kMostCost);
}

template <class Cost>
class Run {
 public:
  // Costs are counted in multiples of 2^shift, rounded down.
  Run(const Given& given, int shift, std::size_t most_entries,
      std::uint64_t most_work, const SearchState& state)
      : given_(given),
        shift_(shift),
        limit_(static_cast<Cost>(((given.gap - 1) >> shift) + 1)),
        front_(limit_, most_entries, state.options.threads,
               [this, &state, most_work] {
                 return state.budget.is_cut_off() || front_.work() > most_work;
               }),
        is_met_(given.left.size(), false) {}

  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  // Returns nullopt if the front gave up.
  std::optional<Outcome> eliminate(const std::vector<int>& order) {
    for (const int v : order) {
      if (!eliminate(v)) return std::nullopt;
      if (front_.is_empty()) {
        return Outcome{in_quanta(front_.limit()), is_cut(), {}};
      }
    }
    Outcome out{in_quanta(front_.least()), is_cut(), {}};
    for (const auto& [v, c] : front_.choices()) {
      out.choices.resize(given_.left.size(), 0);
      out.choices[index(v)] = given_.left[index(v)][index(c)];
    }
    return out;
  }
  std::uint64_t work() const { return front_.work(); }

 private:
  using Beside = typename Front<Cost>::Beside;

  bool is_cut() const { return front_.limit() < limit_; }
  std::int64_t in_quanta(Cost cost) const {
    return static_cast<std::int64_t>(cost) << shift_;
  }
  Cost scaled(std::int64_t quanta) const {
    return static_cast<Cost>(std::min(quanta >> shift_, most_cost<Cost>()));
  }

  // Eliminates v after meeting its neighbours.
  bool eliminate(int v) {
    if (!is_met_[index(v)] && !meet(v)) return false;
    std::vector<int> unmet;
    for (const int u : given_.neighbours[index(v)]) {
      if (!is_met_[index(u)]) unmet.push_back(u);
    }
    if (unmet.empty()) return front_.eliminate(v);
    const int last = unmet.back();
    unmet.pop_back();
    for (const int u : unmet) {
      if (!meet(u)) return false;
    }
    const bool done = front_.exchange(v, last, own(last), beside(last));
    is_met_[index(last)] = true;
    return done;
  }
  bool meet(int v) {
    const bool done = front_.meet(v, own(v), beside(v));
    is_met_[index(v)] = true;
    return done;
  }

  std::vector<Cost> own(int v) const {
    std::vector<Cost> out;
    for (const int c : given_.left[index(v)]) {
      out.push_back(scaled(given_.costs.variable(v)[index(c)]));
    }
    return out;
  }
  std::vector<Beside> beside(int v) const {
    std::vector<Beside> out;
    for (const Arc& arc : given_.core.arcs(v)) {
      if (is_met_[index(arc.other)]) out.push_back(costs_beside(v, arc));
    }
    return out;
  }
  Beside costs_beside(int v, const Arc& arc) const {
    const CoreEdge& edge = given_.core.edges[index(arc.edge)];
    const std::vector<std::int64_t>& costs = given_.costs.edge(arc.edge);
    const std::size_t columns = index(given_.core.choices(edge.b));
    Beside out{arc.other, {}};
    for (const int theirs : given_.left[index(arc.other)]) {
      for (const int mine : given_.left[index(v)]) {
        const int row = edge.a == v ? mine : theirs;
        const int column = edge.a == v ? theirs : mine;
        out.costs.push_back(
            scaled(costs[index(row) * columns + index(column)]));
      }
    }
    return out;
  }

  const Given& given_;
  int shift_;
  Cost limit_;  // initial limit
  Front<Cost> front_;
  std::vector<bool> is_met_;
};

template <class Cost>
int shift_for(std::int64_t gap) {
  int shift = 0;
  while ((gap - 1) >> shift >= most_cost<Cost>()) ++shift;
  return shift;
}

template <class Cost>
std::optional<Outcome> run(const Given& given, const std::vector<int>& order,
                           std::size_t most_entries, std::uint64_t most_work,
                           SearchState& state) {
  Run<Cost> run(given, shift_for<Cost>(given.gap), most_entries, most_work,
                state);
  std::optional<Outcome> out = run.eliminate(order);
  state.spent_elsewhere += run.work();
  return out;
}

// Returns whether the rounding of all costs to 32 bits together is less than
// one.
bool is_narrow(const Given& given, double quantum) {
  const auto costs =
      static_cast<double>(given.left.size() + given.core.edges.size());
  return costs * std::ldexp(quantum, shift_for<std::int32_t>(given.gap)) < 1;
}

}  // namespace

bool FrontElimination::is_due() {
  return state_.options.passes.enabled(Pass::kElimination) &&
         state_.options.passes.enabled(Pass::kFrontElimination) &&
         state_.dual_has_bound() && state_.best.known() &&
         !state_.best.proven() && state_.dual_core->rows() == 0 &&
         state_.dual_gap() <= tuning::kFrontGap * state_.core_target() &&
         has_settled() && waited() >= next_work_ &&
         (held_ < tuning::kMostFrontEntries ||
          state_.dual_gap() <= tuning::kRetryFrontAtGapShare * tried_gap_);
}

// A dual that has stalled does no more work. The search as a whole goes on.
double FrontElimination::waited() const {
  return static_cast<double>(state_.dual->stalled() ? state_.work_so_far()
                                                    : state_.dual->work());
}

bool FrontElimination::has_settled() {
  if (state_.dual->stalled()) return true;
  const auto work = static_cast<double>(state_.dual->work());
  // The dual may have started again.
  if (work < seen_work_) looks_ = 0;
  if (looks_ == 0 || work >= tuning::kWorkBetweenGapChecks * seen_work_) {
    settled_ = ++looks_ > tuning::kIgnoredGapChecks &&
               state_.dual_gap() > tuning::kSettledGapShare * seen_gap_;
    seen_work_ = work;
    seen_gap_ = state_.dual_gap();
  }
  return settled_;
}

void FrontElimination::run() {
  if (is_too_large(*state_.dual_core)) {
    next_work_ = kInfinity;
    return;
  }
  const std::uint64_t before = state_.spent_elsewhere;
  if (state_.dual_gap() <= tuning::kNewOrdersAtGapShare * orders_gap_)
    make_orders();
  tried_gap_ = state_.dual_gap();
  held_ = most_entries_;
  std::vector<double> bounds;
  for (const std::vector<int>& order : orders_) {
    const std::optional<double> bound = eliminate(order);
    if (!bound) {
      wait(before, tuning::kRetryFrontAfterNoGain);
      closes_ = false;
      return;
    }
    if (state_.best.proven()) return;
    bounds.push_back(*bound);
  }
  if (bounds.size() == 2) {
    if (bounds[1] > bounds[0]) std::swap(orders_[0], orders_[1]);
    orders_.resize(1);
  }
  most_entries_ =
      std::min(tuning::kFrontGrowth * most_entries_, tuning::kMostFrontEntries);
  const double closed = *std::max_element(bounds.begin(), bounds.end()) -
                        state_.dual->best_bound();
  closes_ = closed >= tuning::kFrontGainShare * tried_gap_;
  wait(before,
       closes_ ? tuning::kRetryFrontAfterGain : tuning::kRetryFrontAfterNoGain);
}

// Waits until the dual has spent `times` the work that was spent elsewhere
// since `before`. After a dual that has stalled, only larger fronts raise the
// bound.
void FrontElimination::wait(std::uint64_t before, double times) {
  if (state_.dual->stalled()) times = tuning::kRetryFrontAfterGain;
  next_work_ =
      waited() + times * static_cast<double>(state_.spent_elsewhere - before);
}

// Returns the work done before the run, limited to the remaining work.
std::uint64_t FrontElimination::most_work() const {
  const std::uint64_t before =
      std::max(state_.budget.work_spent(), tuning::kLeastFrontWork);
  const auto limit = state_.budget.work_limit();
  const std::uint64_t done = state_.work_so_far();
  return limit ? std::min(before, *limit - std::min(*limit, done)) : before;
}

void FrontElimination::make_orders() {
  const Core& core = *state_.dual_core;
  orders_gap_ = state_.dual_gap();
  state_.dual->restore_best();
  const std::vector<double> extra = state_.dual->choice_bounds();
  std::vector<double> weight;
  for (int v = 0; v < core.size(); ++v) {
    double choices = 0;
    for (int c = core.at[index(v)]; c < core.at[index(v) + 1]; ++c) {
      choices += std::exp(-tuning::kChoiceWeightFalloff * extra[index(c)] /
                          orders_gap_);
    }
    weight.push_back(std::log(choices));
  }
  const auto n = static_cast<double>(core.size());
  const auto width = static_cast<std::size_t>(
      std::min(tuning::kBeamWidth, tuning::kMostOrderingSteps / (n * n)));
  const auto neighbours = neighbours_of(core);
  std::vector<int> order = front_order(neighbours, weight, width);
  std::vector<int> backward = order_met(neighbours, order);
  std::reverse(backward.begin(), backward.end());
  orders_ = {std::move(order), std::move(backward)};
}

std::optional<double> FrontElimination::eliminate(
    const std::vector<int>& order) {
  const Core& core = *state_.dual_core;
  const double target = state_.core_target();
  const double quantum = state_.dual->quantum();
  const auto left = state_.dual->choices_below(target);
  const auto neighbours = neighbours_of(core);
  const ShiftedCosts costs(core, *state_.dual, order_met(neighbours, order));
  state_.spent_elsewhere += costs.work();
  const std::int64_t gap =
      static_cast<std::int64_t>(target / quantum) - costs.least();
  double bound = target;
  const bool some_left = std::none_of(
      left.begin(), left.end(), [](const auto& mine) { return mine.empty(); });
  if (gap > 0 && some_left) {
    const Given given{core, costs, left, neighbours, gap};
    std::optional<Outcome> outcome = solver::run<std::int32_t>(
        given, order, most_entries_, most_work(), state_);
    if (outcome && !outcome->is_cut && !is_narrow(given, quantum)) {
      outcome =
          solver::run<double>(given, order, most_entries_, most_work(), state_);
    }
    if (!outcome) return std::nullopt;
    if (!outcome->choices.empty() && is_allowed(core, outcome->choices)) {
      state_.offer(outcome->choices, core.network_variable);
    }
    const std::int64_t least = costs.least() + outcome->beyond;
    bound = std::min(target, std::ceil(static_cast<double>(least) * quantum));
  }
  state_.best.raise_bound(core.offset + static_cast<Int128>(bound));
  return bound;
}

}  // namespace shardprop::solver
