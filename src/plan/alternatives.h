// What it would cost to do without a copy by changing its one user alone.
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
  AlternativeCosts(const PlanProblem& problem, const PlanAssignment& plan);

  // The cheapest choice of the user that takes the value otherwise than as
  // copy `copy`. What the user takes else is moved from what is there, and what
  // it makes is moved to where it is now. Empty where the copy has several
  // users, or its one user no such choice.
  std::optional<Alternative> without(std::size_t copy) const;

 private:
  StorageState made(const PlanStorage& storage, std::uint32_t choice) const;
  // Whether more to hide, or less compute, in the window makes the plan longer.
  bool is_exposed(std::int64_t slot) const {
    return exposed_[problem_.window_of(slot)];
  }
  std::int64_t price(const StorageClass::Move& move, std::int64_t slot) const {
    return is_exposed(slot) ? move.transfer() : move.nanoseconds;
  }
  std::int64_t price(const PlanVariable& user, std::uint32_t choice) const;
  StorageState state(const AssignedCopy& copy,
                     const std::optional<std::size_t>& at) const;
  bool only_for(std::size_t copy, PlanVariableId user) const;
  std::int64_t taking_now(PlanVariableId user, std::size_t operand) const;
  std::int64_t taking(PlanVariableId user, std::size_t operand,
                      std::uint32_t choice) const;
  std::int64_t making(PlanStorageId storage, std::uint32_t choice) const;
  // By choice of the user: all it takes and makes.
  const std::vector<std::int64_t>& prices_of(PlanVariableId user) const;

  const PlanProblem& problem_;
  const PlanAssignment& plan_;
  std::vector<CopyUsers> users_;
  HeldCopies copies_;
  std::vector<bool> exposed_;  // by window
  // Copies of one user follow each other: those of the last one are kept.
  mutable PlanVariableId priced_;
  mutable std::vector<std::int64_t> prices_;
};

}  // namespace shardprop
