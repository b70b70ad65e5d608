#include "plan/explain/cost_part.h"

#include "base/saturating.h"

namespace shardprop {

void CostPart::add_load(std::size_t index, std::int64_t added) {
  if (added == 0) return;
  for (Load& load : loads) {
    if (load.index != index) continue;
    load.nanoseconds = sat_add(load.nanoseconds, added);
    return;
  }
  loads.push_back({index, added});
}

void CostPart::add(const CostPart& part) {
  nanoseconds = sat_add(nanoseconds, part.nanoseconds);
  for (const Load& load : part.loads) add_load(load.index, load.nanoseconds);
  is_possible = is_possible && part.is_possible;
}

void CostPart::subtract(const CostPart& part) {
  nanoseconds = sat_add(nanoseconds, -part.nanoseconds);
  for (const Load& load : part.loads) add_load(load.index, -load.nanoseconds);
}

}  // namespace shardprop
