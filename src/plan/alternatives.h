// AlternativeCosts prices plans that do without one copy of a plan: the copy's
// one user makes another choice, and everything else stays as it is.
#pragma once

#include "plan/held_copies.h"
#include "plan/plan_assignment.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace shardprop {

// Who takes a copy, and what is made of it.
struct CopyUsers {
  std::vector<StorageUse> uses;
  std::vector<std::size_t> copies;
};

// By copy.
std::vector<CopyUsers> users_of_copies(const PlanProblem& problem,
                                       const PlanAssignment& plan);

struct Alternative {
  std::int64_t nanoseconds = 0;  // more than now; less than 0: cheaper
  LayoutId layout;               // in which the user would take the value
};

class AlternativeCosts {
 public:
  // No assignment costs less than `lower_bound`.
  AlternativeCosts(const PlanProblem& problem, const PlanAssignment& plan,
                   std::int64_t lower_bound);

  // The cheapest choice of the user that reads the value in another layout than
  // that of copy `copy`. The user's other operands are redistributed from what
  // is there, and its results to where they are now. Empty if
  //   1. the copy has several users,
  //   2. its one user has no such choice, or
  //   3. each such choice would cost less than the lower bound and memory is
  //      not limited: it is not in the space of copies (plan_assignment.h).
  std::optional<Alternative> without(std::size_t copy) const;

 private:
  // A part of a plan's cost.
  struct Part {
    std::int64_t nanoseconds = 0;
    // By overlap window: what may overlap, less the compute. Empty: nothing.
    std::vector<std::int64_t> load;
    bool is_possible = true;
  };
  // Copies that go with a user that reads something else: the copy that it
  // reads alone, and sources that lead to nothing else. The last one first.
  using Chain = std::vector<std::size_t>;

  void add_load(Part& part, std::int64_t slot, std::int64_t nanoseconds) const;
  static void add(Part& to, const Part& part);
  // What the plan costs more with `then` in place of `now`.
  std::int64_t more(const Part& now, const Part& then) const;
  // To compare ways to get one layout: overlapped time counts if its window has
  // more of it than compute.
  std::int64_t weight(const Part& part) const;

  StorageState made(const PlanStorage& storage, std::uint32_t choice) const;
  // One choice by itself.
  Part choosing(const PlanVariable& user, std::uint32_t choice) const;
  Part moving(const PlanStorage& storage, StorageState from, StorageState to,
              std::int64_t slot, bool once) const;
  Part copying(std::size_t copy, bool once) const;
  Chain chain(PlanVariableId user, std::size_t operand) const;
  Part reading_now(PlanVariableId user, std::size_t operand) const;
  Part reading(PlanVariableId user, std::size_t operand,
               std::uint32_t choice) const;
  // What the copies of a result cost, as far as the choice matters to them.
  Part producing(PlanStorageId storage, std::uint32_t choice) const;
  // By choice of the user: all that it reads and produces costs more than now.
  const std::vector<std::optional<std::int64_t>>& prices_of(
      PlanVariableId user) const;

  const PlanProblem& problem_;
  const PlanAssignment& plan_;
  std::vector<CopyUsers> users_;
  std::vector<bool> once_a_step_;  // by copy
  HeldCopies copies_;
  std::vector<WindowLoad> loads_;  // by window
  std::int64_t objective_ = 0;
  std::int64_t lower_bound_;
  // Copies of one user follow each other: those of the last one are kept.
  mutable PlanVariableId priced_;
  mutable std::vector<std::optional<std::int64_t>> prices_;
};

}  // namespace shardprop
