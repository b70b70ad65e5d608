// held_bytes() lists the bytes that a rank holds under a plan, with their slots
// and their kind.
#pragma once

#include "plan/evaluate/plan_assignment.h"
#include "plan/problem/plan_problem.h"

#include <cstdint>
#include <vector>

namespace shardprop {

// The kinds of memory that PlanMemory reports.
enum class MemoryKind : std::uint8_t {
  kParameter,
  kGradient,
  kOptimizer,
  kActivation,
  kGathered,
  kBuffer,
  // Scratch bytes of a redistribution: in one slot if it is in line, and in all
  // slots of its window if it is in flight. Transfers of one kind run in
  // sequence, so the scratch of a slot is the maximum over each kind.
  kMoving,
  kInFlight,
};

constexpr bool is_scratch(MemoryKind kind) {
  return kind == MemoryKind::kMoving || kind == MemoryKind::kInFlight;
}

struct LiveBytes {
  MemoryKind kind = MemoryKind::kActivation;
  std::int64_t bytes = 0;
  // The first and the last slot.
  std::int64_t from = 0;
  std::int64_t until = 0;
};

std::vector<LiveBytes> live_bytes(const PlanProblem& problem,
                                  const PlanAssignment& assignment,
                                  KernelMemory kernels = KernelMemory::kFused);

// Returns the bytes that a rank holds, by slot, without the buffers of buckets
// (buckets.h).
std::vector<std::int64_t> bytes_without_buckets(
    const PlanProblem& problem, const PlanAssignment& assignment,
    KernelMemory kernels = KernelMemory::kFused);

// KeptParameter states the bytes that a parameter takes between steps and while
// they run, for one choice of its variable. Parameters that are trained in 16
// bits may be kept in f32. The program then reads a 16-bit copy.
struct KeptParameter {
  std::int64_t parameter = 0;  // of the parameter in its kept dtype, throughout
  std::int64_t optimizer = 0;  // throughout
  // The 16-bit copy, if its layout differs from that of the kept parameter. It
  // exists throughout.
  std::int64_t working = 0;
  // The 16-bit copy, if both layouts are the same. It is made for each segment
  // of uses.
  std::int64_t cast = 0;
};
KeptParameter kept_parameter(const PlanProblem& problem,
                             const PlanVariable& parameter, std::size_t choice);

// The first and the last slot of a segment of uses.
struct SlotSpan {
  std::int64_t first = 0;
  std::int64_t last = 0;
};
SlotSpan span_of(const PlanBuffer& buffer, const UseSegment& segment);

}  // namespace shardprop
