// Regions: graphs that an operator runs as they stand, once, on its operands.
//
//   with torch.no_grad(): k = x.cos()
//   wrap_with_set_grad_enabled(False, submod_1, x)
#pragma once

#include "io/pt2_program.h"

#include <optional>
#include <vector>

namespace shardprop::pt2 {

struct Region {
  const GraphBody* body = nullptr;
  std::vector<Argument> operands;  // one per input of the body
  // Its operators cast their operands, by rules of torch.autocast.
  bool is_autocast = false;
  // The model asks to run its operators again in the backward pass.
  bool is_checkpoint = false;
};

// The region that a node runs; nullopt for control flow (cond, while_loop,
// scan), whose graphs run or not, or several times.
std::optional<Region> region_of(const Node& node);

// Lists taken apart: one argument for each tensor or size.
std::vector<Argument> flattened(const std::vector<Argument>& arguments);

}  // namespace shardprop::pt2
