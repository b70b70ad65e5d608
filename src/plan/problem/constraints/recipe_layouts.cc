#include "plan/problem/constraints/recipe_layouts.h"

#include "base/index.h"
#include "base/union_find.h"
#include "plan/problem/problem_data.h"
#include "plan/tuning.h"

#include <shardprop/placement/local_region.h>
#include <shardprop/placement/tensor_spec.h>

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

namespace shardprop {
namespace {

bool all_ranks_hold_some(const Layout& layout, const DeviceMesh& mesh,
                         const Dims& shape) {
  // A dim is chunked outermost first. The last chunk is the shortest.
  for (int dim = 0; dim < static_cast<int>(shape.size()); ++dim) {
    std::int64_t least = shape[index(dim)];
    for (const std::int32_t m : layout.cuts(dim)) {
      const std::int64_t parts = mesh.size(m);
      const std::int64_t full = (least + parts - 1) / parts;
      least -= full * (parts - 1);
      if (least <= 0) return false;
    }
  }
  return true;
}

// Returns the uses of the mesh dims, by mesh dim.
std::vector<RecipeUse> uses_of(const Recipe& recipe, const DeviceMesh& mesh) {
  std::vector<RecipeUse> uses(static_cast<std::size_t>(mesh.ndim()));
  for (const RecipePart& part : recipe.parts) {
    for (const std::string& name : part.dims) {
      RecipeUse& use = uses[index(*mesh.find_dim(name))];
      switch (part.kind) {
        case RecipeKind::kDdp:
          use.data = true;
          break;
        case RecipeKind::kFsdp:
          use.data = use.shards_state = true;
          break;
        case RecipeKind::kHsdp:
          use.data = true;
          use.shards_state = name == part.dims.back();
          break;
        case RecipeKind::kMegatron:
          use.tensor = true;
          break;
        case RecipeKind::kMegatronSp:
          use.tensor = use.by_tokens = true;
          break;
        case RecipeKind::kEp:
          use.experts = true;
          break;
      }
    }
  }
  return uses;
}

}  // namespace

RecipeLayouts::RecipeLayouts(const Recipe& recipe, const Graph& graph,
                             const DeviceMesh& mesh, const DimRoles& roles)
    : graph_(graph),
      mesh_(mesh),
      roles_(roles),
      uses_(uses_of(recipe, mesh)),
      order_(uses_.size()) {
  std::iota(order_.begin(), order_.end(), 0);
  std::stable_partition(order_.begin(), order_.end(), [&](int dim) {
    const RecipeUse& use = uses_[index(dim)];
    return use.tensor || (use.experts && !use.data);
  });
  find_groups();
  for (int m = 0; m < mesh.ndim(); ++m) find_fitting(m);
}

void RecipeLayouts::find_groups() {
  UnionFind groups(graph_.values().size());
  for (const Node& node : graph_.nodes()) {
    if (!roles_.factor(node.id, DimRole::kTensor)) continue;
    std::optional<ValueId> first;
    for (const auto* values : {&node.inputs, &node.outputs}) {
      for (const ValueId value : *values) {
        if (!roles_.dim(value, DimRole::kTensor)) continue;
        if (!first) first = value;
        groups.join(value.index(), first->index());
      }
    }
  }
  group_.reserve(groups.size());
  for (std::size_t v = 0; v < groups.size(); ++v) {
    group_.push_back(groups.root(v));
  }
}

void RecipeLayouts::find_fitting(int mesh_dim) {
  std::vector<bool>& fits = fits_.emplace_back(group_.size());
  if (!uses_[index(mesh_dim)].tensor) return;
  for (const Value& value : graph_.values()) {
    const auto& at = roles_.dim(value.id, DimRole::kTensor);
    if (at && !at->is_outermost()) fits[group_[value.id.index()]] = true;
  }
  for (const Value& value : graph_.values()) {
    const auto& at = roles_.dim(value.id, DimRole::kTensor);
    const std::size_t group = group_[value.id.index()];
    if (!at || !at->is_outermost() || !fits[group]) continue;
    Placements placements(uses_.size());
    ShardOrder order(uses_.size());
    fits[group] = place(value, *at, mesh_dim, placements, order);
  }
}

bool RecipeLayouts::pieces_fit(ValueId value, int mesh_dim) const {
  return fits_[index(mesh_dim)][group_[value.index()]];
}

bool RecipeLayouts::pieces_fit(const Node& node, int mesh_dim) const {
  for (const auto* values : {&node.inputs, &node.outputs}) {
    for (const ValueId value : *values) {
      if (roles_.dim(value, DimRole::kTensor)) {
        return pieces_fit(value, mesh_dim);
      }
    }
  }
  return false;
}

NodeWish RecipeLayouts::wish(const Node& node) const {
  NodeWish out;
  out.reserve(uses_.size());
  for (int m = 0; m < mesh_.ndim(); ++m) out.push_back(wish(node, m));
  return out;
}

DimWish RecipeLayouts::wish(const Node& node, int mesh_dim) const {
  const RecipeUse& use = uses_[index(mesh_dim)];
  DimWish out;
  const auto give = [&](DimRole role) {
    const auto& trace = roles_.factor(node.id, role);
    // Only the tensor role has pieces.
    const bool has_pieces = trace && !trace->is_outermost();
    if (!trace || (has_pieces &&
                   (role != DimRole::kTensor || !pieces_fit(node, mesh_dim)))) {
      return;
    }
    out.kind = DimWish::Kind::kFactor;
    out.factors.push_back(trace->factor);
    out.pieces = trace->outer;
  };
  if (use.experts && roles_.factor(node.id, DimRole::kExperts)) {
    give(DimRole::kExperts);
    return out;
  }
  if (use.data) {
    give(roles_.rows());
    if (out.factors.size() == 1) give(DimRole::kTokens);
    return out;
  }
  if (!use.tensor) return out;
  if (roles_.factor(node.id, DimRole::kTensor)) {
    give(DimRole::kTensor);
    return out;
  }
  // The operator is between the pairs. A matmul in no pair is left to the
  // planner.
  if (!roles_.factor(node.id, roles_.rows()) || roles_.is_product(node.id)) {
    return out;
  }
  if (!use.by_tokens) {
    out.kind = DimWish::Kind::kNothing;
    return out;
  }
  give(roles_.has(DimRole::kTokens) ? DimRole::kTokens : DimRole::kBatch);
  return out;
}

// Shards the dim over the mesh dim, after the mesh dims that shard it already.
// Each of its `at.outer` pieces is sharded. Returns false if that would leave a
// rank without elements.
bool RecipeLayouts::place(const Value& value, const DimTrace& at, int mesh_dim,
                          Placements& placements, ShardOrder& order) const {
  const int dim = at.dim;
  const auto m = index(mesh_dim);
  Placements cut = placements;
  ShardOrder places = order;
  cut[m] = Placement::strided_shard(dim, static_cast<int>(at.outer));
  places[m] = static_cast<std::int8_t>(std::count_if(
      placements.begin(), placements.end(),
      [&](Placement p) { return p.is_shard() && p.dim() == dim; }));
  const auto layout = Layout::create(cut, places);
  if (!layout || !check_layout(*layout, mesh_, value.meta) ||
      !all_ranks_hold_some(*layout, mesh_, value.meta.shape())) {
    return false;
  }
  placements = std::move(cut);
  order = std::move(places);
  return true;
}

std::optional<Layout> RecipeLayouts::stored(const GraphInput& input) const {
  const Value& value = graph_.value(input.value);
  Placements placements(uses_.size());
  ShardOrder order(uses_.size());
  const auto give = [&](DimRole role, int m) {
    const auto& at = roles_.dim(value.id, role);
    if (!at) return false;
    if (!at->is_outermost() &&
        (role != DimRole::kTensor || !pieces_fit(value.id, m) ||
         mesh_.num_active_dims() > tuning::kMostStridedDims)) {
      return false;
    }
    return place(value, *at, m, placements, order);
  };
  if (input.kind == InputKind::kParameter) {
    // Mesh dims that shard the computation come first, then the dims of the
    // state. A gather over the state dims then leaves the shards of the
    // computation.
    std::vector<int> rest;
    for (const int m : order_) {
      const RecipeUse& use = uses_[index(m)];
      if ((use.tensor && give(DimRole::kTensor, m)) ||
          (use.experts && give(DimRole::kExperts, m))) {
        continue;
      }
      if (use.shards_state) rest.push_back(m);
    }
    for (const int m : rest) {
      for (int dim = 0; dim < value.meta.rank(); ++dim) {
        if (place(value, {dim, 1}, m, placements, order)) break;
      }
    }
  } else if (input.kind == InputKind::kUser &&
             roles_.dim(value.id, DimRole::kBatch)) {
    for (const int m : order_) {
      if (uses_[index(m)].data) give(roles_.rows(), m);
    }
  } else {
    return std::nullopt;
  }
  auto layout = Layout::create(std::move(placements), std::move(order));
  if (!layout) return std::nullopt;
  return canonical(*layout, mesh_, value.meta.shape());
}

namespace {

// Returns whether the mesh dim shards each of so many pieces of its factor. One
// piece asks for nothing.
bool has_pieces(const PlacementStrategy& strategy, const LayoutTable& layouts,
                std::size_t mesh_dim, std::int64_t pieces) {
  if (pieces == 1) return true;
  const int found =
      strategy.shardings.valid()
          ? layouts[strategy.shardings][static_cast<int>(mesh_dim)]
                .split_factor()
          : 1;
  return found == pieces;
}

// Returns the factors, then the joined factors that begin with one of them: more
// ranks than groups of heads share all heads.
std::vector<FactorId> with_joined(const IndexSpace& space,
                                  std::vector<FactorId> factors) {
  const std::size_t count = factors.size();
  for (std::size_t f = 0; f < space.factors.size(); ++f) {
    const DimFactors& joins = space.factors[f].joins;
    const auto end = factors.begin() + static_cast<std::ptrdiff_t>(count);
    if (!joins.empty() && std::find(factors.begin(), end, joins[0]) != end) {
      factors.push_back(static_cast<FactorId>(f));
    }
  }
  return factors;
}

}  // namespace

std::vector<std::uint32_t> granted(const ChoiceSet& set,
                                   const LayoutTable& layouts,
                                   const NodeWish& wish,
                                   std::span<const int> order) {
  std::vector<std::uint32_t> kept(set.size());
  std::iota(kept.begin(), kept.end(), 0U);
  const std::size_t factors = set.op.space->factors.size();
  const auto keep = [&](const auto& fits) {
    std::vector<std::uint32_t> fewer;
    for (const std::uint32_t c : kept) {
      if (fits(set.op.strategies[c])) fewer.push_back(c);
    }
    if (fewer.empty()) return false;
    kept = std::move(fewer);
    return true;
  };
  for (const int dim : order) {
    const auto m = index(dim);
    switch (wish[m].kind) {
      case DimWish::Kind::kFree:
        break;
      case DimWish::Kind::kNothing:
        keep([&](const PlacementStrategy& strategy) {
          const std::int16_t given = strategy.assignment[m];
          return given == kUnassigned ||
                 static_cast<std::size_t>(given) >= factors;
        });
        break;
      case DimWish::Kind::kFactor:
        for (const FactorId factor :
             with_joined(*set.op.space, wish[m].factors)) {
          if (keep([&](const PlacementStrategy& strategy) {
                return strategy.assignment[m] == factor &&
                       has_pieces(strategy, layouts, m, wish[m].pieces);
              })) {
            break;
          }
        }
        break;
    }
  }
  return kept;
}

namespace {

// Returns the choices in which an input and its optimizer's state have this
// layout.
std::vector<std::uint32_t> choices_stored_as(const ChoiceSet& set,
                                             LayoutId required) {
  std::vector<std::uint32_t> kept;
  for (std::uint32_t c = 0; c < set.size(); ++c) {
    if (set.layout(c, set.num_uses) == required &&
        (set.state_layouts.empty() || set.state_layouts[c] == required)) {
      kept.push_back(c);
    }
  }
  return kept;
}

}  // namespace

Restriction following(const PlanProblem& problem, const Recipe& recipe) {
  const Graph& graph = problem.graph();
  const RecipeLayouts layouts(recipe, graph, problem.mesh(), problem.roles());
  // Repeated layers share their choices and wishes.
  std::map<std::pair<const ChoiceSet*, NodeWish>, std::vector<std::uint32_t>>
      known;
  Restriction out = no_restriction(problem);
  for (std::size_t v = 0; v < out.left.size(); ++v) {
    const PlanVariable& variable = problem.variables()[v];
    if (variable.kind == PlanVariable::Kind::kOperator) {
      const ChoiceSet& set = *variable.choices;
      NodeWish wish = layouts.wish(graph.nodes()[variable.index]);
      auto [left, is_new] = known.try_emplace({&set, wish});
      if (is_new) {
        left->second = granted(set, problem.layouts(), wish, layouts.order());
      }
      out.left[v] = left->second;
    } else if (variable.kind == PlanVariable::Kind::kInput) {
      const auto stored = layouts.stored(graph.inputs()[variable.index]);
      if (!stored) continue;
      out.left[v] = choices_stored_as(*variable.choices,
                                      problem.data().layouts.intern(*stored));
    }
  }
  return out;
}

std::uint32_t joined_dims(const Recipe& recipe, const DeviceMesh& mesh) {
  const std::vector<RecipeUse> uses = uses_of(recipe, mesh);
  std::optional<RecipeUse> before;
  std::uint32_t joined = 0;
  for (std::size_t m = 0; m < uses.size(); ++m) {
    if (mesh.size(static_cast<int>(m)) == 1) continue;
    if (before == uses[m]) joined |= 1U << m;
    before = uses[m];
  }
  return joined;
}

bool is_in_space(const Recipe& recipe, const DeviceMesh& mesh,
                 const PlanSpace& space) {
  const std::uint32_t joined = joined_dims(recipe, mesh);
  const int runs = mesh.num_active_dims() - std::popcount(joined);
  return (space.joined_dims & ~joined) == 0 &&
         runs <= space.most_runs.value_or(mesh.num_active_dims());
}

}  // namespace shardprop
