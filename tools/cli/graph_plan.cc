#include "cli/graph_plan.h"

#include "base/printable.h"
#include "base/quantities.h"
#include "base/try.h"
#include "cli/graph_options.h"
#include "cli/interruption.h"
#include "cli/plan_file.h"
#include "cli/plan_options.h"

#include <shardprop/plan/judge_plan.h>
#include <shardprop/plan/make_plan.h>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

namespace shardprop::cli {
namespace {

Error other(const std::string& path, const char* what,
            std::vector<std::string> notes, const char* help) {
  return {ErrorCode::kPlanOtherGraph,
          std::string("the plan was made for another ") + what,
          "--plan " + path, std::move(notes), help};
}

// Refuses options that would give another plan than the saved one. Limits and
// threads of a search are harmless, because nothing is solved.
Result<void> check_nothing_to_plan(const Arguments& arguments) {
  constexpr std::string_view kHarmless[] = {
      "GRAPH",     "--mesh",    "--time-limit", "--work-limit",
      "--threads", "--seed",    "--strict",     "--bound",
      "--size",    "--rule",    "--program",    "--max-input"};
  for (const Option& option : planning_options()) {
    if (std::count(std::begin(kHarmless), std::end(kHarmless), option.name) >
            0 ||
        !arguments.has(option.name) ||
        arguments.get(option.name) == option.fallback) {
      continue;
    }
    return fail(Error{ErrorCode::kInvalidArgument,
                      option.name + " says how to make a plan, and --plan "
                                    "gives one that is made",
                      option.value.empty()
                          ? option.name
                          : option.name + " " + arguments.get(option.name),
                      {},
                      "leave one of them out"});
  }
  return {};
}

// Finds the operators without a strategy in the graph. The list in the plan's
// file is not trusted.
std::vector<UnsupportedOp> unsupported_ops(const Graph& graph,
                                           const OpLibrary& library) {
  std::map<std::string, UnsupportedOp> by_op;
  for (const Node& node : graph.nodes()) {
    if (node.outputs.empty()) continue;
    const auto space = library.index_space(node.op);
    if (space) continue;
    UnsupportedOp& entry = by_op[node.op_name()];
    entry.op = node.op_name();
    entry.reason = space.error().message;
    ++entry.count;
  }
  std::vector<UnsupportedOp> out;
  out.reserve(by_op.size());
  for (auto& [name, entry] : by_op) out.push_back(std::move(entry));
  return out;
}

// Checks --strict for a saved plan.
Result<void> check_supported(const Plan& plan, const Arguments& arguments) {
  if (!arguments.has("--strict") || plan.unsupported.empty()) return {};
  const UnsupportedOp& first = plan.unsupported.front();
  return fail(
      Error{ErrorCode::kNoStrategy,
            "`" + first.op + "` runs replicated in this plan: " + first.reason,
            "--plan " + arguments.get("--plan"),
            {},
            "make a plan with a rule for it, or leave out --strict"});
}

// Checks that a saved plan belongs to this graph, and to the mesh if one is
// given.
Result<void> check_same(const Plan& plan, const Arguments& arguments,
                        const Graph& graph) {
  const std::string path = arguments.get("--plan");
  const std::string hash = hash_text(graph.hash());
  if (plan.graph_hash != hash) {
    return fail(other(path, "graph",
                      {"plan: " + plan.graph_name + " " + plan.graph_hash,
                       "graph: " + graph.name() + " " + hash},
                      "give the graph it was made for, or plan anew without "
                      "--plan"));
  }
  if (!arguments.has("--mesh")) return {};
  SP_ASSIGN(const DeviceMesh mesh, mesh_option(arguments));
  if (mesh == plan.mesh) return {};
  return fail(
      other(path, "mesh",
            {"plan: " + to_string(plan.mesh), "--mesh: " + to_string(mesh)},
            "leave out --mesh"));
}

// Judges the plan by evaluate(), if the file permits it.
Result<JudgedPlan> judged(Plan plan, const std::string& path,
                          const Graph& graph, const OpLibrary& library) {
  // Schema 1 lacks fields that judging needs.
  if (plan.is_proof_given) {
    plan.unsupported = unsupported_ops(graph, library);
    return JudgedPlan{std::move(plan), {}};
  }
  Result<JudgedPlan> judged = judge_plan(plan, graph, library);
  if (judged) return judged;
  Error error = std::move(judged).error();
  error.location = error.location.empty()
                       ? "--plan " + path
                       : "--plan " + path + " " + error.location;
  return fail(std::move(error));
}

// Prints the progress as one line that is overwritten each time.
void print_progress(const PlanProgress& now, Console& console) {
  constexpr std::string_view kPhases[] = {"set up", "search", "report"};
  const auto us = [](const std::optional<std::int64_t>& nanoseconds) {
    return nanoseconds ? fmt::format("{:.1f} us", microseconds(*nanoseconds))
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
                      Console& console) {
  SP_ASSIGN(const DeviceMesh mesh, mesh_option(arguments));
  SP_ASSIGN(PlanOptions options, plan_options(arguments, topology));
  options.start = arguments.begun();
  if (console.progress) {
    options.progress = [&](const PlanProgress& now) {
      print_progress(now, console);
    };
  }
  const auto interruption = std::make_shared<const Interruption>();
  console.until_written = interruption;
  options.stop = interruption->token();
  Result<Plan> plan =
      placed_at_least(make_plan(graph, mesh, topology, library, options),
                      arguments.get("GRAPH"));
  if (console.progress) console.messages << "\r\x1b[K";  // erases the line
  if (interruption->came() && plan) {
    console.messages << (plan->has_plan()
                             ? "interrupted: this is the best plan so far\n"
                             : "interrupted: no plan had been found yet\n");
  }
  return plan;
}

}  // namespace

std::vector<Option> graph_plan_options() {
  std::vector<Option> options = planning_options();
  options.push_back({.name = "--plan",
                     .value = "FILE",
                     .help = "take this saved plan instead of making one",
                     .input = input_value});
  return options;
}

Result<GraphPlan> graph_plan(const Arguments& arguments, SavedPlan saved,
                             Console& console, WithPlan next) {
  // Options that need no graph are checked before the graph is read. Each file
  // is read once, since it may be a pipe.
  const bool is_saved = arguments.has("--plan");
  GraphReading reading = reading_of(arguments);
  reading.deadline = deadline_option(arguments);
  Topology topology;
  JudgedPlan found;
  SP_ASSIGN(const auto max_input, arguments.bytes("--max-input"));
  if (!is_saved) {
    SP_CHECK(mesh_option(arguments));
    SP_ASSIGN(topology, topology_option(arguments, reading.deadline));
    SP_CHECK(plan_options(arguments, topology));
  } else {
    SP_CHECK(check_nothing_to_plan(arguments));
    const std::string path = arguments.get("--plan");
    SP_ASSIGN(found.plan, read_plan_file(path, "--plan " + path, *max_input,
                                         reading.deadline));
    SP_CHECK(add_saved(reading, found.plan, path));
  }
  SP_ASSIGN(auto library, library_of(reading));
  SP_ASSIGN(Graph graph,
            graph_of(arguments, arguments.get("GRAPH"), reading, *library));
  if (next == WithPlan::kWork) print_notes(graph, console);
  if (!is_saved) {
    SP_ASSIGN(found.plan,
              new_plan(arguments, graph, topology, *library, console));
    if (next == WithPlan::kWork) console.until_written.reset();
    save(reading, found.plan);
  } else {
    SP_CHECK(check_same(found.plan, arguments, graph));
    if (saved == SavedPlan::kAsWritten) {
      found.plan.is_proof_given = true;
      found.plan.unsupported = unsupported_ops(graph, *library);
    } else {
      SP_ASSIGN(found, judged(std::move(found.plan), arguments.get("--plan"),
                              graph, *library));
    }
    SP_CHECK(check_supported(found.plan, arguments));
  }
  return GraphPlan{std::move(library), std::move(graph), std::move(found.plan),
                   std::move(found.differences)};
}

void warn_of_differences(const GraphPlan& given, Console& console) {
  constexpr std::size_t kMostPrinted = 5;
  const std::vector<std::string>& all = given.differences;
  for (std::size_t i = 0; i < std::min(all.size(), kMostPrinted); ++i) {
    console.messages << "warning: " << printable(all[i]) << '\n';
  }
  if (all.size() > kMostPrinted) {
    console.messages << "warning: and " << all.size() - kMostPrinted
                     << " more figures of the file are not those of its plan\n";
  }
}

}  // namespace shardprop::cli
