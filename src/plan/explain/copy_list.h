// CopyList builds Plan::copies. It has one entry for each copy of the
// assignment, one for each view under which a node reads such a copy, and those
// of the optimizer's step.
#pragma once

#include "plan/evaluate/buffer_views.h"
#include "plan/evaluate/copy_times.h"
#include "plan/evaluate/plan_assignment.h"
#include "plan/explain/alternatives.h"

#include <shardprop/plan/plan.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace shardprop {

class CopyList {
 public:
  // `end` is the slot that represents the end of the program. No assignment
  // costs less than `lower_bound`. All arguments must outlive the list.
  CopyList(const PlanProblem& problem, const PlanAssignment& plan,
           const BufferViews& views, std::int64_t end,
           std::int64_t lower_bound);

  // `Reader` is the operand of a node, or an output of the program, that reads
  // a value.
  struct Reader {
    CopyUser user;
    std::optional<std::size_t> operand;
  };
  // Returns `value` as an input that is read from the copy, or from the buffer
  // as it was produced if `copy` is empty. Indices of copies refer to this list
  // until number() has ordered them.
  PlannedInput read(ValueId value, const std::optional<std::size_t>& copy,
                    Reader reader);
  // Returns a redistribution of `value` whose slots and reason are not set yet.
  PlannedCopy moved(ValueId value, LayoutId src, LayoutId dst) const;
  // Reduces a copy that is made once a step to the share of one micro-batch.
  void share(PlannedCopy& copy) const;
  // Adds a copy that overlaps the window. Without one, the program waits for it.
  std::size_t add(PlannedCopy copy, std::optional<std::size_t> window = {});

  // Moves the copies to the plan in the order in which they are made, and
  // renumbers every reference to them in the plan. Returns the window that
  // each copy of the plan overlaps.
  std::vector<std::optional<std::size_t>> number(Plan& plan);

 private:
  const std::string& name(ValueId value) const;
  ValueId value_of(std::size_t copy) const;
  ValueId viewed_by(ValueId value) const;
  PlannedCopy assigned(std::size_t copy, const std::vector<CopyUsers>& users,
                       const AlternativeCosts& alternatives) const;
  std::optional<PlannedFlight> in_flight(
      std::size_t copy, std::int64_t overlapped_nanoseconds) const;
  std::size_t entry(ValueId value, std::size_t copy, Reader reader);
  void lead(ValueId from, ValueId to, PlannedCopy& copy) const;
  std::int64_t freed_at(std::size_t copy) const;

  const PlanProblem& problem_;
  const PlanAssignment& plan_;
  const BufferViews& views_;
  std::int64_t end_;
  std::vector<bool> once_a_step_;  // by copy of the assignment
  std::vector<CopyTimes> times_;   // by copy of the assignment
  std::vector<PlannedCopy> copies_;
  std::vector<std::size_t> copied_;  // by copy: that of the assignment
  std::vector<std::optional<std::size_t>> windows_;  // by copy
  std::map<std::pair<ValueId, std::size_t>, std::size_t> entries_;
};

}  // namespace shardprop
