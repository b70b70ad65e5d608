// LiveInterval is the part of a buffer's life that one variable of the network
// decides.
#pragma once

#include "plan/problem/build/cached_layouts.h"

#include <shardprop/solver/problem.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace shardprop {

// LiveInterval is a live interval: a part of a buffer's life with a choice of cached
// layouts.
struct LiveInterval {
  solver::VariableId variable;
  std::shared_ptr<const std::vector<CachedLayouts>> sets;  // by choice
  std::size_t first_use = 0;
  std::size_t num_uses = 0;
  // Slots. What the interval caches is needed from `begin` on and exists from
  // `issued` on. `end` is the first slot after it.
  std::int64_t issued = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

}  // namespace shardprop
