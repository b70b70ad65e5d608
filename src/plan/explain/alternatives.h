// AlternativeCosts prices plans that do without one copy of a plan: the copy's
// one user makes another choice, and everything else stays as it is.
#pragma once

#include "plan/evaluate/cached_copies.h"
#include "plan/evaluate/copy_times.h"
#include "plan/evaluate/plan_assignment.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace shardprop {

// `CopyUsers` lists the uses that read a copy and the copies that are made from
// it.
struct CopyUsers {
  std::vector<BufferUse> uses;
  std::vector<std::size_t> copies;
};

// Returns the users of every copy, by copy.
std::vector<CopyUsers> users_of_copies(const PlanProblem& problem,
                                       const PlanAssignment& plan);

struct Alternative {
  std::int64_t nanoseconds = 0;  // more than now; less than 0: cheaper
  LayoutId layout;               // in which the user would read the value
  std::uint32_t choice = 0;      // of the user
};

class AlternativeCosts {
 public:
  // No assignment costs less than `lower_bound`.
  AlternativeCosts(const PlanProblem& problem, const PlanAssignment& plan,
                   std::int64_t lower_bound);

  // `without` returns the cheapest choice of the user that reads the value in
  // another layout than that of copy `copy`. The user's other operands are
  // redistributed from the layouts that exist when the user runs. Its results
  // are redistributed to their present layouts. The result is empty if
  //   1. the copy has several users,
  //   2. its one user has no such choice, or
  //   3. each such choice would cost less than the lower bound and memory is
  //      not limited: it is not in the space of copies (plan_assignment.h).
  std::optional<Alternative> without(std::size_t copy) const;

 private:
  // `Load` is overlappable time less compute in one load of an overlap window
  // (window_loads.h).
  struct Load {
    std::size_t index = 0;
    std::int64_t nanoseconds = 0;
  };
  // A part of a plan's cost.
  struct Part {
    std::int64_t nanoseconds = 0;
    // Each load at most once; any other load is 0. A part has few loads,
    // although a graph may have a window per operator.
    std::vector<Load> loads;
    bool is_possible = true;

    std::int64_t& load_of(std::size_t index);
    std::int64_t load_in(std::size_t index) const;
  };
  // `Chain` lists the copies that only one operand needs: the copy that it
  // reads, then each source that has no other user. The copy that the operand
  // reads is the first.
  using Chain = std::vector<std::size_t>;

  static void add_load(Part& part, std::size_t load, std::int64_t nanoseconds);
  // Adds time in a window, in each micro-batch. Without a window, the program
  // waits for the time.
  void add_in_each(Part& part, std::optional<std::size_t> window,
                   std::int64_t nanoseconds) const;
  // Adds the time of a transfer, which may be made once a step.
  void add_transfer(Part& part, std::optional<std::size_t> window,
                    std::int64_t nanoseconds, bool once) const;
  static void add(Part& to, const Part& part);
  // Returns the nanoseconds by which the plan costs more if `then` replaces
  // `now`.
  std::int64_t more(const Part& now, const Part& then) const;
  // Compares ways to produce one layout. Overlappable time counts only in a
  // window that already has more of it than compute.
  std::int64_t weight(const Part& part) const;

  BufferLayout produced(const PlanBuffer& buffer, std::uint32_t choice) const;
  // The cost of one choice alone, without redistributions.
  Part choosing(const PlanVariable& user, std::uint32_t choice) const;
  Part moving(const PlanBuffer& buffer, BufferLayout from, BufferLayout to,
              std::int64_t slot, bool once) const;
  Part copying(std::size_t copy, bool once) const;
  Chain chain(PlanVariableId user, std::size_t operand) const;
  // Covers all operands, since a user may read one value twice.
  Chain chains(PlanVariableId user) const;
  Part reading_now(PlanVariableId user, std::size_t operand) const;
  Part reading(PlanVariableId user, std::size_t operand,
               std::uint32_t choice) const;
  // The cost of the copies that are made directly from a result, if its
  // producer makes `choice`.
  Part producing(PlanBufferId buffer, std::uint32_t choice) const;
  // By choice of the user: the added cost of the plan over everything that the
  // user reads and produces. Empty if the choice is not possible.
  const std::vector<std::optional<std::int64_t>>& prices_of(
      PlanVariableId user) const;

  const PlanProblem& problem_;
  const PlanAssignment& plan_;
  std::vector<CopyUsers> users_;
  std::vector<bool> once_a_step_;  // by copy
  std::vector<CopyTimes> times_;   // by copy
  CachedCopies copies_;
  std::vector<WindowLoad> loads_;  // by load
  std::int64_t objective_ = 0;
  std::int64_t lower_bound_;
  // Copies of one user are asked for one after another, so the prices of the
  // last user are kept.
  mutable PlanVariableId priced_;
  mutable std::vector<std::optional<std::int64_t>> prices_;
};

}  // namespace shardprop
