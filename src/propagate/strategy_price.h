// Prices that depend on the full strategy: its collectives inside, and its
// compute.
#pragma once

#include "propagate/bound_op.h"
#include "propagate/move_bound.h"
#include "redistribute/recent_reaches.h"

#include <shardprop/redistribute/caching_planner.h>
#include <shardprop/strategy/op_strategy.h>

#include <cstdint>
#include <span>
#include <vector>

namespace shardprop {

// SearchContext is the input that all searches share.
struct SearchContext {
  const DeviceMesh& mesh;
  const Topology& topology;
  CachingPlanner& planner;
  const MoveBound& bound;
  redistribute::RecentReaches& recent;
};

struct LocalPrice {
  std::vector<CollectiveStep> inside;
  std::int64_t inside_nanoseconds = 0;
};
LocalPrice price_inside(const SearchContext& context, const BoundOp& call,
                        const Assignment& assignment,
                        const FactorShardings& shardings,
                        std::span<const Layout> operands);
std::int64_t price_compute(const SearchContext& context, const BoundOp& call,
                           const Assignment& assignment,
                           const FactorShardings& shardings,
                           std::span<const Layout> operands);

}  // namespace shardprop
