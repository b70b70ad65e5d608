#include <shardprop/plan/weigh_strategies.h>

#include "base/guard.h"
#include "base/try.h"
#include "plan/problem/plan_budget.h"
#include "plan/problem/problem_data.h"
#include "plan/search/solve_plan.h"
#include "plan/search/staged_search.h"
#include "plan/tuning.h"

#include <algorithm>
#include <utility>

namespace shardprop {
namespace {

// Returns the value that a view shows in the end, through all views.
const Value& viewed(const PlanProblem& problem, ValueId value) {
  const PlanBufferId buffer = problem.value(value).buffer;
  return problem.graph().value(problem.buffer(buffer).values.front());
}

Error no_strategies(const PlanProblem& problem, const Node& node) {
  const std::string quoted = "`" + node.name + "`";
  if (node.outputs.empty() || node.inputs.empty()) {
    return {ErrorCode::kInvalidArgument,
            quoted + " makes no tensor that could be laid out",
            node.name,
            {},
            "ask for a node that computes something"};
  }
  const Value& source = viewed(problem, node.inputs[0]);
  return {ErrorCode::kInvalidArgument,
          quoted + " is a view: its layout follows from the tensor it views",
          node.name,
          {},
          source.is_input()
              ? "that is the input `" + source.name +
                    "`; explain prints how inputs are laid out"
              : "ask for `" + problem.graph().node(source.producer).name + "`"};
}

std::vector<Layout> layouts_of(const LayoutTable& table, const ChoiceSet& set,
                               std::size_t choice, std::size_t first,
                               std::size_t end) {
  std::vector<Layout> out;
  for (std::size_t o = first; o < end; ++o) {
    out.push_back(table[set.layout(choice, o)]);
  }
  return out;
}

// Returns the strategies by ascending cost, and each combination of input and
// output layouts once.
std::vector<WeighedStrategy> strategies_of(const PlanProblem& problem,
                                           const ChoiceSet& set,
                                           std::optional<std::size_t> chosen) {
  std::vector<WeighedStrategy> out;
  for (std::size_t c = 0; c < set.size(); ++c) {
    WeighedStrategy one;
    const LayoutTable& table = problem.layouts();
    one.takes = layouts_of(table, set, c, 0, set.num_uses);
    one.makes = layouts_of(table, set, c, set.num_uses, set.layouts.size());
    one.compute_nanoseconds = set.compute[c];
    one.inside_nanoseconds = set.costs[c] - set.compute[c];
    one.chosen = chosen == c;
    const auto same =
        std::find_if(out.begin(), out.end(), [&](const WeighedStrategy& s) {
          return s.takes == one.takes && s.makes == one.makes;
        });
    if (same == out.end()) {
      out.push_back(std::move(one));
    } else {
      same->chosen = same->chosen || one.chosen;
    }
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const WeighedStrategy& a, const WeighedStrategy& b) {
                     return a.compute_nanoseconds + a.inside_nanoseconds <
                            b.compute_nanoseconds + b.inside_nanoseconds;
                   });
  return out;
}

std::vector<UnshardedDim> unsharded_dims(const IndexSpace& space,
                                         const DeviceMesh& mesh) {
  std::vector<UnshardedDim> out;
  for (const Factor& factor : space.factors) {
    if (factor.size <= 1) continue;
    UnshardedDim dim{factor.letter, factor.size, {}};
    if (!factor.shardable()) {
      dim.why = factor.reason.empty() ? std::string(to_string(factor.kind))
                                      : factor.reason;
      out.push_back(std::move(dim));
      continue;
    }
    for (const MeshDim& over : mesh.dims()) {
      if (over.size > factor.size) {
        dim.why = "too few elements for the " + std::to_string(over.size) +
                  " ranks of " + over.name;
      } else if (factor.even && factor.size % over.size != 0) {
        dim.why = "its shards must be equal, and " + std::to_string(over.size) +
                  " ranks of " + over.name + " do not divide it";
      } else {
        continue;
      }
      out.push_back(dim);
    }
  }
  return out;
}

// Fails if the machine refused memory. A WeighedNode cannot name the parts that
// a search left out.
Result<void> check_memory(const std::optional<Error>& failure,
                          const std::vector<PlanSolution::LeftOut>& left_out) {
  if (failure && failure->code == ErrorCode::kOutOfMemory) {
    return fail(*failure);
  }
  for (const PlanSolution::LeftOut& left : left_out) {
    if (left.why.code == ErrorCode::kOutOfMemory) return fail(left.why);
  }
  return {};
}

class Weighing {
 public:
  Weighing(const Graph& graph, NodeId node, const DeviceMesh& mesh,
           const Topology& topology, const OpLibrary& library,
           PlanOptions options)
      : graph_(graph),
        node_(node),
        mesh_(mesh),
        topology_(topology),
        library_(library),
        options_(std::move(options)),
        budget_(budget_of(options_)) {}

  Result<WeighedNode> run() {
    SP_ASSIGN(
        StagedResult found,
        search_in_stages(graph_, mesh_, topology_, library_, options_,
                         budget_.until(tuning::kWeighedPlanTimeShare, 1)));
    SP_CHECK(check_memory(found.failure, found.left_out));
    const PlanVariableId variable = found.problem.variable_of(node_);
    if (!variable.valid()) {
      return fail(no_strategies(found.problem, graph_.node(node_)));
    }
    const ChoiceSet& set = *found.problem.variable(variable).choices;
    WeighedNode out;
    out.rule = to_string(*set.op.space);
    out.status = found.solution.status;
    out.lower_bound_nanoseconds = found.solution.lower_bound;
    std::optional<std::size_t> chosen;
    if (found.solution.assignment) {
      chosen = found.solution.assignment->choices[variable.index()];
      out.objective_nanoseconds = found.solution.evaluation.objective;
    }
    out.unsharded = unsharded_dims(*set.op.space, mesh_);
    out.strategies = strategies_of(found.problem, set, chosen);
    SP_CHECK(weigh_all(found.problem.data().set_up.space, out));
    return out;
  }

 private:
  Result<void> weigh_all(const PlanSpace& space, WeighedNode& out) {
    options_.progress = nullptr;
    std::size_t left = out.strategies.size();
    for (WeighedStrategy& one : out.strategies) {
      one.lower_bound_nanoseconds = out.lower_bound_nanoseconds;
      const double share = 1 / static_cast<double>(left--);
      if (one.chosen) {
        one.status = out.status;
        one.objective_nanoseconds = out.objective_nanoseconds;
      } else if (!budget_.is_cut_off()) {
        SP_CHECK(weigh(budget_.share(share, 1), space, one));
      }
    }
    const auto rank = [](const WeighedStrategy& s) {
      return std::pair(!s.chosen,
                       s.objective_nanoseconds.value_or(kUnreachable));
    };
    std::stable_sort(out.strategies.begin(), out.strategies.end(),
                     [&](const WeighedStrategy& a, const WeighedStrategy& b) {
                       return rank(a) < rank(b);
                     });
    return {};
  }

  Result<void> weigh(const Budget& budget, const PlanSpace& space,
                     WeighedStrategy& one) {
    PlanOptions own = options_;
    own.forced = ForcedStrategy{node_, one.takes, one.makes};
    auto problem = PlanProblem::create(graph_, mesh_, topology_, library_, own,
                                       {space, budget});
    if (!problem) {
      if (problem.error().code == ErrorCode::kStopped) return {};
      return fail(std::move(problem).error());
    }
    const PlanSolution solution =
        solve_plan(*problem, budget, {.break_ties = false});
    SP_CHECK(check_memory(solution.failure, solution.left_out));
    one.status = solution.status;
    one.lower_bound_nanoseconds =
        std::max(one.lower_bound_nanoseconds, solution.lower_bound);
    if (solution.assignment) {
      one.objective_nanoseconds = solution.evaluation.objective;
    }
    return {};
  }

  const Graph& graph_;
  NodeId node_;
  const DeviceMesh& mesh_;
  const Topology& topology_;
  const OpLibrary& library_;
  PlanOptions options_;
  Budget budget_;
};

}  // namespace

Result<WeighedNode> weigh_strategies(const Graph& graph, NodeId node,
                                     const DeviceMesh& mesh,
                                     const Topology& topology,
                                     const OpLibrary& library,
                                     const PlanOptions& options) {
  return guarded([&] {
    return Weighing(graph, node, mesh, topology, library, options).run();
  });
}

}  // namespace shardprop
