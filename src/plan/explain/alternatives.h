// AlternativeCosts prices plans that do without one copy of a plan: the copy's
// one user makes another choice, and everything else stays as it is.
#pragma once

#include "plan/evaluate/cached_copies.h"
#include "plan/evaluate/copy_times.h"
#include "plan/evaluate/plan_assignment.h"
#include "plan/explain/copy_users.h"
#include "plan/explain/cost_part.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace shardprop {

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
  // `Chain` lists the copies that only one operand needs: the copy that it
  // reads, then each source that has no other user. The copy that the operand
  // reads is the first.
  using Chain = std::vector<std::size_t>;
  // `Source` is a layout that a copy can be made from, and the copy that has it;
  // empty: the buffer as it was produced.
  struct Source {
    BufferLayout layout = 0;
    std::optional<std::size_t> copy;
  };

  // Adds time in a window, in each micro-batch. Without a window, the program
  // waits for the time.
  void add_in_each(CostPart& part, std::optional<std::size_t> window,
                   std::int64_t nanoseconds) const;
  // Adds the time of a transfer, which may be made once a step.
  void add_transfer(CostPart& part, std::optional<std::size_t> window,
                    std::int64_t nanoseconds, bool once) const;
  // Returns the nanoseconds by which the plan costs more if `then` replaces
  // `now`.
  std::int64_t more(const CostPart& now, const CostPart& then) const;
  // Compares ways to produce one layout. Overlappable time counts only in a
  // window that already has more of it than compute.
  std::int64_t weight(const CostPart& part) const;

  BufferLayout produced(const PlanBuffer& buffer, std::uint32_t choice) const;
  // The cost of one choice alone, without redistributions.
  CostPart choosing(const PlanVariable& user, std::uint32_t choice) const;
  CostPart moving(const PlanBuffer& buffer, BufferLayout from, BufferLayout to,
                  std::int64_t slot, bool once) const;
  CostPart copying(std::size_t copy, bool once) const;
  Chain chain(PlanVariableId user, std::size_t operand) const;
  // Covers all operands, since a user may read one value twice.
  Chain chains(PlanVariableId user) const;
  CostPart reading_now(PlanVariableId user, std::size_t operand) const;
  CostPart reading(PlanVariableId user, std::size_t operand,
                   std::uint32_t choice) const;
  // The change of the cost if a copy is made once a step, or no longer.
  CostPart making(std::size_t copy, bool once) const;
  // The change of the costs of a copy and its sources if another user reads it:
  // one reader alone lets a copy be made once a step.
  CostPart read_by_one_more(std::size_t copy) const;
  // The change of the costs of a copy and its sources if `user` no longer reads
  // it, but another copy. The copies `gone` disappear.
  CostPart read_by_one_less(std::size_t copy, const Chain& gone,
                            PlanVariableId user,
                            std::optional<std::size_t> read_instead) const;
  // The cost of the copies that are made directly from a result, if its
  // producer makes `choice`.
  CostPart producing(PlanBufferId buffer, std::uint32_t choice) const;
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
