#include <shardprop/propagate/sharding_propagator.h>

#include "base/guard.h"
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

// Whether a linearity takes some partial that is given, or none at all. Another
// one turns replicated tensors into terms of a sum, which never costs less than
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

// Chooses a strategy of one operator for operands laid out as `given`.
class Choice {
 public:
  Choice(const OpStrategy& all, const RedistributePlanner& planner,
         LayoutTable& layouts, std::span<const Layout> given,
         const DeviceMesh& mesh)
      : all_(all), planner_(planner), layouts_(layouts), mesh_(mesh) {
    given_.reserve(given.size());
    for (std::size_t i = 0; i < given.size(); ++i) {
      given_.push_back(
          layouts.intern(canonical(given[i], mesh, all.op->inputs[i].shape())));
    }
  }

  Result<Propagation> least(const Topology& topology) {
    for (const PlacementStrategy& strategy : all_.strategies) {
      try_one(strategy, topology);
    }
    // Every layout reaches all replicated, which every operator accepts: what
    // is left is a tensor that the planner itself refuses.
    if (chosen_ == nullptr) return fail(std::move(refused_));
    for (const LayoutId id : chosen_->inputs) {
      best_.inputs.push_back(layouts_[id]);
    }
    for (const LayoutId id : chosen_->outputs) {
      best_.outputs.push_back(layouts_[id]);
    }
    best_.rank_arguments = rank_arguments(context_of(*chosen_));
    return std::move(best_);
  }

 private:
  using Key = std::tuple<std::int64_t, int, std::int64_t>;

  LocalContext context_of(const PlacementStrategy& strategy) const {
    return {*all_.op, *all_.space, mesh_, layouts_, strategy};
  }

  // What moving one operand to one layout takes; nothing where it cannot.
  std::optional<std::int64_t> move_cost(std::size_t input, LayoutId to) {
    if (given_[input] == to) return 0;
    const auto [it, fresh] = moves_.try_emplace({input, to});
    if (fresh) {
      auto cost = planner_.cost(layouts_[given_[input]], layouts_[to],
                                all_.op->inputs[input]);
      if (cost) {
        it->second = *cost;
      } else {
        refused_ = std::move(cost).error();
      }
    }
    return it->second;
  }

  // Moves first, being cheap to look up; the rest only where they can win.
  void try_one(const PlacementStrategy& strategy, const Topology& topology) {
    std::int64_t moved = 0;
    int count = 0;
    for (std::size_t i = 0; i < given_.size(); ++i) {
      const auto cost = move_cost(i, strategy.inputs[i]);
      if (!cost) return;
      moved += *cost;
      count += strategy.inputs[i] == given_[i] ? 0 : 1;
    }
    if (least_ && moved > std::get<0>(*least_)) return;
    const LocalContext context = context_of(strategy);
    std::vector<CollectiveStep> inside = collectives_inside(context, topology);
    std::int64_t inside_ns = 0;
    for (const CollectiveStep& step : inside) inside_ns += step.nanoseconds;
    const std::int64_t compute = compute_nanoseconds(context, topology);
    const Key key{moved + inside_ns, count, compute};
    if (least_ && key >= *least_) return;
    least_ = key;
    chosen_ = &strategy;
    best_.inside = std::move(inside);
    best_.redistribute_nanoseconds = moved;
    best_.inside_nanoseconds = inside_ns;
    best_.compute_nanoseconds = compute;
  }

  const OpStrategy& all_;
  const RedistributePlanner& planner_;
  LayoutTable& layouts_;
  const DeviceMesh& mesh_;
  std::vector<LayoutId> given_;
  std::map<std::pair<std::size_t, LayoutId>, std::optional<std::int64_t>>
      moves_;
  Error refused_;
  std::optional<Key> least_;
  Propagation best_;
  const PlacementStrategy* chosen_ = nullptr;
};

}  // namespace

Result<ShardingPropagator> ShardingPropagator::create(
    DeviceMesh mesh, Topology topology,
    std::shared_ptr<const OpLibrary> library) {
  SP_ASSIGN(RedistributePlanner planner,
            RedistributePlanner::create(mesh, topology));
  return ShardingPropagator(std::move(mesh), std::move(topology), library,
                            std::move(planner));
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
  return guarded([&]() -> Result<OpStrategy> {
    SP_ASSIGN(IndexSpace space, library_->index_space(*op));
    return op_strategies(std::move(op),
                         std::make_shared<const IndexSpace>(std::move(space)),
                         mesh_, layouts, options);
  });
}

Result<Propagation> ShardingPropagator::propagate(
    std::shared_ptr<const OpSchema> op, std::span<const Layout> inputs) const {
  return guarded([&]() -> Result<Propagation> {
    LayoutTable layouts;
    SP_ASSIGN(IndexSpace space, library_->index_space(*op));
    std::erase_if(space.linearities, [&](const Linearity& linearity) {
      return !is_fed(linearity, inputs);
    });
    const OpStrategy all =
        op_strategies(op, std::make_shared<const IndexSpace>(std::move(space)),
                      mesh_, layouts);
    return Choice(all, planner_, layouts, inputs, mesh_).least(topology_);
  });
}

}  // namespace shardprop
