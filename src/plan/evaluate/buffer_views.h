// BufferViews states which copy of a buffer the node of each view reads. It
// may also read the buffer as it was produced.
#pragma once

#include "plan/evaluate/cached_copies.h"
#include "plan/evaluate/copy_times.h"
#include "plan/evaluate/plan_assignment.h"

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

namespace shardprop {

class BufferViews {
 public:
  BufferViews(const PlanProblem& problem, const PlanAssignment& plan);

  // Returns whether the node of the view at `place` can read a buffer in layout
  // `state`. Both the view and the value that it views must have a layout in
  // it.
  static bool shares_elements(const PlanProblem& problem,
                              const PlanBuffer& buffer, std::size_t place,
                              BufferLayout state);

  // Returns the copy that the node of a view reads. Empty if the node reads the
  // buffer as it was produced, or if the value is not a view.
  const std::optional<std::size_t>& copy_behind(ValueId value) const {
    return behind_[value.index()];
  }
  // Returns the layout of the buffer, or of a copy of it.
  BufferLayout state(PlanBufferId buffer,
                     const std::optional<std::size_t>& copy) const;
  // Returns the layout of `value` in the buffer as it was produced, or in a
  // copy of it.
  LayoutId layout(ValueId value, const std::optional<std::size_t>& copy) const;

 private:
  // FirstCopies maps a layout of the buffer to the first copy in it.
  using FirstCopies = std::map<BufferLayout, std::size_t>;
  std::optional<std::size_t> choose(ValueId value, std::size_t place,
                                    PlanBufferId id,
                                    const FirstCopies& first) const;

  const PlanProblem& problem_;
  const PlanAssignment& plan_;
  CachedCopies copies_;
  std::vector<CopyTimes> times_;                    // by copy
  std::vector<std::int64_t> freed_at_;              // by buffer: as produced
  std::vector<std::optional<std::size_t>> behind_;  // by value
};

}  // namespace shardprop
