#include "plan/evaluate/memory_breakdown.h"

#include "plan/evaluate/buckets.h"
#include "plan/evaluate/live_memory.h"

#include <algorithm>

namespace shardprop {

PlanMemory memory_at(const PlanProblem& problem,
                     const PlanAssignment& assignment, std::int64_t slot) {
  PlanMemory out;
  std::int64_t moving = 0;
  std::int64_t in_flight = 0;
  for (const LiveBytes& cached : live_bytes(problem, assignment)) {
    if (slot < cached.from || cached.until < slot) continue;
    switch (cached.kind) {
      case MemoryKind::kParameter:
        out.parameter_bytes += cached.bytes;
        break;
      case MemoryKind::kGradient:
        out.gradient_bytes += cached.bytes;
        break;
      case MemoryKind::kOptimizer:
        out.optimizer_bytes += cached.bytes;
        break;
      case MemoryKind::kActivation:
        out.activation_bytes += cached.bytes;
        break;
      case MemoryKind::kGathered:
        out.gathered_bytes += cached.bytes;
        break;
      case MemoryKind::kBuffer:
        out.buffer_bytes += cached.bytes;
        break;
      case MemoryKind::kMoving:
        moving = std::max(moving, cached.bytes);
        break;
      case MemoryKind::kInFlight:
        in_flight = std::max(in_flight, cached.bytes);
        break;
    }
  }
  out.gathered_bytes += moving + in_flight;
  for (const Bucket& bucket : buckets_of(problem, assignment)) {
    out.gathered_bytes += buffer_bytes(bucket, slot);
  }
  out.peak_at = slot;
  out.peak_bytes = out.parameter_bytes + out.optimizer_bytes +
                   out.gradient_bytes + out.activation_bytes +
                   out.gathered_bytes + out.buffer_bytes;
  return out;
}

}  // namespace shardprop
