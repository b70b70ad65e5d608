// BufferClasses computes the layouts of buffers, once for all buffers that
// have the same values, producer and users.
#pragma once

#include "plan/problem/build/buffer_forest.h"
#include "plan/problem/problem_data.h"

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace shardprop {

class BufferClasses {
 public:
  // Both must outlive the object. The values and variables of `data` must be
  // complete.
  BufferClasses(const ProblemData& data, const BufferForest& forest)
      : data_(data),
        forest_(forest),
        required_(forest.required_layouts(data.variables, data.copied_to)) {}

  // Error: kProblemTooLarge, if the buffer has too many layouts.
  Result<std::shared_ptr<const BufferClass>> of(const PlanBuffer& buffer);

 private:
  std::vector<std::uint64_t> signature(const PlanBuffer& buffer) const;
  Result<BufferClass> work_out(const PlanBuffer& buffer) const;
  Result<void> add_states(const PlanBuffer& buffer, BufferClass& out) const;
  // Error: kStopped.
  Result<void> set_moves(const PlanBuffer& buffer, BufferClass& out) const;
  // Sets moves in two steps, with a layout between them, if no redistribution
  // of one value leads there. Error: kStopped.
  Result<void> set_indirect_moves(BufferClass& out) const;

  // Returns the layouts of the value's copies in the given choices; empty
  // without given choices.
  std::span<const LayoutId> copied_to(ValueId value) const {
    if (data_.copied_to.empty()) return {};
    return data_.copied_to[value.index()];
  }

  const ProblemData& data_;
  const BufferForest& forest_;
  std::vector<LayoutSet> required_;
  std::map<std::vector<std::uint64_t>, std::shared_ptr<const BufferClass>>
      classes_;
};

}  // namespace shardprop
