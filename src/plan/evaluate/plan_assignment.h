// PlanAssignment decides everything that a plan problem leaves open. evaluate()
// computes its cost and memory from the problem alone.
//
// Cost, in nanoseconds
//     sum over variables of choices.costs[choice]
//   + sum over copies of move_nanoseconds() and cut_nanoseconds()
//   + sum over the loads of overlap windows (window_loads.h) of the exposed
//     time: overlappable time less compute, if positive. copy_times() returns
//     the window of a copy, and PlanProblem::window_after_update() that of a
//     gather after an update. The overlappable time of a transfer without a
//     window is exposed.
//
// The space of copies
//   1. An input keeps the layout that it was given in throughout. At most one
//      other layout is cached next to it.
//   2. Any other buffer is cached in one layout, or in two if one gathers the
//      other or they differ on one mesh dim.
//   3. On meshes of more than two dims larger than 1 (joined mesh dims count as
//      one), a buffer is cached in one layout only. The second layout of an
//      input must be related to its own as in 2.
//   4. Within a segment of uses (plan_storage.h) the cached layouts do not
//      change. A use that reads another layout gets a copy of its own.
//   5. From segment to segment, and in the pause between them, layouts are
//      kept, dropped and produced freely.
//   6. A copy is made from the cached layout of least transfer time, overlapped
//      or not.
#pragma once

#include "plan/problem/plan_problem.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace shardprop {

struct AssignedCopy {
  PlanBufferId buffer;
  BufferLayout state = 0;
  // The value of the buffer as which the copy is redistributed.
  std::uint32_t value = 0;
  // The copy from which it is made; empty if it is made from the buffer as it
  // was produced.
  std::optional<std::size_t> source;
  // The first and the last slot in which the copy exists.
  std::int64_t produced_at = 0;
  std::int64_t freed_at = 0;
};

struct PlanAssignment {
  std::vector<std::uint32_t> choices;  // by PlanVariableId
  std::vector<AssignedCopy> copies;    // sources come before their copies
  // By buffer: the last slot in which it is kept as it was produced.
  std::vector<std::int64_t> freed_at;
  // By buffer and use: the copy that is read; empty if the buffer is read as it
  // was produced.
  std::vector<std::vector<std::optional<std::size_t>>> read;
};

// WindowLoad is the overlappable time of one load of an overlap window and the
// compute of its operators, in nanoseconds.
struct WindowLoad {
  std::int64_t overlappable = 0;
  std::int64_t compute = 0;
  // Returns the overlappable time that exceeds the compute.
  std::int64_t exposed() const {
    return overlappable > compute ? overlappable - compute : 0;
  }
  friend bool operator==(const WindowLoad&, const WindowLoad&) = default;
};

struct PlanEvaluation {
  std::int64_t objective = 0;
  std::int64_t peak_bytes = 0;
  std::int64_t peak_at = 0;  // slot of the peak
  std::int64_t parameter_bytes = 0;
  std::int64_t optimizer_bytes = 0;
  std::vector<WindowLoad> windows;  // by load (window_loads.h)
  // The overlappable time of transfers without a window, which `objective`
  // includes.
  std::int64_t waited = 0;
  // Why the assignment is inconsistent; empty if it is consistent. A use of a
  // copy that does not exist or has another layout is inconsistent, and so is
  // an impossible move.
  std::string broken;

  // Returns the exposed time of all windows, which `objective` includes.
  std::int64_t exposed() const;
};

PlanEvaluation evaluate(const PlanProblem& problem,
                        const PlanAssignment& assignment);

// Returns, by copy, whether it is made once a step of several micro-batches.
// Its only reader is then either
//   1. the optimizer, if the gradient is accumulated before it is reduced, or
//   2. another copy that is made once a step.
// A copy that anything else reads, too, is made in every micro-batch:
//   gradient P(sum) -> R   read by the optimizer and by a `mul` node
// is charged in full.
std::vector<bool> copies_once_a_step(const PlanProblem& problem,
                                     const PlanAssignment& assignment);

// CopyCost is the time of a copy: the part that cannot overlap, kernel boundary
// included, and the part that can. A copy that is made once a step has the
// share of one micro-batch. Precondition: the copy is consistent
// (PlanEvaluation::broken).
struct CopyCost {
  std::int64_t nanoseconds = 0;
  std::int64_t overlappable = 0;
};
CopyCost copy_cost(const PlanProblem& problem, const PlanAssignment& assignment,
                   std::size_t copy, bool once_a_step);

// `KernelMemory` says whether a value that stays inside a kernel takes memory.
// With kUnfused it does, as if each operator ran alone.
enum class KernelMemory : std::uint8_t { kFused, kUnfused };

// Returns the bytes that a rank holds, by slot. They include buffers and copies
// while they are kept, optimizer state throughout, and the scratch of
// redistributions while they run, and the buffers of buckets (buckets.h).
std::vector<std::int64_t> bytes_by_slot(
    const PlanProblem& problem, const PlanAssignment& assignment,
    KernelMemory kernels = KernelMemory::kFused);

}  // namespace shardprop
