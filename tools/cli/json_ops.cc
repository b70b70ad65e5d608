#include "cli/json_ops.h"

#include <shardprop/strategy/op_cost.h>

#include <cmath>
#include <utility>

namespace shardprop::cli {
namespace {

using Json = nlohmann::ordered_json;

Json argument_json(const Argument& argument) {
  return std::visit(
      [](const auto& value) -> Json {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, NoneArg> ||
                      std::is_same_v<T, TensorArg> ||
                      std::is_same_v<T, std::vector<TensorArg>>) {
          return nullptr;
        } else if constexpr (std::is_same_v<T, DType>) {
          return to_string(value);
        } else if constexpr (std::is_same_v<T, NamedArg>) {
          return value.name;
        } else if constexpr (std::is_same_v<T, std::complex<double>>) {
          return {{"real", value.real()}, {"imag", value.imag()}};
        } else if constexpr (std::is_same_v<T, double>) {
          if (std::isnan(value)) return "NaN";
          if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
          return value;
        } else {
          return value;
        }
      },
      argument);
}

Json ref_json(const LocalRef& ref) {
  if (ref.step >= 0) return {{"step", ref.step}, {"result", ref.index}};
  if (ref.index == TensorArg::kNone) return nullptr;
  return {{"input", ref.index}};
}

// The scalar's value on every rank, or one number where all agree.
Json per_rank(const LocalContext& context, const std::vector<RankScalar>& list,
              bool is_list) {
  Json values = Json::array();
  for (std::int64_t i = 0; i < context.mesh.size(); ++i) {
    const Coordinate at = context.mesh.coordinate_at_index(i);
    Json row = Json::array();
    for (const RankScalar& scalar : list) {
      row.push_back(evaluate(scalar, context, at));
    }
    values.push_back(is_list ? row : row[0]);
  }
  return {{"per_rank", std::move(values)}};
}

Json value_json(const LocalOp::Value& value, const LocalContext& context) {
  return std::visit(
      [&](const auto& held) -> Json {
        using T = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<T, Argument>) {
          return argument_json(held);
        } else if constexpr (std::is_same_v<T, LocalRef>) {
          return ref_json(held);
        } else if constexpr (std::is_same_v<T, std::vector<LocalRef>>) {
          Json list = Json::array();
          for (const LocalRef& ref : held) list.push_back(ref_json(ref));
          return list;
        } else if constexpr (std::is_same_v<T, RankScalar>) {
          return per_rank(context, {held}, false);
        } else {
          return per_rank(context, held, true);
        }
      },
      value);
}

Json names_of(const DimIndices& mesh_dims, const DeviceMesh& mesh) {
  Json names = Json::array();
  for (const std::int32_t dim : mesh_dims) names.push_back(mesh.name(dim));
  return names;
}

Json program_json(const LocalProgram& program, const LocalContext& context) {
  Json steps = Json::array();
  for (const LocalStep& step : program.steps) {
    if (const auto* op = std::get_if<LocalOp>(&step)) {
      Json args = Json::object();
      for (const auto& [name, value] : op->args) {
        args[name] = value_json(value, context);
      }
      steps.push_back({{"op", op->name}, {"args", std::move(args)}});
    } else {
      const auto& reduce = std::get<LocalAllReduce>(step);
      steps.push_back({{"collective", "all_reduce"},
                       {"reduce_op", to_string(reduce.op)},
                       {"mesh_dims", names_of(reduce.mesh_dims, context.mesh)},
                       {"value", ref_json(reduce.value)}});
    }
  }
  Json outputs = Json::array();
  for (const LocalRef& ref : program.outputs) outputs.push_back(ref_json(ref));
  return {{"steps", std::move(steps)}, {"outputs", std::move(outputs)}};
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
    Json values = Json::array();
    for (const std::vector<std::int64_t>& row : argument.values) {
      values.push_back(argument.is_list ? Json(row) : Json(row.front()));
    }
    out[argument.name] = std::move(values);
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
  out["local_args"] = needs_program(context)
                          ? Json::object()
                          : rank_arguments_json(rank_arguments(context));
  out["inside"] = Json::array();
  for (const InsideStep& step : collectives_inside(context, topology)) {
    out["inside"].push_back(
        {{"collective", to_string(step.collective)},
         {"mesh_dims", names_of(step.mesh_dims, context.mesh)},
         {"bytes_per_rank", step.bytes_per_rank},
         {"us", microseconds(step.nanoseconds)}});
  }
  if (needs_program(context)) {
    out["local_program"] = program_json(local_program(context), context);
  }
  return out;
}

}  // namespace shardprop::cli
