// A region is a graph that an operator runs unchanged, once, on its operands.
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
  // True if operators of the region cast their operands, by the rules of
  // torch.autocast.
  bool is_autocast = false;
  // True if the model asks to run the operators again in the backward pass.
  bool is_checkpoint = false;
};

// Returns the region that a node runs. Returns nullopt for control flow (cond,
// while_loop, scan), which may run its graphs any number of times.
std::optional<Region> region_of(const Node& node);

// Flattens lists: one argument for each tensor or size.
std::vector<Argument> flattened(const std::vector<Argument>& arguments);

}  // namespace shardprop::pt2
