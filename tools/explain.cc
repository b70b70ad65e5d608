#include "cli/interruption.h"
#include "cli/plan_options.h"
#include "commands.h"

#include "base/printable.h"
#include "base/try.h"
#include "io/input_file.h"

#include <shardprop/io/load_graph.h>
#include <shardprop/io/topology_file.h>
#include <shardprop/plan/judge_plan.h>
#include <shardprop/plan/make_plan.h>
#include <shardprop/report/plan_json.h>
#include <shardprop/report/plan_text.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

namespace shardprop::cli {
namespace {

Result<std::string> read_plan(const std::string& path, std::int64_t most) {
  auto text = read_file(path, most);
  if (text) return text;
  Error error = std::move(text).error();
  error.code = ErrorCode::kPlanFile;
  error.location = "--plan " + error.location;
  return fail(std::move(error));
}

// A saved plan, if it is one of this graph (and mesh, where one is given), as
// the evaluator judges it.
Result<JudgedPlan> saved_plan(const Arguments& arguments, const Graph& graph,
                              const OpLibrary& library,
                              std::int64_t max_input) {
  const std::string path = arguments.get("--plan");
  SP_ASSIGN(const std::string text, read_plan(path, max_input));
  Result<Plan> plan = parse_plan_json(text);
  if (!plan) return fail(std::move(plan).error().at("--plan " + path));
  const std::string hash = hash_text(graph.hash());
  if (plan->graph_hash != hash) {
    return fail(
        Error{ErrorCode::kPlanOtherGraph,
              "the plan was made for another graph",
              "--plan " + path,
              {fmt::format("plan: {} {}", plan->graph_name, plan->graph_hash),
               fmt::format("graph: {} {}", graph.name(), hash)},
              "give the graph it was made for, or plan anew without "
              "--plan"});
  }
  if (arguments.has("--mesh")) {
    SP_ASSIGN(const DeviceMesh mesh, mesh_option(arguments));
    if (!(mesh == plan->mesh)) {
      return fail(Error{
          ErrorCode::kPlanOtherGraph,
          "the plan was made for another mesh",
          "--plan " + path,
          {"plan: " + to_string(plan->mesh), "--mesh: " + to_string(mesh)},
          "leave out --mesh"});
    }
  }
  // Schema 1 does not say enough of a plan to judge it.
  if (plan->is_proof_given) return JudgedPlan{*std::move(plan), {}};
  Result<JudgedPlan> judged = judge_plan(*plan, graph, library);
  if (!judged) {
    Error error = std::move(judged).error();
    error.location = error.location.empty()
                         ? "--plan " + path
                         : "--plan " + path + " " + error.location;
    return fail(std::move(error));
  }
  return judged;
}

// What the file says that is not so.
void warn_of_differences(const JudgedPlan& judged, Console& console) {
  constexpr std::size_t kMostPrinted = 5;
  const std::vector<std::string>& all = judged.differences;
  for (std::size_t i = 0; i < std::min(all.size(), kMostPrinted); ++i) {
    console.messages << "warning: " << printable(all[i]) << '\n';
  }
  if (all.size() > kMostPrinted) {
    console.messages << "warning: and " << all.size() - kMostPrinted
                     << " more figures of the file are not those of its plan\n";
  }
}

// One line that is written over and over.
void print_progress(const PlanProgress& now, Console& console) {
  constexpr std::string_view kPhases[] = {"set up", "search", "report"};
  const auto us = [](const std::optional<std::int64_t>& nanoseconds) {
    return nanoseconds ? fmt::format("{:.1f} us",
                                     static_cast<double>(*nanoseconds) / 1e3)
                       : std::string("-");
  };
  console.messages << fmt::format("\r{:8.1f} s  {}  best {}  bound {}    ",
                                  now.seconds,
                                  kPhases[static_cast<std::size_t>(now.phase)],
                                  us(now.objective), us(now.lower_bound))
                   << std::flush;
}

Result<Plan> new_plan(const Arguments& arguments, const Graph& graph,
                      const Topology& topology, const OpLibrary& library,
                      std::chrono::steady_clock::time_point start,
                      Console& console) {
  SP_ASSIGN(const DeviceMesh mesh, mesh_option(arguments));
  SP_ASSIGN(PlanOptions options, plan_options(arguments, topology));
  options.start = start;
  if (console.progress) {
    options.progress = [&](const PlanProgress& now) {
      print_progress(now, console);
    };
  }
  const Interruption interruption;
  options.stop = interruption.token();
  Result<Plan> plan = make_plan(graph, mesh, topology, library, options);
  if (console.progress) console.messages << "\r\x1b[K";  // rub it out
  if (interruption.came() && plan) {
    console.messages << (plan->has_plan()
                             ? "interrupted: this is the best plan so far\n"
                             : "interrupted: no plan had been found yet\n");
  }
  return plan;
}

void warn_of_unsupported(const Plan& plan, Console& console) {
  for (const UnsupportedOp& op : plan.unsupported) {
    console.messages << fmt::format(
        "warning: `{}` runs replicated ({} of them): {}\n", printable(op.op),
        op.count, printable(op.reason));
  }
}

Result<int> run_explain(const Arguments& arguments, Console& console) {
  const auto start = std::chrono::steady_clock::now();
  // What needs no graph is checked before one is read. A file is read once: it
  // may be a pipe.
  Topology topology;
  SP_ASSIGN(const auto max_input, arguments.bytes("--max-input"));
  if (!arguments.has("--plan")) {
    SP_CHECK(mesh_option(arguments));
    SP_ASSIGN(topology, load_topology(arguments.get("--topology")));
    SP_CHECK(plan_options(arguments, topology));
  }
  const auto library = OpLibrary::standard();
  LoadOptions load;
  load.max_input_bytes = *max_input;
  load.program = arguments.get("--program");
  SP_ASSIGN(const Graph graph,
            load_graph(arguments.get("GRAPH"), *library, load));
  JudgedPlan judged;
  if (arguments.has("--plan")) {
    SP_ASSIGN(judged, saved_plan(arguments, graph, *library, *max_input));
  } else {
    SP_ASSIGN(judged.plan,
              new_plan(arguments, graph, topology, *library, start, console));
  }
  const Plan& plan = judged.plan;
  warn_of_differences(judged, console);
  warn_of_unsupported(plan, console);
  console.data << (arguments.get("--format") == "json" ? plan_to_json(plan)
                                                       : plan_to_text(plan));
  return plan.has_plan() && judged.differences.empty() ? kDone : kFinding;
}

}  // namespace

Command explain_command() {
  std::vector<Option> options = planning_options();
  options.push_back({.name = "--plan",
                     .value = "FILE",
                     .help = "explain this saved plan instead of making one"});
  options.push_back({.name = "--program",
                     .value = "NAME",
                     .help = "which one of a .pt2 that holds several"});
  options.push_back(format_option());
  options.push_back(output_option());
  return {.name = "explain",
          .summary = "plan a graph on a mesh and say why",
          .example = "shardprop explain model.pt2 --mesh dp=2,tp=4",
          .options = std::move(options),
          .run = run_explain};
}

}  // namespace shardprop::cli
