#include "plan/problem/choices/sharding_seeds.h"

#include "base/index.h"
#include "graph/analysis/whole_view.h"
#include "plan/tuning.h"
#include "strategy/offered_shardings.h"
#include "strategy/strategy_of.h"

#include <shardprop/base/error.h>
#include <shardprop/placement/local_region.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <utility>

namespace shardprop {
namespace {

// The unit is demanded layouts of one value, and offered shardings of one
// factor. Two mesh dims that shard a view of two dims demand at most three. Pins
// may demand more, and each one adds strategies. On the example graphs and 16
// ranks, three demands add less than 10 % to the set-up.
constexpr std::size_t kMostDemandedLayouts = 8;
constexpr std::ptrdiff_t kMostOfferedShardings = 8;

bool is_in_mesh_order(const Layout& layout) {
  return !layout.has_strided() && layout.has_default_order();
}

// Returns whether the equal pieces of a dim of the operand are sharded.
bool shards_pieces(const IndexSpace& space, const Operand& operand,
                   const FactorShardings& shardings) {
  return std::any_of(operand.dims.begin(), operand.dims.end(),
                     [&](const DimFactors& dim) {
                       const auto piece = piece_factor(space, dim);
                       return piece && !shardings.of_all().cuts(*piece).empty();
                     });
}

// Returns the layout with replicas instead of partials.
Layout without_partials(const Layout& layout) {
  Placements placements = layout.placements();
  for (Placement& placement : placements) {
    if (placement.is_partial()) placement = Placement::replicate();
  }
  auto made = Layout::create(std::move(placements), layout.shard_order());
  if (!made) throw InternalError("a layout without partials is malformed");
  return *std::move(made);
}

}  // namespace

std::optional<FactorId> piece_factor(const IndexSpace& space,
                                     const DimFactors& dim) {
  if (dim.size() != 2 || space.factor(dim[0]).kind != FactorKind::kSegmented) {
    return std::nullopt;
  }
  return dim[1];
}

void ShardingSeeds::demand(ValueId value, const Layout& layout) {
  add(value, layouts_.intern(without_partials(layout)), true);
}

void ShardingSeeds::demand(const Node& node, std::span<const Layout> operands) {
  const std::size_t inputs = node.inputs.size();
  // forced_choice() refuses other counts of layouts.
  if (operands.size() != inputs + node.outputs.size()) return;
  offer(node, operands);
  for (std::size_t o = 0; o < operands.size(); ++o) {
    add(o < inputs ? node.inputs[o] : node.outputs[o - inputs],
        layouts_.intern(without_partials(operands[o])), false);
  }
}

void ShardingSeeds::offer(const Node& node, std::span<const Layout> operands) {
  if (std::all_of(operands.begin(), operands.end(), is_in_mesh_order)) return;
  const Application& applied = application(node);
  if (!applied.space) return;
  const std::size_t inputs = node.inputs.size();
  const auto offer_those_of = [&](const std::vector<Operand>& dims,
                                  std::span<const Layout> layouts) {
    for (OfferedSharding& sharding :
         offered_shardings(*applied.space, mesh_, dims, layouts)) {
      const auto factor = static_cast<FactorId>(*sharding.factor);
      offer(node.id, {.offered = {{factor, std::move(sharding.sharding)}}});
    }
    for (std::size_t o = 0; o < layouts.size(); ++o) {
      if (shards_pieces(
              *applied.space, dims[o],
              implied_shardings(*applied.space, mesh_, dims[o], layouts[o]))) {
        offer(node.id, {.shards_pieces = true});
      }
    }
  };
  offer_those_of(applied.space->inputs, operands.first(inputs));
  offer_those_of(applied.space->outputs, operands.subspan(inputs));
}

void ShardingSeeds::offer_views(ValueId from, ValueId to,
                                const Layout& layout) {
  const auto viewed_by = [&](ValueId value) -> const Node* {
    if (graph_.value(value).is_input()) return nullptr;
    const Node& node = graph_.node(graph_.value(value).producer);
    return is_whole_view(graph_, node) ? &node : nullptr;
  };
  std::vector<const Node*> down;  // the views above `to`, the last one first
  for (const Node* view = viewed_by(to); view != nullptr;
       view = viewed_by(view->inputs[0])) {
    down.push_back(view);
  }
  std::optional<LayoutId> known = layouts_.intern(without_partials(layout));
  // Returns false if the layout implies none of the other operand.
  const auto pass = [&](const Node& view, std::size_t operand) {
    const Step& over = step(view, operand, *known);
    offer(view.id, over.demands);
    if (over.operands.empty()) return false;
    known = over.operands[1 - operand];
    return true;
  };
  // Walks up from `from` to the first value that `to` is or views.
  std::size_t left = 0;  // the views that lead down to `to`
  while (from != to) {
    const auto above =
        std::find_if(down.begin(), down.end(),
                     [&](const Node* view) { return view->inputs[0] == from; });
    if (above != down.end()) {
      left = static_cast<std::size_t>(above - down.begin()) + 1;
      break;
    }
    const Node* view = viewed_by(from);
    if (view == nullptr || !pass(*view, 1)) return;
    from = view->inputs[0];
  }
  while (left > 0 && pass(*down[--left], 0)) {
  }
}

void ShardingSeeds::follow() {
  for (std::size_t d = 0; d < demands_.size(); ++d) {
    const Demand demand = demands_[d];
    const Value& value = graph_.value(demand.value);
    for (const Use& use : value.consumers) {
      follow(demand, graph_.node(use.node), use.operand);
    }
    if (value.is_input()) continue;
    const Node& producer = graph_.node(value.producer);
    follow(demand, producer, producer.inputs.size() + value.output_index);
  }
  demands_.clear();
}

void ShardingSeeds::follow(const Demand& demand, const Node& node,
                           std::size_t operand) {
  const Step& known = step(node, operand, demand.layout);
  offer(node.id, known.demands);
  const std::size_t inputs = node.inputs.size();
  for (std::size_t o = 0; o < known.operands.size(); ++o) {
    if (o == operand) continue;
    add(o < inputs ? node.inputs[o] : node.outputs[o - inputs],
        known.operands[o], demand.in_mesh_order);
  }
}

void ShardingSeeds::add(ValueId value, LayoutId layout, bool in_mesh_order) {
  const Layout& demanded = layouts_[layout];
  if (demanded.is_replicated() ||
      (!in_mesh_order && is_in_mesh_order(demanded))) {
    return;
  }
  std::vector<LayoutId>& known = demanded_[value.index()];
  if (std::find(known.begin(), known.end(), layout) != known.end()) return;
  if (known.size() == kMostDemandedLayouts) {
    layouts_left_out_.emplace(value, layout);
    return;
  }
  known.push_back(layout);
  demands_.push_back({value, layout, in_mesh_order});
}

void ShardingSeeds::offer(NodeId node, const OperatorDemands& demands) {
  if (demands == OperatorDemands{}) return;
  OperatorDemands& of_node = offered_[node];
  of_node.shards_pieces = of_node.shards_pieces || demands.shards_pieces;
  OfferedShardings& known = of_node.offered;
  const bool allows_strided =
      mesh_.num_active_dims() <= tuning::kMostStridedDims;
  for (const auto& sharding : demands.offered) {
    if (sharding.second.has_strided() && !allows_strided) continue;
    const auto at = std::lower_bound(known.begin(), known.end(), sharding);
    if (at != known.end() && *at == sharding) continue;
    const auto of_factor = std::count_if(
        known.begin(), known.end(),
        [&](const auto& other) { return other.first == sharding.first; });
    if (of_factor < kMostOfferedShardings) {
      known.insert(at, sharding);
    } else {
      shardings_left_out_.emplace(node, sharding.first, sharding.second);
    }
  }
}

const OperatorDemands& ShardingSeeds::of(NodeId node) const {
  static const OperatorDemands kNone;
  const auto found = offered_.find(node);
  return found == offered_.end() ? kNone : found->second;
}

DemandedShardings ShardingSeeds::list() {
  DemandedShardings out;
  out.most_of_factor = kMostOfferedShardings;
  out.most_of_value = kMostDemandedLayouts;
  out.left_out_of_factors =
      static_cast<std::int64_t>(shardings_left_out_.size());
  out.left_out_of_values = static_cast<std::int64_t>(layouts_left_out_.size());
  std::map<std::tuple<std::string, std::string, std::string, FactorSharding>,
           std::int64_t>
      operators;
  for (const auto& [id, demands] : offered_) {
    if (demands.shards_pieces) ++out.split_operators;
    const Node& node = graph_.node(id);
    const Application& applied = application(node);
    if (!applied.space || demands.offered.empty()) continue;
    const std::vector<std::string> names = factor_names(*applied.space);
    const std::string rule = operands_text(*applied.space);
    for (const auto& [factor, sharding] : demands.offered) {
      ++operators[{node.op_name(), rule, names[index(factor)], sharding}];
    }
  }
  for (auto& [key, count] : operators) {
    auto& [op, rule, factor, sharding] = key;
    out.demanded.push_back({op, rule, factor, sharding, count});
  }
  return out.empty() ? DemandedShardings{} : out;
}

const ShardingSeeds::Application& ShardingSeeds::application(const Node& node) {
  const auto [it, is_new] = applications_.try_emplace(&node.op);
  if (is_new) {
    if (auto space = library_.index_space(node.op)) {
      it->second.carried = carried_factors(*space);
      it->second.space = *std::move(space);
    }
  }
  return it->second;
}

const ShardingSeeds::Step& ShardingSeeds::step(const Node& node,
                                               std::size_t operand,
                                               LayoutId layout) {
  const Application& applied = application(node);
  const auto [it, is_new] = steps_.try_emplace({&applied, operand, layout});
  if (!is_new || !applied.space) return it->second;
  const IndexSpace& space = *applied.space;
  const std::size_t inputs = space.inputs.size();
  const Operand& known = operand < inputs ? space.inputs[operand]
                                          : space.outputs[operand - inputs];
  const FactorShardings shardings = accepted(
      applied, implied_shardings(space, mesh_, known, layouts_[layout]));
  it->second.demands.offered = offered(applied, shardings);
  it->second.demands.shards_pieces = shards_pieces(space, known, shardings);
  it->second.operands = operands(node, space, shardings);
  return it->second;
}

FactorShardings ShardingSeeds::accepted(
    const Application& application, const FactorShardings& shardings) const {
  const IndexSpace& space = *application.space;
  Placements placements = shardings.of_all().placements();
  for (std::size_t f = 0; f < space.factors.size(); ++f) {
    const auto factor = static_cast<int>(f);
    const std::array<std::int64_t, 1> shape = {space.factors[f].size};
    if (space.factors[f].shardable() &&
        accepts(application.carried[f],
                canonical(shardings.of(factor), mesh_, shape))) {
      continue;
    }
    for (const std::int32_t m : shardings.of_all().cuts(factor)) {
      placements[index(m)] = Placement::replicate();
    }
  }
  ShardOrder order = shardings.of_all().shard_order();
  for (std::size_t m = 0; m < placements.size(); ++m) {
    if (placements[m].is_replicate()) order[m] = 0;
  }
  auto made = Layout::create(std::move(placements), std::move(order));
  if (!made) throw InternalError("the shardings of factors are malformed");
  return FactorShardings(*std::move(made));
}

OfferedShardings ShardingSeeds::offered(
    const Application& application, const FactorShardings& shardings) const {
  OfferedShardings out;
  for (std::size_t f = 0; f < application.space->factors.size(); ++f) {
    const auto factor = static_cast<FactorId>(f);
    const std::array<std::int64_t, 1> shape = {
        application.space->factors[f].size};
    FactorSharding form = canonical(shardings.of(factor), mesh_, shape);
    if (!is_in_mesh_order(form)) out.emplace_back(factor, std::move(form));
  }
  return out;
}

std::vector<LayoutId> ShardingSeeds::operands(
    const Node& node, const IndexSpace& space,
    const FactorShardings& shardings) {
  Assignment assignment;
  for (const Placement placement : shardings.of_all().placements()) {
    assignment.push_back(placement.is_shard()
                             ? static_cast<std::int16_t>(placement.dim())
                             : kUnassigned);
  }
  StrategyOptions options;
  options.allow_empty_shards = false;
  options.allow_strided = mesh_.num_active_dims() <= tuning::kMostStridedDims;
  const auto strategy = strategy_of(node.op, space, mesh_, assignment,
                                    shardings, layouts_, options);
  if (!strategy) return {};
  std::vector<LayoutId> out;
  for (const auto* layouts : {&strategy->inputs, &strategy->outputs}) {
    for (const LayoutId id : *layouts) {
      out.push_back(layouts_.intern(without_partials(layouts_[id])));
    }
  }
  return out;
}

}  // namespace shardprop
