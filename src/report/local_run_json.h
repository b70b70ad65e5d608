// A LocalRun as the JSON of the contract, for any of nlohmann's JSON types.
#pragma once

#include <shardprop/mesh/device_mesh.h>
#include <shardprop/plan/local_run.h>

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace shardprop {

// The values of all ranks, in mesh order, of RankValues or a RankArgument.
template <class Json, class Values>
Json rank_values_json(const Values& values, const DeviceMesh& mesh) {
  Json out = Json::array();
  for (std::int64_t i = 0; i < mesh.size(); ++i) {
    const auto& row = values.at(mesh.coordinate_at_index(i));
    out.push_back(values.is_list() ? Json(row) : Json(row.front()));
  }
  return out;
}

// {"size": [[8, 4], ...]}
template <class Json>
Json local_args_json(const LocalRun& run, const DeviceMesh& mesh) {
  Json out = Json::object();
  for (const LocalRunArgument& argument : run.arguments) {
    out[argument.name] = rank_values_json<Json>(argument.values, mesh);
  }
  return out;
}

// {"input": 0}, {"step": 2, "result": 0}, or null where there is no tensor.
template <class Json>
Json local_ref_json(const LocalRef& ref) {
  if (ref.step >= 0) return {{"step", ref.step}, {"result", ref.index}};
  if (ref.index == TensorArg::kNone) return nullptr;
  return {{"input", ref.index}};
}

template <class Json>
Json local_scalar_json(const LocalScalar& scalar) {
  return std::visit(
      [](const auto& value) -> Json {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::monostate>) {
          return nullptr;
        } else if constexpr (std::is_same_v<T, std::pair<double, double>>) {
          return {{"real", value.first}, {"imag", value.second}};
        } else {
          return value;
        }
      },
      scalar);
}

// What the ranks differ in stands under "per_rank".
template <class Json>
Json local_value_json(const LocalRunValue& value, const DeviceMesh& mesh) {
  return std::visit(
      [&](const auto& held) -> Json {
        using T = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<T, LocalScalar>) {
          return local_scalar_json<Json>(held);
        } else if constexpr (std::is_same_v<T, LocalRef>) {
          return local_ref_json<Json>(held);
        } else if constexpr (std::is_same_v<T, RankValues>) {
          return {{"per_rank", rank_values_json<Json>(held, mesh)}};
        } else {
          Json list = Json::array();
          for (const auto& element : held) {
            if constexpr (std::is_same_v<T, std::vector<LocalRef>>) {
              list.push_back(local_ref_json<Json>(element));
            } else {
              list.push_back(local_scalar_json<Json>(element));
            }
          }
          return list;
        }
      },
      value);
}

template <class Json>
Json dim_names_json(const DimIndices& mesh_dims, const DeviceMesh& mesh) {
  Json names = Json::array();
  for (const std::int32_t dim : mesh_dims) names.push_back(mesh.name(dim));
  return names;
}

// {"steps": [...], "outputs": [...]}
template <class Json>
Json local_program_json(const LocalRunProgram& program,
                        const DeviceMesh& mesh) {
  Json steps = Json::array();
  for (const auto& step : program.steps) {
    if (const auto* op = std::get_if<LocalRunOp>(&step)) {
      Json args = Json::object();
      for (const auto& [name, value] : op->args) {
        args[name] = local_value_json<Json>(value, mesh);
      }
      steps.push_back({{"op", op->name}, {"args", std::move(args)}});
      continue;
    }
    const auto& collective = std::get<LocalRunCollective>(step);
    Json made = {{"collective", to_string(collective.kind)}};
    if (collective.reduce_op) {
      made["reduce_op"] = to_string(*collective.reduce_op);
    }
    made["mesh_dims"] = dim_names_json<Json>(collective.mesh_dims, mesh);
    made["value"] = local_ref_json<Json>(collective.value);
    steps.push_back(std::move(made));
  }
  Json outputs = Json::array();
  for (const LocalRef& ref : program.outputs) {
    outputs.push_back(local_ref_json<Json>(ref));
  }
  return {{"steps", std::move(steps)}, {"outputs", std::move(outputs)}};
}

}  // namespace shardprop
