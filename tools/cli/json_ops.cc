#include "cli/json_ops.h"

#include "report/local_run_json.h"

#include <shardprop/strategy/op_cost.h>

#include <utility>

namespace shardprop::cli {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

double microseconds(std::int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) / 1000.0;
}

Json outputs_json(std::span<const TensorMeta> metas,
                  std::span<const Layout> layouts) {
  Json list = Json::array();
  for (std::size_t i = 0; i < metas.size(); ++i) {
    Json shape = Json::array();
    for (const std::int64_t size : metas[i].shape()) shape.push_back(size);
    list.push_back({{"shape", std::move(shape)},
                    {"dtype", to_string(metas[i].dtype())},
                    {"placements", to_strings(layouts[i])}});
  }
  return list;
}

Json rank_arguments_json(std::span<const RankArgument> arguments) {
  Json out = Json::object();
  for (const RankArgument& argument : arguments) {
    out[argument.name()] = rank_values_json<Json>(argument, argument.mesh());
  }
  return out;
}

Json strategy_json(const LocalContext& context, const Topology& topology) {
  Json out;
  const auto layouts_json = [&](const InlineVector<LayoutId, 4>& ids) {
    Json list = Json::array();
    for (const LayoutId id : ids) {
      list.push_back(to_strings(context.layouts[id]));
    }
    return list;
  };
  out["outputs"] = layouts_json(context.strategy.outputs);
  out["inputs"] = layouts_json(context.strategy.inputs);
  const LocalRun run = local_run(context);
  out["local_args"] = local_args_json<Json>(run, context.mesh);
  out["inside"] = Json::array();
  for (const CollectiveStep& step : collectives_inside(context, topology)) {
    out["inside"].push_back(
        {{"collective", to_string(step.kind)},
         {"mesh_dims", dim_names_json<Json>(step.mesh_dims, context.mesh)},
         {"bytes_per_rank", step.bytes_per_rank},
         {"us", microseconds(step.nanoseconds)}});
  }
  if (run.program) {
    out["local_program"] = local_program_json<Json>(*run.program, context.mesh);
  }
  return out;
}

}  // namespace shardprop::cli
