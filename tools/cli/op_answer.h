// OpAnswer: what `shardprop propagate` says of one line: how the operator runs
// on its inputs as they lie, or all its strategies.
//
//   aten.mm.default on d0=2,d1=4: 7.2 us
//     takes  f32[16,32] S(0),R  f32[32,8] R,S(1)
//     moves  input 1  S(0),R -> R,S(1)
//     makes  f32[16,8] S(0),S(1)
#pragma once

#include "cli/op_line.h"

#include <shardprop/base/result.h>
#include <shardprop/mesh/topology.h>
#include <shardprop/propagate/output_sharding.h>
#include <shardprop/strategy/layout_table.h>
#include <shardprop/strategy/op_strategy.h>

#include <optional>
#include <string>

namespace shardprop::cli {

struct OpAnswer {
  std::optional<OutputSharding> chosen;  // where the line has placements
  std::optional<OpStrategy> every;       // --all
  LayoutTable layouts;                   // those of `every`
};

// One line of JSON, as CLI.md says. Error: kOutOfMemory, where the numbers of
// all ranks in all strategies are sure not to fit.
Result<std::string> as_json(const OpLine& line, const OpAnswer& answer,
                            const Topology& topology);
// For people; several lines.
std::string as_text(const OpLine& line, const OpAnswer& answer);

// The answer to a line that has none; `op` where it could be read.
std::string refusal_as_json(const std::optional<std::string>& op,
                            const Error& error);

}  // namespace shardprop::cli
