// The states of storages, worked out once for all that have the same values,
// maker and users.
#pragma once

#include "plan/problem_data.h"
#include "plan/storage_forest.h"

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace shardprop {

class StorageClasses {
 public:
  // Both must outlive the object; `data` must know values and variables.
  StorageClasses(const ProblemData& data, const StorageForest& forest)
      : data_(data),
        forest_(forest),
        wanted_(forest.wanted_layouts(data.variables)) {}

  // Error: kProblemTooLarge, where there are more states than are counted.
  Result<std::shared_ptr<const StorageClass>> of(const PlanStorage& storage);

 private:
  std::vector<std::uint64_t> signature(const PlanStorage& storage) const;
  Result<StorageClass> work_out(const PlanStorage& storage) const;
  Result<void> add_states(const PlanStorage& storage, StorageClass& out) const;
  // Error: kStopped.
  Result<void> set_moves(const PlanStorage& storage, StorageClass& out) const;
  // Where no redistribution of one value leads there: two, with a state between.
  // Error: kStopped.
  Result<void> set_indirect_moves(StorageClass& out) const;

  // Empty where no choices are given.
  std::span<const LayoutId> copied_to(ValueId value) const {
    if (data_.copied_to.empty()) return {};
    return data_.copied_to[value.index()];
  }

  const ProblemData& data_;
  const StorageForest& forest_;
  std::vector<LayoutSet> wanted_;
  std::map<std::vector<std::uint64_t>, std::shared_ptr<const StorageClass>>
      classes_;
};

}  // namespace shardprop
