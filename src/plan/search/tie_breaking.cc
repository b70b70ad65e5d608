#include "plan/search/tie_breaking.h"

#include "base/index.h"
#include "base/name_folding.h"
#include "base/saturating.h"
#include "plan/network/plan_network.h"
#include "plan/search/procedures.h"
#include "plan/tuning.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace shardprop {
namespace {

// Unit: 1 / scale nanoseconds. Sums of scaled costs stay far below the solver's
// forbidden cost.
constexpr std::int64_t kMostScaled = solver::kForbidden / 16;

// Preferences holds the weights of the choices of the plan's variables.
class Preferences {
 public:
  explicit Preferences(const PlanProblem& problem) : problem_(problem) {
    for (std::size_t v = 0; v < problem.variables().size(); ++v) {
      of_.emplace_back(problem.variables()[v].choices->size(), 0);
      largest_ = std::max(largest_, largest_bytes(problem.variables()[v]));
    }
  }

  // Prefers less memory of inputs and of the results of operators.
  void prefer_small() {
    for (std::size_t v = 0; v < of_.size(); ++v) {
      const PlanVariable& variable = problem_.variables()[v];
      const std::int64_t most = variable.kind == PlanVariable::Kind::kInput
                                    ? tuning::kMostInputWeight
                                    : tuning::kMostResultWeight;
      for (std::size_t c = 0; c < of_[v].size(); ++c) {
        const std::int64_t bytes = bytes_of(variable, c);
        if (bytes == 0) continue;
        of_[v][c] +=
            1 + static_cast<std::int64_t>(static_cast<double>(most - 1) *
                                          static_cast<double>(bytes) /
                                          static_cast<double>(largest_));
      }
    }
  }

  void prefer(PlanVariableId variable, std::uint32_t choice) {
    std::vector<std::int64_t>& of = of_[variable.index()];
    for (std::size_t c = 0; c < of.size(); ++c) {
      if (c != choice) of[c] += tuning::kUnlikeParameterWeight;
    }
  }

  void forbid_others(PlanVariableId variable, std::uint32_t choice) {
    std::vector<std::int64_t>& of = of_[variable.index()];
    for (std::size_t c = 0; c < of.size(); ++c) {
      if (c != choice) of[c] = solver::kForbidden;
    }
  }

  std::span<const std::int64_t> of(std::size_t variable) const {
    return of_[variable];
  }
  std::int64_t most() const {
    std::int64_t sum = 0;
    for (const auto& of : of_) {
      std::int64_t most = 0;
      for (const std::int64_t p : of) {
        if (!solver::is_forbidden(p)) most = std::max(most, p);
      }
      sum += most;
    }
    return sum;
  }

 private:
  std::int64_t bytes_of(const PlanVariable& variable, std::size_t c) const {
    std::int64_t bytes = 0;
    const ChoiceSet& set = *variable.choices;
    for (std::size_t o = 0; o < variable.makes.size(); ++o) {
      bytes = sat_add(
          bytes, problem_.local_bytes(variable.makes[o],
                                      set.layout(c, variable.uses.size() + o)));
    }
    if (!set.state_layouts.empty()) {
      bytes = sat_add(
          bytes, problem_.local_bytes(variable.makes[0], set.state_layouts[c]));
    }
    return bytes;
  }

  std::int64_t largest_bytes(const PlanVariable& variable) const {
    std::int64_t largest = 1;
    for (std::size_t c = 0; c < variable.choices->size(); ++c) {
      largest = std::max(largest, bytes_of(variable, c));
    }
    return largest;
  }

  const PlanProblem& problem_;
  std::vector<std::vector<std::int64_t>> of_;  // by variable and choice
  std::int64_t largest_ = 1;
};

// Adds the weights of one of the variables that choose alike.
void add_weights(std::span<const std::int64_t> of,
                 std::vector<std::int64_t>& sum) {
  sum.resize(of.size(), 0);
  for (std::size_t c = 0; c < of.size(); ++c) {
    sum[c] = solver::is_forbidden(of[c]) || solver::is_forbidden(sum[c])
                 ? solver::kForbidden
                 : sum[c] + of[c];
  }
}

// Returns the network with its costs times `scale`, with the preferences added,
// and with 1 added for each move that takes time.
Result<solver::Problem> scaled(const PlanProblem& problem,
                               const PlanNetwork& network,
                               const Preferences& preferences,
                               std::int64_t scale) {
  const solver::Problem& plain = network.network();
  solver::ProblemBuilder builder;
  std::vector<std::vector<std::int64_t>> preferred(plain.num_variables());
  for (std::size_t v = 0; v < problem.variables().size(); ++v) {
    add_weights(preferences.of(v),
                preferred[network.variable(PlanVariableId(v)).index()]);
  }
  std::vector<std::int64_t> costs;
  // A choice that costs more than kMostScaled is not part of a plan that costs
  // as much as the present one.
  const auto times = [&](std::int64_t cost) {
    if (solver::is_forbidden(cost)) return solver::kForbidden;
    const std::int64_t product = sat_mul(cost, scale);
    return product > kMostScaled ? solver::kForbidden
                                 : std::max(product, -kMostScaled);
  };
  for (std::size_t v = 0; v < plain.num_variables(); ++v) {
    const auto own = plain.costs(solver::VariableId(v));
    costs.clear();
    for (std::size_t c = 0; c < own.size(); ++c) {
      const std::int64_t extra = preferred[v].empty() ? 0 : preferred[v][c];
      const std::int64_t cost = times(own[c]);
      costs.push_back(solver::is_forbidden(cost) || solver::is_forbidden(extra)
                          ? solver::kForbidden
                          : cost + extra);
    }
    builder.add_variable(costs);
  }
  std::vector<solver::TableId> tables;
  for (std::size_t t = 0; t < plain.num_tables(); ++t) {
    const solver::Table table = plain.table(solver::TableId(t));
    costs.clear();
    for (const std::int64_t cost : table.costs) {
      const std::int64_t own = times(cost);
      costs.push_back(solver::is_forbidden(own) || cost == 0 ? own : own + 1);
    }
    tables.push_back(builder.add_table(table.rows, table.columns, costs));
  }
  for (const solver::Edge& edge : plain.edges()) {
    builder.add_edge(edge.a, edge.b, tables[edge.table.index()]);
  }
  return std::move(builder).build();
}

class TieBreaker {
 public:
  TieBreaker(const PlanProblem& problem,
             const std::vector<std::int64_t>& overlap_multipliers,
             std::optional<PlanNetwork> network,
             const solver::SolveOptions& how, PlanProcedure procedure,
             PlanSolution& solution)
      : problem_(problem),
        procedure_(procedure),
        overlap_multipliers_(overlap_multipliers),
        how_(how),
        solution_(solution),
        like_(like_parameters(problem)),
        network_(std::move(network)) {}

  // Replaces the plan by one with small inputs and results. Returns false if
  // the solver finds none.
  bool make_small() {
    const NetworkOptions options{.overlap_multipliers = overlap_multipliers_};
    if (!network_) network_.emplace(problem_, options);
    if (auto priced = network_->price(options); !priced) {
      leave_out(std::move(priced).error());
      network_.reset();
      return false;
    }
    Preferences small(problem_);
    small.prefer_small();
    return take(solve(small));
  }

  void run() {
    make_small();
    if (!network_) return;
    if (unlike().empty()) return;
    Preferences uniform(problem_);
    uniform.prefer_small();
    for (const auto& group : like_) prefer_majority(group, uniform);
    take(solve(uniform));
    const auto left = unlike();
    if (left.empty()) return;
    price_uniform(left);
  }

 private:
  std::uint32_t choice(PlanVariableId variable) const {
    return solution_.assignment->choices[variable.index()];
  }

  std::uint32_t majority(const std::vector<PlanVariableId>& group) const {
    std::map<std::uint32_t, std::size_t> votes;
    for (const PlanVariableId variable : group) ++votes[choice(variable)];
    return std::max_element(
               votes.begin(), votes.end(),
               [](const auto& a, const auto& b) { return a.second < b.second; })
        ->first;
  }

  void prefer_majority(const std::vector<PlanVariableId>& group,
                       Preferences& preferences) const {
    const std::uint32_t required = majority(group);
    for (const PlanVariableId variable : group) {
      preferences.prefer(variable, required);
    }
  }

  std::vector<const std::vector<PlanVariableId>*> unlike() const {
    std::vector<const std::vector<PlanVariableId>*> out;
    for (const auto& group : like_) {
      if (std::any_of(group.begin(), group.end(), [&](PlanVariableId v) {
            return choice(v) != choice(group[0]);
          })) {
        out.push_back(&group);
      }
    }
    return out;
  }

  void leave_out(Error why) {
    solution_.left_out.push_back({"plans that cost the same", std::move(why)});
  }

  // Adds the runs of the solver without their gains, since these costs are
  // scaled. Adds its work to the procedure that breaks ties.
  void record(std::vector<Procedure> runs, std::uint64_t work) {
    for (Procedure& run : runs) {
      run.improvements = 0;
      run.gap_closed = 0;
    }
    Procedure& own = runs.emplace_back();
    own.name = kPlanProcedures[index(procedure_)].name;
    own.work = work;
    solution_.work += work;
    add_runs(solution_.procedures, runs);
  }

  struct Found {
    PlanAssignment assignment;
    PlanEvaluation evaluation;
  };

  std::optional<Found> solve(const Preferences& preferences) {
    const std::int64_t most =
        preferences.most() +
        static_cast<std::int64_t>(network_->network().num_edges());
    const std::int64_t scale = most + 1;
    if (solution_.evaluation.objective > kMostScaled / scale) {
      return std::nullopt;
    }
    Result<solver::Problem> problem =
        scaled(problem_, *network_, preferences, scale);
    if (!problem) {
      leave_out(std::move(problem).error());
      return std::nullopt;
    }
    const solver::Solution solved = solver::solve(*problem, how_);
    if (solved.failure) leave_out(*solved.failure);
    record(solved.procedures, solved.work);
    if (!solved.cost) return std::nullopt;
    Found found{network_->decode(network_->assignment(solved.assignment)), {}};
    found.evaluation = evaluate(problem_, found.assignment);
    const auto& limit = problem_.options().memory_limit;
    if (!found.evaluation.broken.empty() ||
        (limit && found.evaluation.peak_bytes > *limit)) {
      return std::nullopt;
    }
    return found;
  }

  bool take(std::optional<Found> found) {
    if (!found ||
        found->evaluation.objective > solution_.evaluation.objective) {
      return false;
    }
    solution_.assignment = std::move(found->assignment);
    solution_.evaluation = std::move(found->evaluation);
    return true;
  }

  void price_uniform(
      const std::vector<const std::vector<PlanVariableId>*>& groups) {
    Preferences forced(problem_);
    forced.prefer_small();
    for (const auto* group : groups) {
      const std::uint32_t required = majority(*group);
      for (const PlanVariableId variable : *group) {
        forced.forbid_others(variable, required);
      }
    }
    std::optional<Found> found = solve(forced);
    if (!found) return;
    const std::int64_t more =
        found->evaluation.objective - solution_.evaluation.objective;
    take(std::move(found));
    if (more > 0) solution_.uniform_costs_more = more;
  }

  const PlanProblem& problem_;
  PlanProcedure procedure_;
  const std::vector<std::int64_t>& overlap_multipliers_;
  const solver::SolveOptions& how_;
  PlanSolution& solution_;
  std::vector<std::vector<PlanVariableId>> like_;
  std::optional<PlanNetwork> network_;
};

}  // namespace

std::vector<std::vector<PlanVariableId>> like_parameters(
    const PlanProblem& problem) {
  std::map<std::pair<std::string, const ChoiceSet*>,
           std::vector<PlanVariableId>>
      groups;
  for (std::size_t v = 0; v < problem.variables().size(); ++v) {
    const PlanVariable& variable = problem.variables()[v];
    if (variable.kind != PlanVariable::Kind::kInput ||
        problem.graph().inputs()[variable.index].kind !=
            InputKind::kParameter) {
      continue;
    }
    const std::string& name =
        problem.graph().value(variable.makes[0]).display_name();
    // A number at the end of a component (w1, w2) distinguishes parameters of
    // one layer.
    groups[{numbered_name(name).pattern, variable.choices.get()}].push_back(
        PlanVariableId(v));
  }
  std::vector<std::vector<PlanVariableId>> out;
  for (auto& [key, group] : groups) {
    if (group.size() > 1) out.push_back(std::move(group));
  }
  return out;
}

bool is_uniform(const PlanProblem& problem, const PlanAssignment& plan) {
  const auto groups = like_parameters(problem);
  return std::all_of(groups.begin(), groups.end(), [&](const auto& group) {
    return std::all_of(group.begin(), group.end(), [&](PlanVariableId v) {
      return plan.choices[v.index()] == plan.choices[group[0].index()];
    });
  });
}

void break_ties(const PlanProblem& problem,
                const std::vector<std::int64_t>& overlap_multipliers,
                std::optional<PlanNetwork> network,
                const solver::SolveOptions& how, PlanSolution& solution) {
  TieBreaker(problem, overlap_multipliers, std::move(network), how,
             PlanProcedure::kTieBreaking, solution)
      .run();
}

PlanSolution small_solution(const PlanProblem& problem,
                            const solver::SolveOptions& how,
                            PlanSolution like) {
  like.left_out.clear();
  like.work = 0;
  like.procedures.clear();
  const std::vector<std::int64_t> no_prices;
  if (!TieBreaker(problem, no_prices, {}, how, PlanProcedure::kSmallPlan, like)
           .make_small()) {
    like.assignment.reset();
  }
  return like;
}

}  // namespace shardprop
