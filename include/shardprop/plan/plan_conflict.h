// `PlanConflict` is the conflict of an infeasible plan: constraints that cannot
// all hold. If `irreducible`, it is minimal: without any one of them the others
// can hold.
//
//   recipe fsdp=dp, pin w=R,R, and node mm_3 with 1 MiB over the limit
#pragma once

#include <shardprop/plan/pin.h>
#include <shardprop/plan/recipe.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardprop {

struct PlanConflict {
  struct Step {
    std::int64_t at = 0;           // index of the node that runs then
    std::string node;              // its name; empty at the end of the program
    std::int64_t bytes_short = 0;  // over the limit for every choice
    friend bool operator==(const Step&, const Step&) = default;
  };
  std::optional<Recipe> recipe;  // the recipe of the options, if any
  std::vector<Pin> pins;
  std::vector<Step> memory;
  bool irreducible = false;

  friend bool operator==(const PlanConflict&, const PlanConflict&) = default;
};

}  // namespace shardprop
