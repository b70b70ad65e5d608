#include <shardprop/propagate/sharding_propagator.h>

#include "base/try.h"

#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace shardprop {
namespace {

// P(sum) and P(avg) turn into each other.
ReduceOp kind(ReduceOp op) {
  return op == ReduceOp::kAvg ? ReduceOp::kSum : op;
}

// Whether a linearity takes some partial that is given, or none at all. Another one
// turns replicated tensors into terms of a sum, which never costs less than
// leaving them alone.
bool is_fed(const Linearity& linearity, std::span<const Layout> given) {
  bool takes_partials = false;
  for (std::size_t i = 0; i < linearity.inputs.size(); ++i) {
    if (!linearity.inputs[i]) continue;
    takes_partials = true;
    for (const Placement placement : given[i].placements()) {
      if (placement.is_partial() &&
          kind(placement.reduce_op()) == kind(*linearity.inputs[i])) {
        return true;
      }
    }
  }
  return !takes_partials;
}

}  // namespace

Result<ShardingPropagator> ShardingPropagator::create(
    DeviceMesh mesh, Topology topology,
    std::shared_ptr<const OpLibrary> library) {
  SP_ASSIGN(RedistributePlanner planner,
            RedistributePlanner::create(mesh, topology));
  return ShardingPropagator(std::move(mesh), std::move(topology), library, std::move(planner));
}

ShardingPropagator::ShardingPropagator(DeviceMesh mesh, Topology topology,
                                       std::shared_ptr<const OpLibrary> library,
                                       RedistributePlanner planner)
    : mesh_(std::move(mesh)),
      topology_(std::move(topology)),
      library_(std::move(library)),
      planner_(std::move(planner)) {}

Result<OpStrategy> ShardingPropagator::strategies(
    std::shared_ptr<const OpSchema> op, LayoutTable& layouts,
    const StrategyOptions& options) const {
  SP_ASSIGN(IndexSpace space, library_->index_space(*op));
  return op_strategies(std::move(op),
                       std::make_shared<const IndexSpace>(std::move(space)), mesh_,
                       layouts, options);
}

Result<Propagation> ShardingPropagator::propagate(
    std::shared_ptr<const OpSchema> op, std::span<const Layout> inputs) const {
  LayoutTable layouts;
  SP_ASSIGN(IndexSpace space, library_->index_space(*op));
  std::erase_if(space.linearities, [&](const Linearity& linearity) {
    return !is_fed(linearity, inputs);
  });
  const OpStrategy all =
      op_strategies(op, std::make_shared<const IndexSpace>(std::move(space)),
                    mesh_, layouts);

  std::vector<LayoutId> given;
  given.reserve(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    given.push_back(
        layouts.intern(canonical(inputs[i], mesh_, op->inputs[i].shape())));
  }
  Error refused;
  // What moving one operand to one layout takes; nothing where it cannot.
  std::map<std::pair<std::size_t, LayoutId>, std::optional<std::int64_t>> moves;
  const auto move_cost = [&](std::size_t input,
                             LayoutId to) -> std::optional<std::int64_t> {
    if (given[input] == to) return 0;
    const auto [it, fresh] = moves.try_emplace({input, to});
    if (fresh) {
      auto cost =
          planner_.cost(layouts[given[input]], layouts[to], op->inputs[input]);
      if (cost) {
        it->second = *cost;
      } else {
        refused = std::move(cost).error();
      }
    }
    return it->second;
  };

  // Moves first, being cheap to look up; the rest only where they can win.
  using Key = std::tuple<std::int64_t, int, std::int64_t>;
  std::optional<Key> least;
  Propagation best;
  const PlacementStrategy* chosen = nullptr;
  for (const PlacementStrategy& strategy : all.strategies) {
    std::int64_t moved = 0;
    int count = 0;
    bool reachable = true;
    for (std::size_t i = 0; i < given.size() && reachable; ++i) {
      const auto cost = move_cost(i, strategy.inputs[i]);
      reachable = cost.has_value();
      moved += cost.value_or(0);
      count += strategy.inputs[i] == given[i] ? 0 : 1;
    }
    if (!reachable || (least && moved > std::get<0>(*least))) continue;
    const LocalContext context{*op, *all.space, mesh_, layouts, strategy};
    std::vector<CollectiveStep> inside = collectives_inside(context, topology_);
    std::int64_t inside_ns = 0;
    for (const CollectiveStep& step : inside) inside_ns += step.nanoseconds;
    const std::int64_t compute = compute_nanoseconds(context, topology_);
    const Key key{moved + inside_ns, count, compute};
    if (least && key >= *least) continue;
    least = key;
    chosen = &strategy;
    best.inside = std::move(inside);
    best.redistribute_nanoseconds = moved;
    best.inside_nanoseconds = inside_ns;
    best.compute_nanoseconds = compute;
  }
  // Every layout reaches all replicated, which every operator accepts: what is
  // left is a tensor that the planner itself refuses.
  if (chosen == nullptr) return fail(std::move(refused));
  for (const LayoutId id : chosen->inputs) best.inputs.push_back(layouts[id]);
  for (const LayoutId id : chosen->outputs) best.outputs.push_back(layouts[id]);
  best.rank_arguments =
      rank_arguments({*op, *all.space, mesh_, layouts, *chosen});
  return best;
}

}  // namespace shardprop
