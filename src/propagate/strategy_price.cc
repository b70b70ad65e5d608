#include "propagate/strategy_price.h"

#include "base/saturating.h"

#include <shardprop/strategy/op_cost.h>

namespace shardprop {
namespace {

// Interned is a strategy in the form that pricing reads.
struct Interned {
  Interned(const BoundOp& call, const Assignment& assignment,
           const FactorShardings& shardings, std::span<const Layout> operands) {
    strategy.assignment = assignment;
    if (!shardings.is_mesh_order()) {
      strategy.shardings = layouts.intern(shardings.of_all());
    }
    for (std::size_t i = 0; i < operands.size(); ++i) {
      (i < call.op->inputs.size() ? strategy.inputs : strategy.outputs)
          .push_back(layouts.intern(operands[i]));
    }
  }
  LayoutTable layouts;
  PlacementStrategy strategy;
};

}  // namespace

LocalPrice price_inside(const SearchContext& context, const BoundOp& call,
                        const Assignment& assignment,
                        const FactorShardings& shardings,
                        std::span<const Layout> operands) {
  LocalPrice price;
  if (call.space->program == nullptr) return price;
  const Interned interned(call, assignment, shardings, operands);
  price.inside = collectives_inside({*call.op, *call.space, context.mesh,
                                     interned.layouts, interned.strategy},
                                    context.topology);
  for (const CollectiveStep& step : price.inside) {
    price.inside_nanoseconds =
        sat_add(price.inside_nanoseconds, step.nanoseconds);
  }
  return price;
}

std::int64_t price_compute(const SearchContext& context, const BoundOp& call,
                           const Assignment& assignment,
                           const FactorShardings& shardings,
                           std::span<const Layout> operands) {
  const Interned interned(call, assignment, shardings, operands);
  return compute_nanoseconds({*call.op, *call.space, context.mesh,
                              interned.layouts, interned.strategy},
                             context.topology);
}

}  // namespace shardprop
