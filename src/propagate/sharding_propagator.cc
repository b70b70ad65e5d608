#include <shardprop/propagate/sharding_propagator.h>

#include "base/try.h"

#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace shardprop {

Result<ShardingPropagator> ShardingPropagator::create(
    DeviceMesh mesh, Topology topology, const RuleBook& rules,
    const OpRegistry& registry) {
  SP_ASSIGN(RedistributePlanner planner,
            RedistributePlanner::create(mesh, topology));
  return ShardingPropagator(std::move(mesh), std::move(topology), rules,
                            registry, std::move(planner));
}

ShardingPropagator::ShardingPropagator(DeviceMesh mesh, Topology topology,
                                       const RuleBook& rules,
                                       const OpRegistry& registry,
                                       RedistributePlanner planner)
    : mesh_(std::move(mesh)),
      topology_(std::move(topology)),
      rules_(&rules),
      registry_(&registry),
      planner_(std::move(planner)) {}

Result<OpStrategy> ShardingPropagator::strategies(
    std::shared_ptr<const OpSchema> op, LayoutTable& layouts,
    const StrategyOptions& options) const {
  SP_ASSIGN(FactorMap map, factor_map(*op, *rules_, *registry_));
  return op_strategies(std::move(op),
                       std::make_shared<const FactorMap>(std::move(map)), mesh_,
                       layouts, options);
}

Result<Propagation> ShardingPropagator::propagate(
    std::shared_ptr<const OpSchema> op, std::span<const Layout> inputs) const {
  LayoutTable layouts;
  SP_ASSIGN(const OpStrategy all, strategies(op, layouts));

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
    const LocalContext context{*op, *all.map, mesh_, layouts, strategy};
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
      rank_arguments({*op, *all.map, mesh_, layouts, *chosen});
  return best;
}

}  // namespace shardprop
