// CopyList: the copies of a plan while it is put together: those of the
// assignment, each also under every other value that it is taken as, and those
// of the optimizer's step.
#pragma once

#include "plan/alternatives.h"
#include "plan/plan_assignment.h"
#include "plan/storage_views.h"

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
  // `end` is the slot that stands for the end of the program; no assignment
  // costs less than `lower_bound`. All must outlive the list.
  CopyList(const PlanProblem& problem, const PlanAssignment& plan,
           const StorageViews& views, std::int64_t end,
           std::int64_t lower_bound);

  // `value` as it is taken of a copy, or as it was made. Indices of copies are
  // of this list until number() has put them in order.
  PlannedInput taken(ValueId value, const std::optional<std::size_t>& copy);
  // A redistribution of `value` with neither place nor reason yet.
  PlannedCopy moved(ValueId value, LayoutId src, LayoutId dst) const;
  // Made once a step: what a micro-batch bears of it.
  void share(PlannedCopy& copy) const;
  std::size_t add(PlannedCopy copy);

  // Gives the plan its copies, in the order in which they are made, and every
  // reference in it their indices.
  void number(Plan& plan);

 private:
  const std::string& name(ValueId value) const;
  ValueId value_of(std::size_t copy) const;
  ValueId viewed_by(ValueId value) const;
  PlannedCopy assigned(std::size_t copy, const std::vector<CopyUsers>& users,
                       const AlternativeCosts& alternatives) const;
  std::size_t entry(ValueId value, std::size_t copy);
  void lead(ValueId from, ValueId to, PlannedCopy& copy) const;
  std::int64_t freed_at(std::size_t copy) const;

  const PlanProblem& problem_;
  const PlanAssignment& plan_;
  const StorageViews& views_;
  std::int64_t end_;
  std::vector<bool> once_a_step_;  // by copy of the assignment
  std::vector<PlannedCopy> copies_;
  std::vector<std::size_t> copied_;  // by copy: that of the assignment
  std::map<std::pair<ValueId, std::size_t>, std::size_t> entries_;
};

}  // namespace shardprop
