// These functions write answers about operators as the JSON of the contract:
// outputs, strategies and local programs.
#pragma once

#include "io/json_text.h"

#include <shardprop/mesh/topology.h>
#include <shardprop/ops/op_schema.h>
#include <shardprop/strategy/local_context.h>

#include <span>

namespace shardprop::cli {

void write_outputs(JsonText& json, std::span<const TensorMeta> metas,
                   std::span<const Layout> layouts);
// Writes one value per rank, in mesh order.
void write_rank_arguments(JsonText& json,
                          std::span<const RankArgument> arguments);
// {"outputs", "inputs", "local_args", "inside"}, and "local_program" if a rank
// runs more than the operator itself.
void write_strategy(JsonText& json, const LocalContext& context,
                    const Topology& topology);

}  // namespace shardprop::cli
