// One operator a line in, one answer a line out.

#include "base/try.h"
#include "cli/json_ops.h"
#include "commands.h"

#include <shardprop/io/topology_file.h>
#include <shardprop/propagate/sharding_propagator.h>

#include <nlohmann/json.hpp>

#include <fstream>
#include <map>
#include <memory>
#include <string>

namespace shardprop::cli {
namespace {

using Json = nlohmann::ordered_json;

class Batch {
 public:
  Batch(Topology topology, bool all, bool strided, std::size_t limit)
      : topology_(std::move(topology)),
        all_(all),
        strided_(strided),
        limit_(limit) {}

  Json answer(const std::string& line) {
    Json out;
    const auto parsed = parse_op_line(line, *library_);
    if (!parsed) return with_error(std::move(out), parsed.error());
    out["op"] = parsed->op->name();
    const auto filled = fill(*parsed, out);
    if (!filled) return with_error(std::move(out), filled.error());
    return out;
  }

 private:
  static Json with_error(Json out, const Error& error) {
    if (!out.contains("op")) out["op"] = nullptr;
    out["error"] = {{"code", code_string(error.code)},
                    {"message", error.message}};
    if (!error.help.empty()) out["error"]["help"] = error.help;
    return out;
  }

  Result<const ShardingPropagator*> propagator(const DeviceMesh& mesh) {
    const std::string key = to_string(mesh);
    if (const auto it = propagators_.find(key); it != propagators_.end()) {
      return &it->second;
    }
    SP_ASSIGN(ShardingPropagator made,
              ShardingPropagator::create(mesh, topology_, library_));
    return &propagators_.emplace(key, std::move(made)).first->second;
  }

  Result<void> fill(const OpLine& line, Json& out) {
    SP_ASSIGN(const ShardingPropagator* propagator,
              this->propagator(line.mesh));
    if (!line.layouts.empty() || line.op->inputs.empty()) {
      SP_ASSIGN(const Propagation chosen,
                propagator->propagate(line.op, line.layouts));
      out["outputs"] = outputs_json(line.op->outputs, chosen.outputs);
      out["inputs"] = Json::array();
      for (const Layout& layout : chosen.inputs) {
        out["inputs"].push_back({{"placements", to_strings(layout)}});
      }
      out["local_args"] = rank_arguments_json(chosen.rank_arguments);
      out["cost_us"] = microseconds(chosen.cost());
    } else if (!all_) {
      return fail(ErrorCode::kInvalidArgument,
                  "the tensors of the line have no placements",
                  "give each its placements, or ask for --all");
    }
    if (!all_) return {};
    LayoutTable layouts;
    StrategyOptions options;
    options.limit = limit_;
    // In default shard order and not strided, unless asked for or given.
    options.allow_strided = strided_;
    options.allow_shard_orders = strided_;
    for (const Layout& layout : line.layouts) {
      options.allow_strided |= layout.has_strided();
      options.allow_shard_orders |= !layout.has_default_order();
    }
    SP_ASSIGN(const OpStrategy every,
              propagator->strategies(line.op, layouts, options));
    if (every.truncated) out["truncated"] = true;
    out["strategies"] = Json::array();
    for (const PlacementStrategy& strategy : every.strategies) {
      out["strategies"].push_back(strategy_json(
          {*line.op, *every.space, line.mesh, layouts, strategy}, topology_));
    }
    return {};
  }

  Topology topology_;
  bool all_;
  bool strided_;
  std::size_t limit_;
  std::shared_ptr<const OpLibrary> library_ = OpLibrary::standard();
  std::map<std::string, ShardingPropagator> propagators_;
};

Result<int> run_propagate(const Arguments& arguments, Console& console) {
  SP_ASSIGN(Topology topology, load_topology(arguments.get("--topology")));
  SP_ASSIGN(const auto limit,
            arguments.integer("--limit", 1, std::int64_t{1} << 32));
  const std::string path = arguments.get("--batch");
  std::ifstream file(path);
  if (!file) {
    return fail(Error{ErrorCode::kInvalidArgument,
                      "the batch file cannot be read",
                      "--batch " + path,
                      {},
                      "check the path"});
  }
  Batch batch(std::move(topology), arguments.has("--all"),
              arguments.has("--strided"),
              static_cast<std::size_t>(limit.value()));
  std::string line;
  while (std::getline(file, line)) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    console.data << batch.answer(line).dump() << '\n';
  }
  return kDone;
}

}  // namespace

Command propagate_command() {
  return {
      .name = "propagate",
      .summary = "how an operator's output is laid out, one op a line",
      .example = "shardprop propagate --batch ops.jsonl --all",
      .options = {{.name = "--batch",
                   .value = "FILE.jsonl",
                   .help = "one operator a line",
                   .required = true},
                  {.name = "--all", .help = "every valid strategy of each op"},
                  {.name = "--strided",
                   .help = "with --all, strided shards too"},
                  {.name = "--limit",
                   .value = "N",
                   .help = "most strategies of one op",
                   .fallback = "100000"},
                  {.name = "--topology",
                   .value = "NAME|FILE.toml",
                   .help = "the machine under the mesh",
                   .fallback = default_topology().name},
                  output_option()},
      .run = run_propagate};
}

}  // namespace shardprop::cli
