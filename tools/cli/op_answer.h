// OpAnswer is the answer of `shardprop propagate` to one line: the chosen
// strategy for the given layouts of the inputs, or all strategies.
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
  std::optional<OutputSharding> chosen;  // if the line has placements
  std::optional<OpStrategy> every;       // --all
  LayoutTable layouts;                   // those of `every`
};

// One line of JSON, as CLI.md says. Error: kOutOfMemory if the numbers of all
// ranks in all strategies cannot fit.
Result<std::string> as_json(const OpLine& line, const OpAnswer& answer,
                            const Topology& topology);
// Returns the answer as several lines of text for people.
std::string as_text(const OpLine& line, const OpAnswer& answer);

// Returns the JSON of an error; `op` is set if it could be read.
std::string refusal_as_json(const std::optional<std::string>& op,
                            const Error& error);

}  // namespace shardprop::cli
