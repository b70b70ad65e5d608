#include <shardprop/plan/judge_plan.h>

#include "base/guard.h"
#include "base/quantities.h"
#include "base/try.h"
#include "plan/explain/assemble_plan.h"
#include "plan/saved/plan_differences.h"
#include "plan/saved/read/saved_assignment.h"
#include "plan/saved/read/saved_choices.h"

#include <shardprop/plan/make_plan.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

class Judge {
 public:
  Judge(const Plan& saved, const Graph& graph, const OpLibrary& library)
      : saved_(saved), graph_(graph), library_(library) {}

  Result<JudgedPlan> run() {
    if (!saved_.has_plan()) {
      SP_CHECK(check_graph(saved_, graph_));
      return JudgedPlan{given_proof(saved_), {}, {}};
    }
    SP_ASSIGN(choices_, choices_of(saved_, graph_));
    SP_ASSIGN(const PlanOptions options, options_of(saved_));
    SetUp set_up;
    set_up.space = saved_.made_in;
    set_up.given = &choices_.given;
    SP_ASSIGN(const PlanProblem problem,
              PlanProblem::create(graph_, saved_.mesh, saved_.topology,
                                  library_, options, set_up));
    PlanSolution solution;
    SP_ASSIGN(solution.assignment, assignment(problem));
    solution.evaluation = evaluate(problem, *solution.assignment);
    if (!solution.evaluation.broken.empty()) {
      return fail(broken_plan(solution.evaluation.broken, "$.copies"));
    }
    solution.lower_bound =
        std::min(saved_.lower_bound_nanoseconds, solution.evaluation.objective);
    solution.status = status_of(solution, options);
    JudgedPlan judged{assemble_plan(problem, solution), {}, {}};
    SP_CHECK(check_same(problem, judged.plan));
    judged.differences = differences(saved_, judged.plan);
    if (is_of_other_schedule(saved_, judged.plan)) {
      judged.note = priced_again(
          judged.plan, "plans stated their overlap windows and buckets");
    } else if (has_undivided_windows(saved_, judged.plan)) {
      judged.note =
          priced_again(judged.plan, "windows were divided by micro-batch");
    }
    if (solution.status == PlanStatus::kInfeasible) {
      judged.plan = none_within_limit(problem, std::move(solution));
    }
    judged.plan = given_proof(std::move(judged.plan));
    // Other choices are not priced here, so their costs are copied from the
    // file, too.
    const auto of_saved = saved_copies(saved_, judged.plan);
    for (std::size_t c = 0; c < of_saved.size(); ++c) {
      if (!of_saved[c]) continue;
      judged.plan.copies[c].reason = saved_.copies[*of_saved[c]].reason;
    }
    if (saved_.free_lower_bound_nanoseconds) {
      judged.plan.free_lower_bound_nanoseconds = std::min(
          *saved_.free_lower_bound_nanoseconds, solution.evaluation.objective);
    }
    judged.plan.options = saved_.options;
    judged.plan.space = saved_.space;
    judged.plan.demanded_shardings = saved_.demanded_shardings;
    judged.plan.pins = saved_.pins;
    judged.plan.recipes = saved_.recipes;
    judged.plan.procedures = saved_.procedures;
    judged.plan.notes = saved_.notes;
    judged.plan.ran_out = saved_.ran_out;
    judged.plan.overlap_multipliers = saved_.overlap_multipliers;
    judged.plan.solve_seconds = saved_.solve_seconds;
    return judged;
  }

 private:
  static Plan given_proof(Plan plan) {
    plan.is_proof_given = true;
    return plan;
  }

  // The version that saved the plan did not have `change`.
  std::string priced_again(const Plan& plan, std::string_view change) const {
    const auto time = [](const Plan& of) {
      return time_text(of.objective_nanoseconds.value_or(0));
    };
    return "the plan was saved before " + std::string(change) + "; it takes " +
           time(plan) + " now, and " + time(saved_) + " in the file";
  }

  PlanStatus status_of(const PlanSolution& solution,
                       const PlanQuestion& question) const {
    const PlanEvaluation& judged = solution.evaluation;
    if (question.memory_limit && judged.peak_bytes > *question.memory_limit) {
      return PlanStatus::kInfeasible;
    }
    return solution.lower_bound == judged.objective ? saved_.status
                                                    : PlanStatus::kFeasible;
  }

  // The saved plan exceeds its memory limit, so the result has no plan. It
  // reports the slot of the peak instead.
  static Plan none_within_limit(const PlanProblem& problem,
                                PlanSolution solution) {
    const PlanEvaluation& judged = solution.evaluation;
    solution.conflict = {
        {judged.peak_at, judged.peak_bytes - *problem.options().memory_limit}};
    solution.assignment.reset();
    return assemble_plan(problem, solution);
  }

  // ---- the assignment

  Result<PlanAssignment> assignment(const PlanProblem& problem) const {
    std::vector<std::uint32_t> chosen;
    SP_CHECK(choose(problem, chosen));
    return saved_assignment(problem, saved_, choices_, std::move(chosen));
  }

  Result<void> choose(const PlanProblem& problem,
                      std::vector<std::uint32_t>& chosen) const {
    for (const PlanVariable& variable : problem.variables()) {
      std::uint32_t choice = 0;
      if (variable.kind == PlanVariable::Kind::kInput) {
        const std::vector<Layout>& said = choices_.given.inputs[variable.index];
        const ChoiceSet& set = *variable.choices;
        const bool once = saved_.values[variable.index].reduced_once;
        const auto fits = [&](std::size_t c) {
          if (problem.is_reduced_late(variable, c) != once) return false;
          const Layout& own =
              problem.layouts()[set.layout(c, variable.uses.size())];
          const Layout& state = set.state_layouts.empty()
                                    ? own
                                    : problem.layouts()[set.state_layouts[c]];
          return own == said.front() && state == said.back();
        };
        while (choice < set.size() && !fits(choice)) ++choice;
        if (choice == set.size()) {
          return fail(
              broken_plan("the parameter and its optimizer state cannot have "
                          "these layouts",
                          "$.values." + saved_.values[variable.index].name));
        }
      }
      chosen.push_back(choice);
    }
    return {};
  }

  static bool same(const PlannedInput& a, const PlannedInput& b) {
    return a.from == b.from && a.layout == b.layout;
  }

  // Returns whether the node views a gradient that is reduced in flight, or at the
  // end with its bucket. A plan that states no flights or no buckets reads the
  // reduced copy there. The copies decide the layout, so that such a plan is still
  // read.
  static bool views_in_flight(const PlanProblem& problem, const Node& node) {
    return !problem.variable_of(node.id).valid() && node.inputs.size() == 1 &&
           problem.buffer(problem.value(node.inputs[0]).buffer).in_flight ==
               InFlight::kLater;
  }

  // Checks the choices that decide the program of the ranks. Figures are
  // compared by differences().
  Result<void> check_same(const PlanProblem& problem, const Plan& plan) const {
    const bool is_older = is_of_other_schedule(saved_, plan);
    for (std::size_t n = 0; n < plan.nodes.size(); ++n) {
      const PlannedNode& said = saved_.nodes[n];
      const PlannedNode& is = plan.nodes[n];
      if (is_older && views_in_flight(problem, graph_.nodes()[n])) {
        continue;
      }
      if (!std::equal(said.inputs.begin(), said.inputs.end(), is.inputs.begin(),
                      is.inputs.end(), same)) {
        return fail(
            broken_plan("`" + is.name + "` reads its inputs in other layouts",
                        place_in("nodes", n, ".inputs")));
      }
      if (said.outputs != is.outputs) {
        return fail(broken_plan(
            "`" + is.name + "` produces its outputs in other layouts",
            place_in("nodes", n, ".outputs")));
      }
      if (said.local != is.local || said.is_random != is.is_random) {
        return fail(broken_plan(
            "`" + is.name + "` does not run as its strategy requires",
            place_in("nodes", n)));
      }
    }
    if (saved_.updates.size() != plan.updates.size() ||
        saved_.outputs.size() != plan.outputs.size()) {
      return fail(broken_plan(
          "the outputs of the plan are not those of the graph", "$.outputs"));
    }
    for (std::size_t u = 0; u < plan.updates.size(); ++u) {
      const PlannedUpdate& said = saved_.updates[u];
      const PlannedUpdate& is = plan.updates[u];
      if (said.parameter != is.parameter || said.op != is.op ||
          !same(said.value, is.value) || said.result != is.result) {
        return fail(
            broken_plan("`" + is.parameter + "` is updated in another way",
                        place_in("nodes", plan.nodes.size() + u)));
      }
    }
    for (std::size_t o = 0; o < plan.outputs.size(); ++o) {
      if (!same(saved_.outputs[o].value, plan.outputs[o].value)) {
        return fail(broken_plan("the program returns it in another layout",
                                place_in("outputs", o)));
      }
    }
    return {};
  }

  const Plan& saved_;
  const Graph& graph_;
  const OpLibrary& library_;
  SavedChoices choices_;
};

}  // namespace

Result<PlanOptions> options_of(const Plan& saved) {
  // The limits of the search do not affect a plan. The options for reading a
  // graph are part of the graph and the library that the caller gives.
  static constexpr std::string_view kOfOthers[] = {
      "time_limit", "work_limit", "gap",     "threads",    "seed",  "bound",
      "size",       "rule",       "program", "other_size", "blocks"};
  PlanOptions options;
  // A plan without these options was made before they existed.
  options.fusion = Fusion::kNone;
  options.layers = Layers::kFree;
  options.optimizer = Optimizer::kNone;
  options.precision = Precision::kOwn;
  for (const auto& [name, text] : saved.options) {
    if (std::find(std::begin(kOfOthers), std::end(kOfOthers), name) !=
        std::end(kOfOthers)) {
      continue;
    }
    if (auto set = set_option(options, name, text); !set) {
      return fail(broken_plan(set.error().message, "$.options." + name));
    }
  }
  return options;
}

Result<JudgedPlan> judge_plan(const Plan& saved, const Graph& graph,
                              const OpLibrary& library) {
  return guarded([&] { return Judge(saved, graph, library).run(); });
}

}  // namespace shardprop
