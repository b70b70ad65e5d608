#include "plan/network/plan_network.h"

#include "base/index.h"
#include "base/option_bounds.h"
#include "base/saturating.h"
#include "base/try.h"
#include "plan/network/network_memory.h"
#include "plan/network/shared_variables.h"

#include <shardprop/base/error.h>

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

// Returns a share of a time, in parts of kOverlapMultiplierUnit. Costs are
// rounded down and credits are rounded up, so that the network's optimum stays
// a lower bound.
std::int64_t share_of(std::int64_t nanoseconds, std::int64_t price) {
  return saturated(WideInt{nanoseconds} * price / kOverlapMultiplierUnit);
}

std::int64_t share_rounded_up(std::int64_t nanoseconds, std::int64_t price) {
  return saturated((WideInt{nanoseconds} * price + kOverlapMultiplierUnit - 1) /
                   kOverlapMultiplierUnit);
}

// Prices are the overlap multipliers of the loads of one window.
using Prices = std::array<std::int64_t, WindowLoads::kMostOfWindow>;

// The program waits for a transfer without a window, in full.
Prices prices_in(std::optional<std::size_t> window, const WindowLoads& loads,
                 const NetworkOptions& options) {
  Prices out{};
  for (std::size_t load = 0; load < loads.of_window(); ++load) {
    if (!window) {
      out[load] = kOverlapMultiplierUnit;
    } else if (!options.overlap_multipliers.empty()) {
      out[load] = options.overlap_multipliers[loads.first(*window) + load];
    }
  }
  return out;
}

// Priced is a group of edges with the same overlap multipliers: their values and
// the number of the edges.
struct Priced {
  Prices prices{};
  std::int64_t count = 0;
  friend auto operator<=>(const Priced&, const Priced&) = default;
};

// Returns the multipliers of an edge, from the smallest to the largest.
std::vector<Priced> prices_of(const NetworkEdge& edge, const WindowLoads& loads,
                              const NetworkOptions& options) {
  std::map<Prices, std::int64_t> counts;
  for (const NetworkEdge::Share& share : edge.shares) {
    counts[prices_in(share.window, loads, options)] += share.count;
  }
  std::vector<Priced> out;
  for (const auto& [prices, count] : counts) out.push_back({prices, count});
  return out;
}

std::int64_t count_of(const NetworkEdge& edge) {
  std::int64_t sum = 0;
  for (const NetworkEdge::Share& share : edge.shares) sum += share.count;
  return sum;
}

std::vector<std::int64_t> times(std::span<const std::int64_t> costs,
                                std::int64_t count) {
  std::vector<std::int64_t> out(costs.begin(), costs.end());
  if (count == 1) return out;
  for (std::int64_t& cost : out) {
    if (!solver::is_forbidden(cost)) cost = sat_mul(cost, count);
  }
  return out;
}

// Returns the entries of a table that has a price, summed over edges.
std::vector<std::int64_t> priced_entries(const NetworkTable& table,
                                         const WindowLoads& loads,
                                         std::span<const Priced> priced) {
  std::int64_t edges = 0;
  for (const Priced& at : priced) edges += at.count;
  std::vector<std::int64_t> out = times(table.nanoseconds, edges);
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (solver::is_forbidden(out[i])) continue;
    for (const Priced& at : priced) {
      std::int64_t one = share_of(table.overlappable_once[i],
                                  at.prices[loads.of_window() - 1]);
      // The parts in the loads of one window have the numbers 0, 1 and 2.
      loads.divide(0, table.overlappable[i],
                   [&](std::size_t load, std::int64_t part) {
                     one = sat_add(one, share_of(part, at.prices[load]));
                   });
      out[i] = sat_add(out[i], sat_mul(one, at.count));
    }
  }
  return out;
}

}  // namespace

NetworkIdentity identity_of(const PlanProblem& problem,
                            const NetworkOptions& options) {
  const bool counts_memory = options.memory_limit.has_value();
  return {&problem, counts_memory, counts_memory && !options.reserved.empty()};
}

PlanNetwork::PlanNetwork(const PlanProblem& problem,
                         const NetworkOptions& options)
    : problem_(problem),
      most_uncounted_(options.most_uncounted),
      structure_(with_shared_variables(
          problem,
          structure_of(identity_of(problem, options), most_uncounted_))) {
  NetworkVariables variables{identity_of(problem, options), {}, {}};
  for (const NetworkVariable& variable : structure_.variables) {
    variables.slots.push_back(variable.slot);
    variables.num_choices.push_back(
        static_cast<std::uint32_t>(variable.num_choices));
  }
  variables_ = std::make_shared<const NetworkVariables>(std::move(variables));
}

Result<PlanNetwork> PlanNetwork::create(const PlanProblem& problem,
                                        const NetworkOptions& options) {
  PlanNetwork out(problem, options);
  SP_CHECK(out.price(options));
  return out;
}

bool PlanNetwork::can_price(const NetworkOptions& options) const {
  return variables_->identity == identity_of(problem_, options) &&
         most_uncounted_ == options.most_uncounted;
}

// The parts that no price changes are copied from the present network.
Result<void> PlanNetwork::price(const NetworkOptions& options) {
  if (!can_price(options)) {
    throw InternalError("a network gets the prices of another network");
  }
  solver::ProblemBuilder builder;
  add_variables(options, builder);
  Unpriced unpriced = add_edges(options, builder);
  if (variables_->identity.counts_memory) add_memory(options, builder);
  SP_ASSIGN(network_, std::move(builder).build());
  unpriced_ = std::move(unpriced);
  for (NetworkTable& table : structure_.tables) {
    if (!table.has_price()) table.nanoseconds = {};
  }
  return {};
}

// Compute earns the multipliers of its window. A gather after an update costs
// the multiplier of the load that it overlaps.
std::vector<std::int64_t> PlanNetwork::costs_of(
    const PlanVariable& variable, const NetworkOptions& options) const {
  const ChoiceSet& choices = *variable.choices;
  std::vector<std::int64_t> costs = choices.costs;
  const bool is_operator = variable.kind == PlanVariable::Kind::kOperator;
  if (!is_operator && choices.overlapped.empty()) return costs;
  const WindowLoads loads = problem_.window_loads();
  const Prices prices = prices_in(
      is_operator
          ? problem_.window_of(static_cast<std::int64_t>(variable.index))
          : problem_.window_after_update(variable),
      loads, options);
  if (prices == Prices{}) return costs;
  for (std::size_t c = 0; c < costs.size(); ++c) {
    if (is_operator) {
      loads.divide(0, choices.compute[c],
                   [&](std::size_t load, std::int64_t part) {
                     costs[c] -= share_rounded_up(part, prices[load]);
                   });
    } else {
      costs[c] = sat_add(costs[c], share_of(choices.overlapped[c], prices[0]));
    }
  }
  return costs;
}

std::vector<std::int64_t> PlanNetwork::costs_of(
    const NetworkVariable& variable, const NetworkOptions& options) const {
  std::vector<std::int64_t> sum(variable.num_choices, 0);
  for (const PlanVariableId id : variable.of_problem) {
    const std::vector<std::int64_t> costs =
        costs_of(problem_.variable(id), options);
    for (std::size_t c = 0; c < sum.size(); ++c) {
      sum[c] = sat_add(sum[c], costs[c]);
    }
  }
  return sum;
}

void PlanNetwork::add_variables(const NetworkOptions& options,
                                solver::ProblemBuilder& builder) const {
  for (std::size_t v = 0; v < structure_.variables.size(); ++v) {
    std::vector<std::int64_t> costs =
        costs_of(structure_.variables[v], options);
    if (const auto* left = options.left.of(variables_->identity, v)) {
      std::vector<std::int64_t> kept(costs.size(), solver::kForbidden);
      for (const std::uint32_t choice : *left) kept[choice] = costs[choice];
      costs = std::move(kept);
    }
    builder.add_variable(costs);
  }
}

PlanNetwork::Unpriced PlanNetwork::add_edges(
    const NetworkOptions& options, solver::ProblemBuilder& builder) const {
  Unpriced unpriced;
  const auto without_price = [&](std::size_t t, std::int64_t count) {
    const auto [table, is_new] = unpriced.try_emplace({t, count});
    if (!is_new) return table->second;
    const NetworkTable& own = structure_.tables[t];
    table->second =
        network_
            ? builder.add_table(own.rows, own.columns,
                                network_->table(unpriced_.at({t, count})).costs)
            : builder.add_table(own.rows, own.columns,
                                times(own.nanoseconds, count));
    return table->second;
  };
  // By table of the structure and prices.
  std::map<std::pair<std::size_t, std::vector<Priced>>, solver::TableId> priced;
  const auto with_prices = [&](std::size_t t, std::vector<Priced> prices) {
    const auto [table, is_new] = priced.try_emplace({t, std::move(prices)});
    if (is_new) {
      const NetworkTable& own = structure_.tables[t];
      table->second = builder.add_table(
          own.rows, own.columns,
          priced_entries(own, problem_.window_loads(), table->first.second));
    }
    return table->second;
  };
  for (const NetworkEdge& edge : structure_.edges) {
    const solver::TableId table =
        structure_.tables[edge.table].has_price()
            ? with_prices(edge.table,
                          prices_of(edge, problem_.window_loads(), options))
            : without_price(edge.table, count_of(edge));
    builder.add_edge(edge.a, edge.b, table);
  }
  return unpriced;
}

void PlanNetwork::add_memory(const NetworkOptions& options,
                             solver::ProblemBuilder& builder) {
  if (network_) {
    for (std::size_t v = 0; v < structure_.variables.size(); ++v) {
      const solver::VariableId id(v);
      if (structure_.reserve == id) continue;
      for (std::size_t u = 0; u < network_->num_usages(id); ++u) {
        const solver::Usage usage = network_->usage(id, u);
        builder.add_usage(id, usage.when, usage.bytes);
      }
    }
  } else {
    std::vector<MemoryUsage> usages =
        memory_usages(problem_, structure_.variable, structure_.live_intervals);
    for (const NetworkAccumulator& of : structure_.accumulators) {
      usages.push_back({of.variable, {0, of.produced_at}, of.bytes});
    }
    telling_slots_.emplace(problem_, usages);
    for (const MemoryUsage& usage : telling_slots_->only(std::move(usages))) {
      builder.add_usage(usage.variable, usage.when, usage.bytes);
    }
  }
  if (structure_.reserve) {
    const std::vector<std::int64_t> reserved =
        telling_slots_->reserved(options.reserved);
    for (std::size_t t = 0; t < reserved.size(); ++t) {
      if (reserved[t] == 0) continue;
      const auto slot = static_cast<std::int64_t>(t);
      builder.add_usage(*structure_.reserve, {slot, slot + 1},
                        {&reserved[t], 1});
    }
  }
  builder.set_limit(*options.memory_limit);
}

NetworkAssignment PlanNetwork::assignment(solver::Assignment choices) const {
  if (choices.size() != variables_->slots.size()) {
    throw InternalError("an assignment has " + std::to_string(choices.size()) +
                        " choices, its network " +
                        std::to_string(variables_->slots.size()) +
                        " variables");
  }
  return {variables_, std::move(choices)};
}

const solver::Assignment& PlanNetwork::choices(
    const NetworkAssignment& assignment) const {
  if (!assignment.is_of(variables_->identity)) {
    throw InternalError("an assignment of one network is used with another");
  }
  return assignment.choices_;
}

SolvedNetwork PlanNetwork::solve(const NetworkOptions& options,
                                 const Budget& budget,
                                 const NetworkGoals& goals) {
  SolvedNetwork out;
  // The time limit includes pricing the network.
  solver::SolveOptions how = solver_options(problem_, budget);
  if (auto priced = price(options); !priced) {
    out.end = SolvedNetwork::End::kFailed;
    out.failure = std::move(priced).error();
    return out;
  }
  std::vector<solver::Assignment> known;
  for (const NetworkAssignment& assignment : goals.known) {
    known.push_back(choices(assignment));
  }
  if (goals.bounds_only) {
    for (const solver::Pass pass :
         {solver::Pass::kLocalSearch, solver::Pass::kProbing,
          solver::Pass::kBranchAndBound, solver::Pass::kFrontElimination,
          solver::Pass::kLateElimination}) {
      how.passes.disable(pass);
    }
  }
  how.known = known;
  how.messages = goals.messages;
  how.explains = goals.explains;
  how.enough_gap = goals.enough_gap;
  how.enough_cost = goals.enough_cost;
  how.enough_bound = goals.enough_bound;
  how.progress = goals.progress;
  if (goals.go_on) {
    how.go_on = [&](const solver::Assignment& assignment, double spent) {
      return goals.go_on(this->assignment(assignment), spent);
    };
  }
  solver::Solution solution = solver::solve(*network_, how);
  out.work = solution.work;
  out.procedures = std::move(solution.procedures);
  out.stopped_by = solution.stopped_by;
  out.conflict = std::move(solution.conflict);
  out.failure = std::move(solution.failure);
  if (solution.status == solver::Status::kInfeasible) {
    out.end = SolvedNetwork::End::kInfeasible;
    return out;
  }
  if (solution.lower_bound) out.bound = saturated(*solution.lower_bound);
  if (!solution.cost) return out;
  out.end = SolvedNetwork::End::kSolved;
  out.assignment = this->assignment(std::move(solution.assignment));
  out.plan = decode(out.assignment);
  out.evaluation = evaluate(problem_, out.plan);
  // The network knows fewer transfers that the program waits for.
  const std::int64_t counted = out.evaluation.objective -
                               out.evaluation.exposed() - out.evaluation.waited;
  if (options.overlap_multipliers.empty() && counted > *solution.cost) {
    throw InternalError("a plan costs more than the solver says");
  }
  return out;
}

solver::SolveOptions solver_options(const PlanProblem& problem,
                                    const Budget& budget) {
  solver::SolveOptions how;
  how.time_limit_seconds = std::clamp(budget.seconds_left(), 0.0, kMostSeconds);
  how.work_limit = budget.work_left();
  how.stop = budget.stop_token();
  how.threads = problem.options().threads;
  how.seed = problem.options().seed;
  for (const std::string& name : problem.options().switched_off) {
    if (const auto pass = solver::parse_pass(name)) how.passes.disable(*pass);
  }
  return how;
}

}  // namespace shardprop
