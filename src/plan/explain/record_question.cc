#include "plan/explain/record_question.h"

#include "plan/problem/equal_choices.h"

#include <fmt/format.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

// Without equal layers, the space is that of free ones.
Layers layers_of(const PlanProblem& problem) {
  return problem.equal_choices().have_layers() ? Layers::kAlike : Layers::kFree;
}

void add_options(const PlanProblem& problem, Plan& plan) {
  const PlanOptions& options = problem.options();
  plan.options = {
      {"memory",
       options.memory_limit ? std::to_string(*options.memory_limit) : "none"},
      {"optimizer", std::string(to_string(*options.optimizer))},
      {"execution", std::string(execution_of(options.fusion))},
      {"recompute", options.recompute ? to_string(*options.recompute) : "auto"},
      {"layers", std::string(to_string(layers_of(problem)))},
      {"precision", keeps_f32(options) ? "mixed" : "own"},
      {"accumulate", std::to_string(options.accumulate)},
      {"overlap", fmt::format("{}", options.overlap)},
      {"strict", options.strict ? "true" : "false"},
      {"time_limit", fmt::format("{}", options.time_limit_seconds)},
      {"work_limit",
       options.work_limit ? std::to_string(*options.work_limit) : "none"},
      {"gap", fmt::format("{}", options.gap)},
  };
  if (const auto recipe = applied_recipe(problem)) {
    plan.options.emplace_back("recipe", to_string(*recipe));
  }
  // Under a work limit the plan is the same on any number of threads.
  if (!options.work_limit) {
    plan.options.emplace_back("threads", std::to_string(options.threads));
  }
  plan.options.emplace_back("seed", std::to_string(options.seed));
  for (const Pin& pin : options.pins) {
    plan.options.emplace_back("pin", to_string(pin));
  }
  for (const std::string& name : options.switched_off) {
    plan.options.emplace_back("without", name);
  }
}

std::vector<UnsupportedOp> unsupported_ops(const PlanProblem& problem) {
  std::map<std::string, UnsupportedOp> by_op;
  for (const Node& node : problem.graph().nodes()) {
    const ChoiceSet* set = problem.choices_of(node.id);
    if (set == nullptr || set->unsupported.empty()) continue;
    auto& entry = by_op[node.op_name()];
    entry.op = node.op_name();
    entry.reason = set->unsupported;
    ++entry.count;
  }
  std::vector<UnsupportedOp> out;
  out.reserve(by_op.size());
  for (auto& [name, entry] : by_op) out.push_back(std::move(entry));
  return out;
}

// Returns the graph's own guards, and those on the sizes that the plan was made
// for.
std::vector<Guard> guards_of(const Graph& graph) {
  std::vector<Guard> guards(graph.guards().begin(), graph.guards().end());
  for (const Symbol& symbol : graph.symbols()) {
    if (!symbol.hint) continue;
    guards.push_back({symbol.name + " == " + std::to_string(*symbol.hint),
                      "the size that the plan was made for"});
  }
  return guards;
}

}  // namespace

std::optional<Recipe> applied_recipe(const PlanProblem& problem) {
  const std::optional<Recipe>& recipe = problem.options().recipe;
  if (!recipe) return std::nullopt;
  const auto read = on_mesh(*recipe, problem.mesh());
  return read ? *read : *recipe;
}

void record_question(const PlanProblem& problem, Plan& plan) {
  plan.graph_name = problem.graph().name();
  plan.graph_hash = hash_text(problem.graph().hash());
  plan.graph_ops = problem.graph().nodes().size();
  plan.mesh = problem.mesh();
  plan.topology = problem.topology();
  add_options(problem, plan);
  plan.unsupported = unsupported_ops(problem);
  plan.guards = guards_of(problem.graph());
  plan.pins = problem.pins();
  plan.demanded_shardings = problem.data().demanded_shardings;
  for (const ReadingNote& note : problem.graph().notes()) {
    plan.notes.emplace_back(GraphNote{to_string(note)});
  }
}

}  // namespace shardprop
