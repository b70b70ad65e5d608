// Coalescing: the redistributions of several tensors, run together, with equal
// collectives on equal groups in one launch that pays one latency.
//
//   S(0) -> R on tp, four weights of 2 MiB: 4 x 30 us  ->  1 launch, 33 us
//
// A pass behind the planner: no plan's steps or their order change. Reductions
// join only where reduce op and dtype agree.
#pragma once

#include <shardprop/mesh/topology.h>
#include <shardprop/redistribute/redistribute_plan.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shardprop {

struct CoalescedLaunch {
  struct Member {
    std::size_t tensor;  // index into the plans
    std::size_t step;    // index into its plan
    friend bool operator==(const Member&, const Member&) = default;
  };
  // Messages and bytes summed over the members; `dtype` is that of the first,
  // and of all where it reduces.
  CollectiveStep step;
  std::vector<Member> members;
};

struct CoalescedPlan {
  std::vector<CoalescedLaunch> launches;
  std::int64_t nanoseconds = 0;           // never above the next
  std::int64_t separate_nanoseconds = 0;  // of the plans one by one
};

// Preconditions: the plans are for `mesh` and were priced on `topology`.
CoalescedPlan coalesce(std::span<const RedistributePlan* const> plans,
                       const DeviceMesh& mesh, const Topology& topology);

}  // namespace shardprop
