#include "cli/plan_options.h"

#include "base/parse_number.h"
#include "base/try.h"
#include "cli/graph_options.h"
#include "plan/problem/stop.h"

#include <shardprop/io/topology_file.h>
#include <shardprop/redistribute/planner.h>

#include <algorithm>
#include <string>
#include <utility>

namespace shardprop::cli {
namespace {

// Help text of an option whose default comes from the topology, not from the
// library.
std::string_view default_by_topology(std::string_view name) {
  if (name == "memory") return "; default: what a process can allocate on the device";
  if (name == "overlap") return "; default: the topology's";
  return {};
}

}  // namespace

std::vector<Option> planning_options() {
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
    // Without a time limit, a work limit is the only limit.
    if (info.name == "time_limit") {
      option.help += "; " + option.fallback + " without --work-limit";
      option.fallback.clear();
    }
    // The default of the precision depends on the optimizer.
    if (info.name == "precision") option.fallback.clear();
    options.push_back(std::move(option));
  }
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
  auto mesh = DeviceMesh::parse(text);
  if (!mesh) return fail(std::move(mesh).error().at("--mesh " + text));
  int dims = 0;
  for (const MeshDim& dim : mesh->dims()) dims += dim.size > 1 ? 1 : 0;
  if (dims > kMaxPlannedDims) {
    return fail(
        Error{ErrorCode::kMeshTooManyDims,
              "the mesh has " + std::to_string(dims) + " dims larger than 1",
              "--mesh " + text,
              {},
              "plan for at most " + std::to_string(kMaxPlannedDims)});
  }
  return mesh;
}

Deadline deadline_option(const Arguments& arguments) {
  const std::string text = arguments.get("--time-limit");
  if (text.empty() && arguments.has("--work-limit")) return std::nullopt;
  // plan_options() refuses a limit that is not a number, with the other
  // options.
  const auto seconds = text.empty() ? PlanOptions().time_limit_seconds
                                    : parse_number(text).value_or(0);
  return deadline(arguments.begun(), seconds);
}

Result<Topology> topology_option(const Arguments& arguments,
                                 Deadline deadline) {
  const std::string text = arguments.get("--topology");
  Result<Topology> topology = load_topology(text, deadline);
  if (topology || !topology.error().location.empty()) return topology;
  return fail(std::move(topology).error().at("--topology " + text));
}

Result<PlanOptions> plan_options(const Arguments& arguments,
                                 const Topology& topology) {
  PlanOptions options =
      default_plan_options(topology, arguments.has("--work-limit"));
  SP_CHECK(arguments.apply(plan_option_table(), [&](auto name, auto text) {
    return set_option(options, name, text);
  }));
  return options;
}

}  // namespace shardprop::cli
