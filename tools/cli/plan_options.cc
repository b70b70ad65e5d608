#include "cli/plan_options.h"

#include "base/try.h"

#include <shardprop/redistribute/planner.h>

#include <limits>
#include <string>
#include <utility>

namespace shardprop::cli {
namespace {

constexpr std::int64_t kMostWork = std::numeric_limits<std::int64_t>::max();

Result<double> overlap_option(const Arguments& arguments,
                              const Topology& topology) {
  if (!arguments.has("--overlap")) return topology.overlap_discount.value;
  if (arguments.get("--overlap") == "none") return 0.0;
  SP_ASSIGN(const auto share, arguments.number("--overlap", 0, 1));
  return *share;
}

Result<std::optional<std::int64_t>> memory_option(const Arguments& arguments,
                                                  const Topology& topology) {
  if (!arguments.has("--memory")) return topology.memory_bytes();
  if (arguments.get("--memory") == "none") return std::nullopt;
  return arguments.bytes("--memory");
}

}  // namespace

std::vector<Option> planning_options() {
  return {
      {.name = "GRAPH",
       .help = "a .pt2, the program's bare .json, or .json.gz",
       .required = true},
      {.name = "--mesh",
       .value = "MESH",
       .help = "dp=2,tp=4, or 2,4; at most 5 dims larger than 1"},
      {.name = "--topology",
       .value = "NAME|FILE.toml",
       .help = "what the mesh runs on; all: shardprop topologies",
       .fallback = default_topology().name},
      {.name = "--memory",
       .value = "BYTES|none",
       .help = "a rank's limit, as 80GiB; default: the device's memory"},
      {.name = "--optimizer",
       .value = "NAME",
       .help = "whose state and step count",
       .fallback = "none",
       .choices = {"none", "sgd", "adamw"}},
      {.name = "--overlap",
       .value = "none|X",
       .help = "share of parameter gathers and gradient reductions that hides "
               "behind compute, 0 to 1; default: the topology's"},
      {.name = "--pin",
       .value = "GLOB=PLACEMENTS",
       .help = "lay out what the name matches so; repeatable",
       .repeatable = true},
      {.name = "--time-limit",
       .value = "S",
       .help = "seconds to search",
       .fallback = "60"},
      {.name = "--work-limit",
       .value = "N",
       .help = "table entries to touch at most; deterministic"},
      {.name = "--threads",
       .value = "N",
       .help = "threads to search with",
       .fallback = "1"},
      {.name = "--seed",
       .value = "N",
       .help = "where random choices start",
       .fallback = "0"},
      {.name = "--max-input",
       .value = "BYTES",
       .help = "most to read, after decompression",
       .fallback = "2GiB"},
      {.name = "--strict", .help = "fail where an operator has no strategy"},
  };
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

Result<PlanOptions> plan_options(const Arguments& arguments,
                                 const Topology& topology) {
  PlanOptions options;
  SP_ASSIGN(options.memory_limit, memory_option(arguments, topology));
  options.optimizer = *parse_optimizer(arguments.get("--optimizer"));
  SP_ASSIGN(options.overlap, overlap_option(arguments, topology));
  for (const std::string& text : arguments.all("--pin")) {
    SP_ASSIGN(Pin pin, Pin::parse(text));
    options.pins.push_back(std::move(pin));
  }
  SP_ASSIGN(const auto seconds, arguments.number("--time-limit", 0, 1e6));
  options.time_limit_seconds = *seconds;
  SP_ASSIGN(options.work_limit,
            arguments.integer("--work-limit", 0, kMostWork));
  SP_ASSIGN(const auto threads, arguments.integer("--threads", 1, 1024));
  options.threads = static_cast<int>(*threads);
  SP_ASSIGN(const auto seed, arguments.integer("--seed", 0, kMostWork));
  options.seed = static_cast<std::uint64_t>(*seed);
  options.strict = arguments.has("--strict");
  return options;
}

}  // namespace shardprop::cli
