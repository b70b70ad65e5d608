#include "cli/styles_json.h"

#include "base/try.h"
#include "cli/interruption.h"
#include "cli/plan_options.h"

#include <shardprop/plan/judge_plan.h>
#include <shardprop/plan/make_plan.h>
#include <shardprop/report/torch_styles.h>

#include <nlohmann/json.hpp>

#include <utility>

namespace shardprop::cli {
namespace {

using Json = nlohmann::ordered_json;

Json microseconds(const std::optional<std::int64_t>& nanoseconds) {
  if (!nanoseconds) return nullptr;
  return static_cast<double>(*nanoseconds) / 1e3;
}

// Of torch.distributed.tensor.parallel, as it is called.
std::string parallel_style(const std::string& style) {
  if (style == "colwise") return "ColwiseParallel()";
  if (style == "rowwise") return "RowwiseParallel()";
  return style == "embedding_rowwise"
             ? "RowwiseParallel(input_layouts=Replicate())"
             : "ColwiseParallel(output_layouts=Replicate())";
}

Json words(std::string_view as, const TorchStyles& styles) {
  Json out = Json::object();
  if (as == "fully-shard") {
    out["fully_shard"] = Json::array();
    for (const ModuleStyle& one : styles.folded) {
      out["fully_shard"].push_back(one.module);
    }
    return out;
  }
  out["tp_plan"] = Json::object();
  for (const ModuleStyle& one : styles.folded) {
    out["tp_plan"][one.module] = one.style;
  }
  out["parallelize_module"] = Json::object();
  for (const ModuleStyle& one : styles.modules) {
    out["parallelize_module"][one.module] = parallel_style(one.style);
  }
  return out;
}

// Those of the command; of a saved plan its own, searched as the command says.
Result<PlanOptions> options_for(const Plan& plan, const Arguments& arguments) {
  SP_ASSIGN(PlanOptions given, plan_options(arguments, plan.topology));
  if (!arguments.has("--plan")) return given;
  SP_ASSIGN(PlanOptions options, options_of(plan));
  options.time_limit_seconds = given.time_limit_seconds;
  options.work_limit = given.work_limit;
  options.threads = given.threads;
  options.seed = given.seed;
  return options;
}

}  // namespace

Result<std::string> styles_json(std::string_view as, const GraphPlan& given,
                                const Arguments& arguments) {
  const TorchStyles styles =
      as == "fully-shard" ? fully_shard_styles(given.plan, given.graph)
                          : tensor_parallel_styles(given.plan, given.graph);
  SP_ASSIGN(PlanOptions options, options_for(given.plan, arguments));
  options.pins.insert(options.pins.end(), styles.pins.begin(),
                      styles.pins.end());
  const Interruption interruption;
  options.stop = interruption.token();
  SP_ASSIGN(const Plan said,
            make_plan(given.graph, given.plan.mesh, given.plan.topology,
                      *given.library, options));
  Json out = {
      {"schema", "shardprop.styles/1"},
      {"as", as},
      {"graph",
       {{"name", given.plan.graph_name}, {"hash", given.plan.graph_hash}}},
      {"mesh_dim", given.plan.mesh.name(styles.mesh_dim)}};
  out.update(words(as, styles));
  out["unsaid"] = Json::array();
  for (const UnsaidLayout& one : styles.unsaid) {
    out["unsaid"].push_back({{"value", one.value},
                             {"values", one.values},
                             {"placements", to_strings(one.layout)},
                             {"why", one.why}});
  }
  out["objective_us"] = microseconds(given.plan.objective_nanoseconds);
  out["said_status"] = solver::to_string(said.status);
  out["said_objective_us"] = microseconds(said.objective_nanoseconds);
  out["price_us"] = nullptr;
  if (given.plan.objective_nanoseconds && said.objective_nanoseconds) {
    out["price_us"] = microseconds(*said.objective_nanoseconds -
                                   *given.plan.objective_nanoseconds);
  }
  return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace shardprop::cli
