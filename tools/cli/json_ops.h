// Answers about operators as the JSON of the contract: outputs, strategies and
// local programs.
#pragma once

#include <shardprop/mesh/topology.h>
#include <shardprop/ops/op_schema.h>
#include <shardprop/strategy/local_context.h>

#include <nlohmann/json.hpp>

#include <span>

namespace shardprop::cli {

// Times leave as microseconds.
double microseconds(std::int64_t nanoseconds);

nlohmann::ordered_json outputs_json(std::span<const TensorMeta> metas,
                                    std::span<const Layout> layouts);
// One value per rank, in mesh order.
nlohmann::ordered_json rank_arguments_json(
    std::span<const RankArgument> arguments);
// {"outputs", "inputs", "local_args", "inside"}, and "local_program" where a
// rank runs more than the operator itself. On meshes of more than 4,096 ranks
// an argument is {"mesh_dims": ["tp"], "values": [[8, 4], ...]}: one value per
// rank of the mesh dims that it depends on, in mesh order.
nlohmann::ordered_json strategy_json(const LocalContext& context,
                                     const Topology& topology);

}  // namespace shardprop::cli
