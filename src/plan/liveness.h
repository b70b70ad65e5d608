// What a rank holds while a plan runs: liveness over the schedule, by storage.
#pragma once

#include "plan/copies.h"

#include <shardprop/plan/plan_problem.h>

#include <cstdint>
#include <span>
#include <vector>

namespace shardprop {

// A stretch of memory: a value with its views, or a copy with its views.
struct LiveRange {
  ValueId value;
  LayoutId layout;
  std::int64_t bytes = 0;
  std::int64_t begin = 0;  // node indices, both included
  std::int64_t end = 0;
};

struct Liveness {
  std::vector<LiveRange> ranges;
  // By copy: the last node that uses it or a view of it.
  std::vector<std::int64_t> copy_ends;
  std::int64_t peak_bytes = 0;
  std::int64_t peak_at = 0;
  std::int64_t parameter_bytes = 0;
  std::int64_t optimizer_bytes = 0;
};

// What goes into the program and optimizer state live throughout, results from
// their making to the end, all else until its last use. While a redistribution
// runs, its buffers count too.
Liveness liveness(const PlanProblem& problem,
                  std::span<const std::uint32_t> choices,
                  std::span<const NeededCopy> copies);

}  // namespace shardprop
