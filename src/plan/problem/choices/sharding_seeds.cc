#include "plan/problem/choices/sharding_seeds.h"

#include "base/index.h"
#include "plan/problem/build/buffer_forest.h"
#include "plan/tuning.h"
#include "strategy/offered_shardings.h"
#include "strategy/strategy_of.h"

#include <shardprop/base/error.h>
#include <shardprop/placement/local_region.h>

#include <algorithm>
#include <array>
#include <cstdint>
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

// MergedDim is the first dim of an operand with two or more factors. `major` is
// the first factor, and `minor` is the next one.
struct MergedDim {
  FactorId major = 0;
  FactorId minor = 0;
};

std::optional<MergedDim> merged_dim(const Operand& operand) {
  if (operand.dims.empty() || operand.dims[0].size() < 2) return std::nullopt;
  return MergedDim{operand.dims[0][0], operand.dims[0][1]};
}

// Calls visit(shardings) for the ways to shard the minor factor over mesh dims
// that cannot shard the major one. A way that differs from another one in the
// names of equal mesh dims is left out.
template <class Visit>
void visit_forced(const IndexSpace& space, const DeviceMesh& mesh,
                  const MergedDim& dim, const Visit& visit) {
  const auto ndim = index(mesh.ndim());
  if (ndim == 0) return;
  Placements placements(ndim);
  const auto parts = [&](FactorId factor) {
    std::int64_t product = 1;
    for (std::size_t m = 0; m < ndim; ++m) {
      if (placements[m] == Placement::shard(factor)) {
        product *= mesh.size(static_cast<int>(m));
      }
    }
    return product;
  };
  const auto is_forced = [&] {
    const std::int64_t major = space.factor(dim.major).size;
    if (major % parts(dim.major) != 0) return false;
    if (space.factor(dim.minor).size % parts(dim.minor) != 0) return false;
    const std::int64_t rest = major / parts(dim.major);
    bool found = false;
    for (std::size_t m = 0; m < ndim; ++m) {
      if (placements[m] != Placement::shard(dim.minor)) continue;
      found = true;
      const std::int64_t size = mesh.size(static_cast<int>(m));
      if (rest % size == 0) return false;
      for (std::size_t n = m + 1; n < ndim; ++n) {
        if (placements[n] == Placement::shard(dim.major) &&
            mesh.size(static_cast<int>(n)) == size) {
          return false;
        }
      }
    }
    return found;
  };
  // Counts with three digits: replicated, the major and the minor factor.
  const std::array<Placement, 3> digits = {Placement::replicate(),
                                           Placement::shard(dim.major),
                                           Placement::shard(dim.minor)};
  std::vector<std::size_t> digit(ndim, 0);
  while (true) {
    std::size_t m = ndim;
    while (m > 0) {
      --m;
      const bool carries = mesh.size(static_cast<int>(m)) == 1 ||
                           digit[m] + 1 == digits.size();
      digit[m] = carries ? 0 : digit[m] + 1;
      placements[m] = digits[digit[m]];
      if (!carries) break;
      if (m == 0) return;
    }
    if (!is_forced()) continue;
    auto shardings = Layout::create(placements);
    if (!shardings) throw InternalError("shardings of a view are malformed");
    visit(FactorShardings(*std::move(shardings)));
  }
}

}  // namespace

std::optional<FactorId> piece_factor(const IndexSpace& space,
                                     const DimFactors& dim) {
  if (dim.size() != 2 ||
      space.factor(dim[0]).kind != FactorKind::kSegmented) {
    return std::nullopt;
  }
  return dim[1];
}

void ShardingSeeds::demand(ValueId value, const Layout& layout) {
  add(value, layouts_.intern(without_partials(layout)), true);
}

void ShardingSeeds::demand(const Node& node,
                           std::span<const Layout> operands) {
  offer(node, operands);
  const std::size_t inputs = node.inputs.size();
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
    return BufferForest::keeps_every_element(graph_, node) ? &node : nullptr;
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

void ShardingSeeds::demand_by_views() {
  std::int64_t ranks = 1;
  for (int m = 0; m < mesh_.ndim(); ++m) ranks *= mesh_.size(m);
  if (ranks == 1) return;
  for (const Node& node : graph_.nodes()) {
    if (!BufferForest::keeps_every_element(graph_, node)) continue;
    const TensorMeta& from = graph_.value(node.inputs[0]).meta;
    const TensorMeta& to = graph_.value(node.outputs[0]).meta;
    for (const bool of_result : {false, true}) {
      const TensorMeta& apart = of_result ? from : to;
      const TensorMeta& merged = of_result ? to : from;
      if (merged.rank() == 0 || apart.rank() < 2 || apart.size(0) <= 1 ||
          apart.size(0) % ranks == 0 || merged.size(0) <= apart.size(0)) {
        continue;
      }
      demand_of_view(node, of_result);
    }
  }
}

void ShardingSeeds::demand_of_view(const Node& node, bool of_result) {
  const Application& applied = application(node);
  if (!applied.space) return;
  const IndexSpace& space = *applied.space;
  const auto dim =
      merged_dim(of_result ? space.outputs[0] : space.inputs[0]);
  if (!dim || !space.factor(dim->major).shardable() ||
      !space.factor(dim->minor).shardable()) {
    return;
  }
  const ValueId value = of_result ? node.outputs[0] : node.inputs[0];
  visit_forced(space, mesh_, *dim, [&](const FactorShardings& shardings) {
    const std::vector<LayoutId> layouts = operands(node, space, shardings);
    if (!layouts.empty()) add(value, layouts[of_result ? 1 : 0], false);
  });
}

// A split returns several views of its input. The result of a cat has the
// elements of its inputs.
void ShardingSeeds::demand_by_pieces(std::span<const std::uint32_t> groups) {
  if (mesh_.num_active_dims() > tuning::kMostStridedDims) return;
  const auto elements_of = [&](const std::vector<ValueId>& values) {
    std::int64_t sum = 0;
    for (const ValueId value : values) sum += graph_.value(value).meta.numel();
    return sum;
  };
  for (const Node& node : graph_.nodes()) {
    const bool is_split = node.inputs.size() == 1 && node.outputs.size() > 1;
    const bool is_cat = node.inputs.size() > 1 && node.outputs.size() == 1;
    if ((is_split || is_cat) &&
        elements_of(node.inputs) == elements_of(node.outputs)) {
      demand_of_pieces(node, is_cat, groups);
    }
  }
}

void ShardingSeeds::demand_of_pieces(const Node& node, bool of_result,
                                     std::span<const std::uint32_t> groups) {
  const Application& applied = application(node);
  if (!applied.space) return;
  const IndexSpace& space = *applied.space;
  const Operand& fused = of_result ? space.outputs[0] : space.inputs[0];
  const ValueId value = of_result ? node.outputs[0] : node.inputs[0];
  for (std::size_t d = 0; d < fused.dims.size(); ++d) {
    const auto piece = piece_factor(space, fused.dims[d]);
    const DimTrace at{static_cast<int>(d), 1};
    if (!piece || !(of_result ? is_read_by_matmul(value, at)
                              : is_produced_by_matmul(value, at))) {
      continue;
    }
    for (const std::uint32_t group : groups) {
      Placements placements(index(mesh_.ndim()));
      for (std::size_t m = 0; m < placements.size(); ++m) {
        if ((group >> m & 1U) != 0) placements[m] = Placement::shard(*piece);
      }
      auto shardings = Layout::create(std::move(placements));
      if (!shardings) throw InternalError("shardings of pieces are malformed");
      const std::vector<LayoutId> layouts =
          operands(node, space, FactorShardings(*std::move(shardings)));
      if (layouts.empty()) continue;
      add(value, layouts[of_result ? node.inputs.size() : 0], false);
    }
  }
}

bool ShardingSeeds::is_produced_by_matmul(ValueId value, DimTrace at) {
  const std::int64_t size = graph_.value(value).meta.size(at.dim);
  while (!graph_.value(value).is_input()) {
    const Value& produced = graph_.value(value);
    const Node& node = graph_.node(produced.producer);
    const Application& applied = application(node);
    if (!applied.space) return false;
    const IndexSpace& space = *applied.space;
    const auto factor =
        factor_at(space, space.outputs[produced.output_index], at);
    if (!factor || !factor->is_outermost()) return false;
    if (!BufferForest::keeps_every_element(graph_, node)) {
      return space.product == ProductKind::kPlain &&
             space.factor(factor->factor).size == size;
    }
    const auto before = dim_at(space, space.inputs[0], *factor);
    if (!before) return false;
    at = *before;
    value = node.inputs[0];
  }
  return false;
}

bool ShardingSeeds::is_read_by_matmul(ValueId value, DimTrace at) {
  const std::vector<Use>& uses = graph_.value(value).consumers;
  return std::any_of(uses.begin(), uses.end(), [&](const Use& use) {
    const Node& node = graph_.node(use.node);
    const Application& applied = application(node);
    if (!applied.space) return false;
    const IndexSpace& space = *applied.space;
    const auto factor = factor_at(space, space.inputs[use.operand], at);
    if (!factor || !factor->is_outermost()) return false;
    if (!BufferForest::keeps_every_element(graph_, node)) {
      return space.product == ProductKind::kPlain &&
             space.factor(factor->factor).size ==
                 graph_.value(value).meta.size(at.dim);
    }
    const auto after = dim_at(space, space.outputs[0], *factor);
    return after && is_read_by_matmul(node.outputs[0], *after);
  });
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
  if (known.size() == kMostDemandedLayouts ||
      std::find(known.begin(), known.end(), layout) != known.end()) {
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
  for (const auto& sharding : demands.offered) {
    const auto at = std::lower_bound(known.begin(), known.end(), sharding);
    if (at != known.end() && *at == sharding) continue;
    const auto of_factor =
        std::count_if(known.begin(), known.end(), [&](const auto& other) {
          return other.first == sharding.first;
        });
    if (of_factor < kMostOfferedShardings) known.insert(at, sharding);
  }
}

const OperatorDemands& ShardingSeeds::of(NodeId node) const {
  static const OperatorDemands kNone;
  const auto found = offered_.find(node);
  return found == offered_.end() ? kNone : found->second;
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
