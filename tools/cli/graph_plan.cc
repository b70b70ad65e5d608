#include "cli/graph_plan.h"

#include "base/try.h"
#include "cli/interruption.h"
#include "cli/plan_options.h"
#include "io/input_file.h"

#include <shardprop/io/load_graph.h>
#include <shardprop/io/topology_file.h>
#include <shardprop/plan/make_plan.h>
#include <shardprop/report/plan_json.h>

#include <utility>

namespace shardprop::cli {
namespace {

Error other(const std::string& path, const char* what,
            std::vector<std::string> notes, const char* help) {
  return {ErrorCode::kPlanOtherGraph,
          std::string("the plan was made for another ") + what,
          "--plan " + path,
          std::move(notes),
          help};
}

Result<Plan> saved_plan(const Arguments& arguments, const Graph& graph,
                        std::int64_t max_input) {
  const std::string path = arguments.get("--plan");
  auto text = read_file(path, max_input);
  if (!text) {
    Error error = std::move(text).error();
    error.code = ErrorCode::kPlanFile;
    error.location = "--plan " + error.location;
    return fail(std::move(error));
  }
  Result<Plan> plan = parse_plan_json(*text);
  if (!plan) return fail(std::move(plan).error().at("--plan " + path));
  const std::string hash = hash_text(graph.hash());
  if (plan->graph_hash != hash) {
    return fail(other(path, "graph",
                      {"plan: " + plan->graph_name + " " + plan->graph_hash,
                       "graph: " + graph.name() + " " + hash},
                      "give the graph it was made for, or plan anew without "
                      "--plan"));
  }
  if (!arguments.has("--mesh")) return plan;
  SP_ASSIGN(const DeviceMesh mesh, mesh_option(arguments));
  if (mesh == plan->mesh) return plan;
  return fail(other(
      path, "mesh",
      {"plan: " + to_string(plan->mesh), "--mesh: " + to_string(mesh)},
      "leave out --mesh"));
}

Result<Plan> new_plan(const Arguments& arguments, const Graph& graph,
                      const Topology& topology, const OpLibrary& library) {
  SP_ASSIGN(const DeviceMesh mesh, mesh_option(arguments));
  SP_ASSIGN(PlanOptions options, plan_options(arguments, topology));
  const Interruption interruption;
  options.stop = interruption.token();
  return make_plan(graph, mesh, topology, library, options);
}

}  // namespace

std::vector<Option> graph_plan_options() {
  std::vector<Option> options = planning_options();
  options.push_back({.name = "--plan",
                     .value = "FILE",
                     .help = "take this saved plan instead of making one"});
  options.push_back({.name = "--program",
                     .value = "NAME",
                     .help = "which one of a .pt2 that holds several"});
  return options;
}

Result<GraphPlan> graph_plan(const Arguments& arguments) {
  // What needs no graph is checked before one is read.
  Topology topology;
  SP_ASSIGN(const auto max_input, arguments.bytes("--max-input"));
  if (!arguments.has("--plan")) {
    SP_CHECK(mesh_option(arguments));
    SP_ASSIGN(topology, load_topology(arguments.get("--topology")));
    SP_CHECK(plan_options(arguments, topology));
  }
  auto library = OpLibrary::standard();
  LoadOptions load;
  load.max_input_bytes = *max_input;
  load.program = arguments.get("--program");
  SP_ASSIGN(Graph graph, load_graph(arguments.get("GRAPH"), *library, load));
  SP_ASSIGN(Plan plan, arguments.has("--plan")
                           ? saved_plan(arguments, graph, *max_input)
                           : new_plan(arguments, graph, topology, *library));
  return GraphPlan{std::move(library), std::move(graph), std::move(plan)};
}

}  // namespace shardprop::cli
