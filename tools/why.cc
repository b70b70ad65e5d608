// why: lists the strategies of one operator, chosen and rejected, with the cost
// of each in its graph.

#include "base/edit_distance.h"
#include "base/printable.h"
#include "base/quantities.h"
#include "base/try.h"
#include "cli/graph_options.h"
#include "cli/graph_plan.h"
#include "cli/plan_options.h"
#include "cli/planner_run.h"
#include "commands.h"
#include "io/json_text.h"

#include <shardprop/request/plan_request.h>

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardprop::cli {
namespace {

// The text shows at most so many strategies, one a line; JSON has all of them.
constexpr std::size_t kMostLines = 24;

// Returns the nodes of the module and of the modules within it.
std::vector<std::string_view> nodes_in_module(const Graph& graph,
                                              std::string_view module) {
  std::vector<std::string_view> names;
  for (const Node& node : graph.nodes()) {
    const std::string_view path = node.module_path;
    if (!module.empty() && path.starts_with(module) &&
        (path.size() == module.size() || path[module.size()] == '.')) {
      names.push_back(node.name);
    }
  }
  return names;
}

std::string list_of(const std::vector<std::string_view>& names) {
  constexpr std::size_t kMostListed = 8;
  std::string out;
  for (std::size_t i = 0; i < std::min(names.size(), kMostListed); ++i) {
    out += fmt::format("{}`{}`", i == 0 ? "" : ", ", names[i]);
  }
  return names.size() > kMostListed ? out + ", …" : out;
}

Result<NodeId> node_option(const Arguments& arguments, const Graph& graph) {
  const std::string name = arguments.get("NODE");
  if (const auto node = graph.find_node(name)) return *node;
  if (const auto inside = nodes_in_module(graph, name); !inside.empty()) {
    return fail(Error{ErrorCode::kInvalidArgument,
                      "`" + name + "` is a module, not a node",
                      "NODE " + name,
                      {},
                      "ask for one of its nodes: " + list_of(inside)});
  }
  std::vector<std::string_view> names;
  for (const Node& node : graph.nodes()) names.push_back(node.name);
  std::string help = did_you_mean(name, names);
  if (help.empty()) help = "`shardprop explain --format json` lists the nodes";
  return fail(Error{ErrorCode::kInvalidArgument,
                    "the graph has no node `" + name + "`",
                    "NODE " + name,
                    {},
                    std::move(help)});
}

std::string brackets(const std::vector<Layout>& layouts) {
  std::string out;
  for (const Layout& layout : layouts) {
    out += (out.empty() ? "[" : " [") + to_string(layout) + "]";
  }
  return out;
}

std::string plan_cost(const WeighedStrategy& one, const WeighedNode& why) {
  if (one.objective_nanoseconds) {
    const double ms = microseconds(*one.objective_nanoseconds) / 1e3;
    const std::int64_t more =
        *one.objective_nanoseconds - why.objective_nanoseconds.value_or(0);
    std::string text = fmt::format("{:.3f} ms", ms);
    if (!one.chosen && why.objective_nanoseconds) {
      text += fmt::format("  {:+.1f} us", microseconds(more));
    }
    // A better plan with this strategy may exist.
    if (one.status != PlanStatus::kOptimal && !one.chosen) text += " at most";
    return text;
  }
  if (one.status == PlanStatus::kInfeasible) return "does not fit the memory";
  return fmt::format("not known; at least {:.3f} ms",
                     microseconds(one.lower_bound_nanoseconds) / 1e3);
}

void print_text(const Node& node, const WeighedNode& why, Console& console) {
  console.data << fmt::format("{}  {}  {}\n  {}\n\n", printable(node.name),
                              printable(node.op_name()),
                              printable(node.module_path), why.rule);
  if (why.objective_nanoseconds) {
    console.data << fmt::format("the plan: {:.3f} ms, {}\n\n",
                                microseconds(*why.objective_nanoseconds) / 1e3,
                                solver::to_string(why.status));
  } else {
    console.data << "no plan (" << solver::to_string(why.status) << ")\n\n";
  }
  const std::size_t lines = std::min(kMostLines, why.strategies.size());
  std::size_t width = 0;
  std::vector<std::string> layouts;
  for (std::size_t i = 0; i < lines; ++i) {
    const WeighedStrategy& one = why.strategies[i];
    layouts.push_back(brackets(one.takes) + " -> " + brackets(one.makes));
    width = std::max(width, layouts.back().size());
  }
  console.data << fmt::format("  {:<{}}  {:>12}  {:>12}  {}\n", "strategy",
                              width, "compute us", "inside us",
                              "best plan that uses it");
  for (std::size_t i = 0; i < lines; ++i) {
    const WeighedStrategy& one = why.strategies[i];
    console.data << fmt::format(
        "{} {:<{}}  {:>12.2f}  {:>12.2f}  {}\n", one.chosen ? '*' : ' ',
        layouts[i], width, microseconds(one.compute_nanoseconds),
        microseconds(one.inside_nanoseconds), plan_cost(one, why));
  }
  if (why.strategies.size() > lines) {
    console.data << fmt::format("  and {} more (--format json)\n",
                                why.strategies.size() - lines);
  }
  if (!why.unsharded.empty()) console.data << "\nnot sharded:\n";
  for (const UnshardedDim& dim : why.unsharded) {
    console.data << fmt::format("  {} ({}): {}\n", dim.letter, dim.size,
                                dim.why);
  }
}

void write_layouts(JsonText& json, std::string_view key,
                   const std::vector<Layout>& layouts) {
  json.key(key).list(
      layouts, [&](const Layout& layout) { json.value(to_strings(layout)); });
}

std::string as_json(const Graph& graph, const Node& node,
                    const WeighedNode& why) {
  JsonText json(JsonText::Form::kIndented);
  json.open('{').member("schema", "shardprop.why/1");
  json.member("graph", graph.name()).member("node", node.name);
  json.member("op", node.op_name()).member("module", node.module_path);
  json.member("rule", why.rule).member("status", solver::to_string(why.status));
  json.member("objective_us", microseconds(why.objective_nanoseconds));
  json.member("lower_bound_us", microseconds(why.lower_bound_nanoseconds));
  json.key("strategies").list(why.strategies, [&](const WeighedStrategy& one) {
    json.open('{').member("chosen", one.chosen);
    write_layouts(json, "inputs", one.takes);
    write_layouts(json, "outputs", one.makes);
    json.member("compute_us", microseconds(one.compute_nanoseconds));
    json.member("inside_us", microseconds(one.inside_nanoseconds));
    json.member("status", solver::to_string(one.status));
    json.member("objective_us", microseconds(one.objective_nanoseconds));
    json.member("lower_bound_us", microseconds(one.lower_bound_nanoseconds));
    json.close('}');
  });
  json.key("unsharded").list(why.unsharded, [&](const UnshardedDim& dim) {
    json.open('{').member("letter", std::string(1, dim.letter));
    json.member("size", dim.size).member("why", dim.why).close('}');
  });
  return json.close('}').take();
}

Result<int> run_why(const Arguments& arguments, Console& console) {
  SP_ASSIGN(PlanRequest given, plan_request(arguments));
  SP_ASSIGN(PlanRequest request, running_as_planned(std::move(given)));
  const Graph& graph = *request.graph;
  print_notes(graph, console);
  SP_ASSIGN(const NodeId id, node_option(arguments, graph));
  PlannerRun run(request, console);
  Result<WeighedNode> weighed =
      placed_at_least(weigh_strategies(request, id), arguments.get("GRAPH"));
  run.end();
  SP_ASSIGN(const WeighedNode why, std::move(weighed));
  const Node& node = graph.node(id);
  if (arguments.get("--format") == "json") {
    console.data << as_json(graph, node, why) << '\n';
  } else {
    print_text(node, why, console);
  }
  return why.objective_nanoseconds ? kDone : kFinding;
}

}  // namespace

Command why_command() {
  std::vector<Option> options = planning_options();
  std::erase_if(options, [](const Option& o) { return o.name == "--compare"; });
  const auto mesh =
      std::find_if(options.begin(), options.end(),
                   [](const Option& o) { return o.name == "--mesh"; });
  mesh->required = true;
  const auto graph =
      std::find_if(options.begin(), options.end(),
                   [](const Option& o) { return o.name == "GRAPH"; });
  options.insert(graph + 1, {.name = "NODE",
                             .help = "the node's name, as explain prints it",
                             .required = true});
  options.push_back(format_option());
  options.push_back(output_option());
  return {.name = "why",
          .summary = "the strategies of one operator and what each would cost",
          .example = "shardprop why model.pt2 mm_1 --mesh dp=2,tp=4",
          .options = std::move(options),
          .run = run_why};
}

}  // namespace shardprop::cli
