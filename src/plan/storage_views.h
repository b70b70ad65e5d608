// What each value of a storage is seen through in a plan: the storage as it was
// made, or one of its copies.
#pragma once

#include "plan/held_copies.h"
#include "plan/plan_assignment.h"

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

namespace shardprop {

class StorageViews {
 public:
  StorageViews(const PlanProblem& problem, const PlanAssignment& plan);

  // Whether the node of the view at `place` can show a storage held in `state`:
  // what it views can be had so, and so can the view.
  static bool shows(const PlanProblem& problem, const PlanStorage& storage,
                    std::size_t place, StorageState state);

  // The copy that a view is taken of when its node runs; empty: of the storage
  // as made. Always empty for what is no view.
  const std::optional<std::size_t>& copy_behind(ValueId value) const {
    return behind_[value.index()];
  }
  // The state of the storage, or of a copy of it.
  StorageState state(PlanStorageId storage,
                     const std::optional<std::size_t>& copy) const;
  // How `value` lies, seen through the storage as made or through a copy.
  LayoutId layout(ValueId value, const std::optional<std::size_t>& copy) const;

 private:
  // By state: the first copy in it.
  using FirstCopies = std::map<StorageState, std::size_t>;
  std::optional<std::size_t> choose(ValueId value, std::size_t place,
                                    PlanStorageId id,
                                    const FirstCopies& first) const;

  const PlanProblem& problem_;
  const PlanAssignment& plan_;
  HeldCopies copies_;
  std::vector<std::optional<std::size_t>> behind_;  // by value
};

}  // namespace shardprop
