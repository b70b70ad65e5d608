// Stretch is a part of the life of a buffer in which the network chooses its
// cached layouts.
#pragma once

#include "plan/held_sets.h"

#include <shardprop/solver/problem.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace shardprop {

// A part of a storage's life.
struct Stretch {
  solver::VariableId variable;
  std::shared_ptr<const std::vector<HeldSet>> sets;  // by choice
  std::size_t first_use = 0;
  std::size_t num_uses = 0;
  std::int64_t begin = 0;  // slots; `end` is the first behind it
  std::int64_t end = 0;
};

}  // namespace shardprop
