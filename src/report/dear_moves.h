// Lists the redistributions of a plan, costliest first. Equal moves of repeated
// layers are one entry.
#pragma once

#include "report/module_tree.h"

#include <shardprop/plan/plan.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace shardprop {

struct ExpensiveMove {
  ModuleMove first;    // of those that are alike
  std::string module;  // layers.0..31.mlp
  std::size_t count = 0;
  std::int64_t nanoseconds = 0;  // of all
};

// Returns the moves that take time.
std::vector<ExpensiveMove> expensive_moves(const Plan& plan);

}  // namespace shardprop
