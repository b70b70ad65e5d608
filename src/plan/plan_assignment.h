// PlanAssignment: a decision for everything that a plan problem leaves open,
// and evaluate(), which judges one from nothing but the problem.
//
// Cost, in nanoseconds
//     sum over variables of choices.costs[choice]
//   + sum over copies of move_nanoseconds() and cut_nanoseconds()
//   + sum over windows of what may hide there (the copies made in the window,
//     gathers behind an update in the first) and has no compute beside it.
//
// The space of copies. An input is held as it was given throughout, and in at
// most one state beside. Any other storage is held in one state, or in two
// where one gathers the other or they differ on one mesh dim. (On meshes of
// more than two dims larger than 1, where joined mesh dims are one: in one
// state; an input's second must be such a neighbour of its own.) Within a segment of uses (plan_storage.h) what
// is held does not change; a use that takes another state gets a copy for
// itself. From segment to segment, and in the pause between, states are kept,
// dropped and made at will.
#pragma once

#include "plan/plan_problem.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace shardprop {

struct AssignedCopy {
  PlanStorageId storage;
  StorageState state = 0;
  // Redistributed as this value of the storage,
  std::uint32_t value = 0;
  // from this other copy; from the storage as it was made if empty.
  std::optional<std::size_t> source;
  // Slots, both included.
  std::int64_t made_at = 0;
  std::int64_t freed_at = 0;
};

struct PlanAssignment {
  std::vector<std::uint32_t> choices;  // by PlanVariableId
  std::vector<AssignedCopy> copies;    // sources before what is made of them
  // By storage: the last slot in which it is held as it was made.
  std::vector<std::int64_t> freed_at;
  // By storage and use: the copy that is taken; empty: as it was made.
  std::vector<std::vector<std::optional<std::size_t>>> taken;
};

// What is moved in one window of the schedule and may hide, and the compute of
// its operators.
struct WindowLoad {
  std::int64_t hideable = 0;
  std::int64_t compute = 0;
  // What has to be waited for after all.
  std::int64_t exposed() const {
    return hideable > compute ? hideable - compute : 0;
  }
  friend bool operator==(const WindowLoad&, const WindowLoad&) = default;
};

struct PlanEvaluation {
  std::int64_t objective = 0;
  std::int64_t peak_bytes = 0;
  std::int64_t peak_at = 0;  // slot of the peak
  std::int64_t parameter_bytes = 0;
  std::int64_t optimizer_bytes = 0;
  std::vector<WindowLoad> windows;
  // What does not hold together, empty if all does: a use of a copy that is
  // not there or lies otherwise, a move that is impossible.
  std::string broken;

  // What has to be waited for after all, in all windows; in `objective`.
  std::int64_t exposed() const;
};

PlanEvaluation evaluate(const PlanProblem& problem,
                        const PlanAssignment& assignment);

// By copy: whether it is made once a step of several micro-batches. Such a copy
// has one reader, which is either
//   1. the optimizer, if the gradient is accumulated before it is reduced, or
//   2. another copy that is made once a step.
// A copy that anything else reads, too, is made in every micro-batch:
//   gradient P(sum) -> R   read by the optimizer and by a `mul` node
// is charged in full.
std::vector<bool> copies_once_a_step(const PlanProblem& problem,
                                     const PlanAssignment& assignment);

// The time of a copy: what cannot overlap, kernel boundary included, and what
// can. The share of one micro-batch for a copy that is made once a step.
// Precondition: the copy holds together (PlanEvaluation::broken).
struct CopyCost {
  std::int64_t nanoseconds = 0;
  std::int64_t hideable = 0;
};
CopyCost copy_cost(const PlanProblem& problem, const PlanAssignment& assignment,
                   std::size_t copy, bool once_a_step);

// Bytes that a rank holds, by slot: storages and copies while they are held,
// optimizer state throughout, and the buffers of redistributions while they
// run.
std::vector<std::int64_t> bytes_by_slot(const PlanProblem& problem,
                                        const PlanAssignment& assignment);

}  // namespace shardprop
