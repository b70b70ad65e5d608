// What a rank holds under a plan, from when to when, and as what.
#pragma once

#include "plan/plan_assignment.h"
#include "plan/plan_problem.h"

#include <cstdint>
#include <vector>

namespace shardprop {

// As PlanMemory has them.
enum class MemoryKind : std::uint8_t {
  kParameter,
  kGradient,
  kOptimizer,
  kActivation,
  kGathered,
  kBuffer,
  // Room for a redistribution beside its source and result, in one slot.
  // Those of a slot run one after the other: only the largest of them counts.
  kMoving,
};

struct HeldBytes {
  MemoryKind kind = MemoryKind::kActivation;
  std::int64_t bytes = 0;
  // Slots, both included.
  std::int64_t from = 0;
  std::int64_t until = 0;
};

std::vector<HeldBytes> held_bytes(const PlanProblem& problem,
                                  const PlanAssignment& assignment);

// What a parameter takes between steps and while they run, by the choice of its
// variable. Parameters that are trained in 16 bits may be kept in f32: then
// what the program takes is a copy.
struct KeptParameter {
  std::int64_t parameter = 0;  // as it is kept, throughout
  std::int64_t optimizer = 0;  // throughout
  // The copy for the program, where it lies otherwise than what is kept:
  // throughout.
  std::int64_t working = 0;
  // The same where it lies alike: made for each segment of uses.
  std::int64_t cast = 0;
};
KeptParameter kept_parameter(const PlanProblem& problem,
                             const PlanVariable& parameter, std::size_t choice);

// The slots of a segment of uses: [first, last].
struct SlotSpan {
  std::int64_t first = 0;
  std::int64_t last = 0;
};
SlotSpan span_of(const PlanStorage& storage, const UseSegment& segment);

}  // namespace shardprop
