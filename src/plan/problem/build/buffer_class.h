// StorageClasses computes the layouts of buffers, once for all buffers that
// have the same values, producer and users.
#pragma once

#include "plan/problem/problem_data.h"
#include "plan/problem/build/buffer_forest.h"

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace shardprop {

class StorageClasses {
 public:
  // Both must outlive the object. The values and variables of `data` must be
  // complete.
  StorageClasses(const ProblemData& data, const StorageForest& forest)
      : data_(data),
        forest_(forest),
        wanted_(forest.wanted_layouts(data.variables)) {}

  // Error: kProblemTooLarge, if the buffer has too many layouts.
  Result<std::shared_ptr<const StorageClass>> of(const PlanStorage& storage);

 private:
  std::vector<std::uint64_t> signature(const PlanStorage& storage) const;
  Result<StorageClass> work_out(const PlanStorage& storage) const;
  Result<void> add_states(const PlanStorage& storage, StorageClass& out) const;
  // Error: kStopped.
  Result<void> set_moves(const PlanStorage& storage, StorageClass& out) const;
  // Sets moves in two steps, with a layout between them, if no redistribution
  // of one value leads there. Error: kStopped.
  Result<void> set_indirect_moves(StorageClass& out) const;

  // Returns the layouts of the value's copies in the given choices; empty
  // without given choices.
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
