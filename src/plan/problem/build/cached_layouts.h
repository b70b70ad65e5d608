// CachedLayouts is the set of layouts in which a buffer may be cached between two
// uses: one layout, or two.
#pragma once

#include "plan/problem/plan_problem.h"

#include <cstdint>
#include <vector>

namespace shardprop {

struct CachedLayouts {
  BufferLayout first = 0;
  BufferLayout second = 0;  // equal to `first` if one layout is cached

  bool has(BufferLayout state) const {
    return first == state || second == state;
  }
};

// Returns the sets of cached layouts that a buffer may have. For an input,
// `first` is the layout that it was given in. plan_assignment.h defines the
// space.
std::vector<CachedLayouts> cached_layouts(const PlanProblem& problem,
                                          const PlanBuffer& buffer);

// Transfer is one redistribution between two layouts of a buffer.
struct Transfer {
  BufferLayout to = 0;
  BufferLayout from = 0;
};

// Transition lists the redistributions, in order, from the cached layouts
// `from` to the cached layouts `to`.
struct Transition {
  std::int64_t nanoseconds = 0;
  std::int64_t overlapped = 0;  // as BufferClass::Move's
  std::vector<Transfer> transfers;
  // False if one of the moves is not reachable. The sum of reachable ones may
  // be kUnreachable or more.
  bool is_possible = true;
};
Transition transition(const PlanBuffer& buffer, CachedLayouts from,
                      CachedLayouts to);

// Fetch is the transfer of least time that produces the layout `required` from
// the cached layouts `cached`.
struct Fetch {
  std::int64_t nanoseconds = 0;
  std::int64_t overlapped = 0;
  BufferLayout from = 0;
  bool is_possible = true;
  bool is_once_a_step = false;  // then the times are the share of a micro-batch
};
Fetch fetch(const PlanBuffer& buffer, CachedLayouts cached,
            BufferLayout required);

// Returns the cost of the copies that lead from one layout to another, if they
// are made once a step: the share of one micro-batch. Each copy is rounded by
// itself, as evaluate() does. A kernel boundary is paid in every micro-batch.
// Precondition: `to` is reachable.
Fetch once_a_step(const PlanProblem& problem, const PlanBuffer& buffer,
                  BufferLayout from, BufferLayout to);

}  // namespace shardprop
