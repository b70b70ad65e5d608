#include "cli/plan_options.h"

#include "cli/graph_options.h"

#include <shardprop/io/topology_file.h>
#include <shardprop/request/plan_request.h>

#include <string>
#include <utility>

namespace shardprop::cli {
namespace {

// Help text of an option whose default comes from the topology, not from the
// library.
std::string_view default_by_topology(std::string_view name) {
  if (name == "memory")
    return "; default: what a process can allocate on the device";
  if (name == "overlap") return "; default: the topology's";
  return {};
}

std::vector<GivenOption> given_options(const Arguments& arguments) {
  std::vector<GivenOption> given;
  for (const OptionInfo& info : plan_option_table()) {
    const std::string flag = flag_of(info);
    for (const std::string& text : arguments.all(flag)) {
      given.push_back({std::string(info.name), text, flag + " " + text});
    }
  }
  return given;
}

}  // namespace

std::vector<Option> planning_options(SearchLimit limit) {
  std::vector<Option> options = {
      {.name = "GRAPH",
       .help = "a .pt2, the program's bare .json, or .json.gz",
       .required = true,
       .input = input_value},
      {.name = "--mesh",
       .value = "MESH",
       .help = "dp=2,tp=4, or 2,4; at most 5 dims larger than 1"},
      {.name = "--topology",
       .value = "NAME|FILE.toml",
       .help = "what the mesh runs on; all: shardprop topologies",
       .fallback = default_topology().name,
       .input = input_topology}};
  for (const OptionInfo& info : plan_option_table()) {
    Option option = option_row(info);
    if (const auto text = default_by_topology(info.name); !text.empty()) {
      option.help += text;
      option.fallback.clear();
    }
    // If the user gives one limit, it is the only one.
    if (info.name == "time_limit") {
      option.help += limit == SearchLimit::kWork
                         ? std::string("; default: see --work-limit")
                         : "; " + option.fallback + " without --work-limit";
      option.fallback.clear();
    }
    if (info.name == "work_limit" && limit == SearchLimit::kWork) {
      option.help +=
          "; " + std::to_string(kDefaultWork) + " without --time-limit";
    }
    // The default of the precision depends on the optimizer.
    if (info.name == "precision") option.fallback.clear();
    options.push_back(std::move(option));
  }
  options.push_back({.name = "--start-from",
                     .value = "PLAN.json",
                     .help = "begin the search with this saved plan, of this "
                             "graph or of a graph with mostly the same names",
                     .input = input_value});
  options.push_back({.name = "--like",
                     .value = "PLAN.json",
                     .help = "lay parameters and buffers out as this saved "
                             "plan of the same model and mesh does",
                     .input = input_value});
  for (Option& option : graph_options()) options.push_back(std::move(option));
  return options;
}

Result<DeviceMesh> mesh_option(const Arguments& arguments) {
  if (!arguments.has("--mesh")) {
    return fail(Error{ErrorCode::kInvalidArgument,
                      "--mesh is required",
                      {},
                      {},
                      "say what to plan for, as in --mesh dp=2,tp=4"});
  }
  const std::string text = arguments.get("--mesh");
  return placed(planned_mesh(text), "--mesh " + text);
}

Deadline deadline_option(const Arguments& arguments, SearchLimit limit) {
  return end_of_time_limit(given_options(arguments), arguments.begun(), limit);
}

Result<Topology> topology_option(const Arguments& arguments,
                                 Deadline deadline) {
  const std::string text = arguments.get("--topology");
  Result<Topology> topology = load_topology(text, deadline);
  if (topology || !topology.error().location.empty()) return topology;
  return fail(std::move(topology).error().at("--topology " + text));
}

Result<PlanOptions> plan_options(const Arguments& arguments,
                                 const Topology& topology, SearchLimit limit) {
  return shardprop::plan_options(given_options(arguments), topology, limit);
}

}  // namespace shardprop::cli
