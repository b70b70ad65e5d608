// The demands of views, splits and cats.
#include "base/index.h"
#include "graph/analysis/whole_view.h"
#include "plan/problem/choices/sharding_seeds.h"
#include "plan/tuning.h"

#include <shardprop/base/error.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <utility>

namespace shardprop {
namespace {

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
      const bool carries =
          mesh.size(static_cast<int>(m)) == 1 || digit[m] + 1 == digits.size();
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

void ShardingSeeds::demand_by_views() {
  std::int64_t ranks = 1;
  for (int m = 0; m < mesh_.ndim(); ++m) ranks *= mesh_.size(m);
  if (ranks == 1) return;
  for (const Node& node : graph_.nodes()) {
    if (!is_whole_view(graph_, node)) continue;
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
  const auto dim = merged_dim(of_result ? space.outputs[0] : space.inputs[0]);
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

// A split returns several views of its input, and a model may slice a value into
// such pieces. The result of a cat has the elements of its inputs.
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
    } else if (node.inputs.size() == 1 && node.outputs.size() == 1 &&
               is_first_of_slices(node)) {
      demand_of_pieces(node, false, groups);
    }
  }
}

bool ShardingSeeds::is_first_of_slices(const Node& node) {
  struct Slice {
    std::size_t dim = 0;
    std::int64_t pieces = 0;  // of the dim, all of one size
    std::int64_t piece = 0;   // the one that it takes, from 0
  };
  const auto sliced = [&](const Node& slice) -> std::optional<Slice> {
    if (slice.inputs.size() != 1 || slice.outputs.size() != 1) {
      return std::nullopt;
    }
    const Application& applied = application(slice);
    if (!applied.space || !applied.space->is_free) return std::nullopt;
    const IndexSpace& space = *applied.space;
    // Its first argument by rank is where the piece starts.
    if (space.local_arguments.empty()) return std::nullopt;
    const std::int64_t piece = space.local_arguments[0].values.at(0).scale;
    const std::vector<DimFactors>& dims = space.inputs[0].dims;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      if (!piece_factor(space, dims[d])) continue;
      return Slice{d, space.factor(dims[d][0]).size, piece};
    }
    return std::nullopt;
  };
  const auto own = sliced(node);
  if (!own) return false;
  // A model may take one of the pieces more than once.
  std::set<std::int64_t> pieces;
  for (const Use& use : graph_.value(node.inputs[0]).consumers) {
    const Node& other = graph_.node(use.node);
    const auto slice = sliced(other);
    if (!slice || slice->dim != own->dim || slice->pieces != own->pieces) {
      continue;
    }
    if (pieces.empty() && other.id != node.id) return false;
    pieces.insert(slice->piece);
  }
  return static_cast<std::int64_t>(pieces.size()) == own->pieces;
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
    if (!is_whole_view(graph_, node)) {
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
    if (!is_whole_view(graph_, node)) {
      return space.product == ProductKind::kPlain &&
             space.factor(factor->factor).size ==
                 graph_.value(value).meta.size(at.dim);
    }
    const auto after = dim_at(space, space.outputs[0], *factor);
    return after && is_read_by_matmul(node.outputs[0], *after);
  });
}

}  // namespace shardprop
