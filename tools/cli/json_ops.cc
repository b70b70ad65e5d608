#include "cli/json_ops.h"

#include "report/local_run_json.h"

#include <shardprop/strategy/op_cost.h>

#include <utility>

namespace shardprop::cli {
namespace {

using Json = nlohmann::ordered_json;

Json names_of(const DimIndices& mesh_dims, const DeviceMesh& mesh) {
  Json names = Json::array();
  for (const std::int32_t dim : mesh_dims) names.push_back(mesh.name(dim));
  return names;
}

DimIndices all_dims(const DeviceMesh& mesh) {
  DimIndices all;
  for (std::int32_t m = 0; m < mesh.ndim(); ++m) all.push_back(m);
  return all;
}

// The values of an argument on the ranks that differ in `dims` only.
Json values_json(const RankArgument& argument, const DimIndices& dims) {
  const DeviceMesh& mesh = argument.mesh();
  Coordinate at(static_cast<std::size_t>(mesh.ndim()));
  Json values = Json::array();
  while (true) {
    const std::vector<std::int64_t> row = argument.at(at);
    values.push_back(argument.is_list() ? Json(row) : Json(row.front()));
    std::size_t d = dims.size();
    while (d > 0) {
      std::int64_t& index = at[static_cast<std::size_t>(dims[d - 1])];
      if (++index < mesh.size(dims[d - 1])) break;
      index = 0;
      --d;
    }
    if (d == 0) return values;
  }
}

// A value a rank, or on larger meshes one for each rank of the mesh dims that
// it depends on.
Json short_values_json(const RankArgument& argument) {
  constexpr std::int64_t kMostListed = 4096;
  if (argument.mesh().size() <= kMostListed) {
    return values_json(argument, all_dims(argument.mesh()));
  }
  const DimIndices dims = argument.mesh_dims();
  return {{"mesh_dims", names_of(dims, argument.mesh())},
          {"values", values_json(argument, dims)}};
}

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
    out[argument.name()] = values_json(argument, all_dims(argument.mesh()));
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
