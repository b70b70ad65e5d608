#include "cli/graph_plan.h"

#include "base/printable.h"
#include "base/try.h"
#include "cli/graph_options.h"
#include "cli/plan_options.h"
#include "cli/planner_run.h"

#include <shardprop/request/saved_plan.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>

namespace shardprop::cli {
namespace {

Result<PlannedGraph> answered(PlanRequest request, const Arguments& arguments,
                              Console& console) {
  PlannerRun run(request, console);
  Result<PlannedGraph> made =
      placed_at_least(shardprop::plan_graph(request), arguments.get("GRAPH"));
  run.end();
  if (run.is_interrupted() && made) {
    console.messages << (made->plan.has_plan()
                             ? "interrupted: this is the best plan so far\n"
                             : "interrupted: no plan had been found yet\n");
  }
  return made;
}

Result<GraphPlan> new_plan(const Arguments& arguments, Console& console,
                           const PlanUse& use) {
  SP_ASSIGN(PlanRequest request, plan_request(arguments, use.limit));
  if (use.runs_eagerly && !arguments.has("--execution") &&
      !arguments.has("--fusion")) {
    request.options.fusion = Fusion::kNone;
  }
  if (use.next == WithPlan::kWork) print_notes(*request.graph, console);
  auto library = request.library;
  SP_ASSIGN(PlannedGraph made,
            answered(std::move(request), arguments, console));
  if (use.next == WithPlan::kWork) console.until_written.reset();
  return GraphPlan{
      std::move(library), std::move(made.graph), std::move(made.plan), {}, {}};
}

// A plan is for one execution.
Result<void> check_execution(const Plan& plan, const Arguments& arguments) {
  if (!arguments.is_given("--execution")) return {};
  const std::string wanted = arguments.get("--execution");
  for (const auto& [name, text] : plan.options) {
    if (name != "execution" || text == wanted) continue;
    return fail(Error{ErrorCode::kInvalidArgument,
                      "the plan of --plan is for " + text +
                          " execution, and --execution asks for " + wanted,
                      "--execution " + wanted,
                      {},
                      "leave out --execution, or make a plan with it"});
  }
  return {};
}

Result<GraphPlan> taken_plan(const Arguments& arguments, Console& console,
                             const PlanUse& plan_use) {
  SP_ASSIGN(GraphReading reading, reading_of(arguments));
  reading.deadline = deadline_option(arguments, plan_use.limit);
  SP_CHECK(check_nothing_to_plan(arguments, "--plan gives one that is made",
                                 {"--execution"}));
  SavedPlanUse use{.place = "--plan " + arguments.get("--plan"),
                   .is_judged = plan_use.saved == SavedPlan::kJudged,
                   .strict = arguments.has("--strict")};
  SP_ASSIGN(Plan plan, load_plan(arguments.get("--plan"), use.place,
                                 reading.max_input_bytes, reading.deadline));
  SP_CHECK(add_reading_of(plan, use.place, reading));
  SP_ASSIGN(LoadedGraph loaded,
            load_graph(arguments.get("GRAPH"), std::move(reading)));
  if (plan_use.next == WithPlan::kWork) print_notes(*loaded.graph, console);
  if (arguments.has("--mesh")) {
    SP_ASSIGN(use.mesh, mesh_option(arguments));
  }
  auto running = graph_of(plan, std::move(loaded.graph), *loaded.library);
  if (!running) return fail(std::move(running).error().at(use.place));
  loaded.graph = *std::move(running);
  SP_ASSIGN(JudgedPlan taken,
            take_plan(std::move(plan), use, *loaded.graph, *loaded.library));
  // Only now, since a wrong file is the better reason.
  SP_CHECK(check_execution(taken.plan, arguments));
  return GraphPlan{std::move(loaded.library), std::move(loaded.graph),
                   std::move(taken.plan), std::move(taken.differences),
                   std::move(taken.note)};
}

}  // namespace

// Limits and threads of a search are harmless, because nothing is solved.
Result<void> check_nothing_to_plan(
    const Arguments& arguments, const std::string& reason,
    std::initializer_list<std::string_view> checked) {
  constexpr std::string_view kHarmless[] = {
      "GRAPH",     "--mesh",    "--time-limit", "--work-limit", "--gap",
      "--threads", "--seed",    "--strict",     "--bound",      "--size",
      "--rule",    "--program", "--max-input",  "--other-size"};
  for (const Option& option : planning_options()) {
    if (std::count(std::begin(kHarmless), std::end(kHarmless), option.name) >
            0 ||
        std::count(checked.begin(), checked.end(), option.name) > 0 ||
        !arguments.has(option.name) ||
        arguments.get(option.name) == option.fallback) {
      continue;
    }
    return fail(Error{ErrorCode::kInvalidArgument,
                      option.name + " says how to make a plan, and " + reason,
                      option.value.empty()
                          ? option.name
                          : option.name + " " + arguments.get(option.name),
                      {},
                      "leave one of them out"});
  }
  return {};
}

std::vector<Option> graph_plan_options(SearchLimit limit) {
  std::vector<Option> options = planning_options(limit);
  options.push_back({.name = "--plan",
                     .value = "FILE",
                     .help = "take this saved plan instead of making one",
                     .input = input_value});
  return options;
}

// Returns the saved plan that the option names; null if it is not given.
Result<std::shared_ptr<const Plan>> plan_option(const Arguments& arguments,
                                                const std::string& name,
                                                const GraphReading& reading) {
  if (!arguments.has(name)) return std::shared_ptr<const Plan>();
  const std::string file = arguments.get(name);
  SP_ASSIGN(Plan plan, load_plan(file, name + " " + file,
                                 reading.max_input_bytes, reading.deadline));
  return std::make_shared<const Plan>(std::move(plan));
}

Result<PlanRequest> plan_request(const Arguments& arguments,
                                 SearchLimit limit) {
  SP_ASSIGN(GraphReading reading, reading_of(arguments));
  reading.deadline = deadline_option(arguments, limit);
  PlanRequest request;
  SP_ASSIGN(request.mesh, mesh_option(arguments));
  SP_ASSIGN(request.topology, topology_option(arguments, reading.deadline));
  SP_ASSIGN(request.options, plan_options(arguments, request.topology, limit));
  request.options.start = arguments.begun();
  SP_ASSIGN(request.options.start_from,
            plan_option(arguments, "--start-from", reading));
  SP_ASSIGN(request.like, plan_option(arguments, "--like", reading));
  SP_ASSIGN(LoadedGraph loaded,
            load_graph(arguments.get("GRAPH"), std::move(reading)));
  request.graph = std::move(loaded.graph);
  request.library = std::move(loaded.library);
  request.reading = std::move(loaded.reading);
  return request;
}

Result<GraphPlan> graph_plan(const Arguments& arguments, Console& console,
                             const PlanUse& use) {
  return arguments.has("--plan") ? taken_plan(arguments, console, use)
                                 : new_plan(arguments, console, use);
}

void warn_of_differences(const GraphPlan& given, Console& console) {
  if (!given.note.empty()) {
    console.messages << "note: " << printable(given.note) << '\n';
  }
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
