#include "verify/layout_candidates.h"

#include "base/index.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace shardprop::verification {
namespace {

// Sums come first: most terms are terms of sums.
constexpr ReduceOp kTermOps[] = {ReduceOp::kSum, ReduceOp::kAvg, ReduceOp::kMax,
                                 ReduceOp::kMin, ReduceOp::kProduct};

bool is_possible(ReduceOp op, TermOps ops) {
  return ops == TermOps::kAll || op == ReduceOp::kSum || op == ReduceOp::kAvg;
}

// Larger lists of layouts are not tried. A mesh of three dims and a tensor of
// four dims have 216 layouts.
constexpr std::size_t kMostLayouts = 20'000;

std::vector<Placement> choices_of(int mesh_dim, const DeviceMesh& mesh,
                                  const Dims& whole,
                                  const LayoutChoices& choices, ReduceOp op) {
  std::vector<Placement> out = {Placement::replicate()};
  if (mesh.size(mesh_dim) == 1) return out;
  for (const int dim : choices.sharded_dims) {
    out.push_back(Placement::shard(dim));
    if (!choices.strided) continue;
    const std::int64_t size = whole[index(dim)];
    for (std::int64_t factor = 2; factor <= size / 2; ++factor) {
      if (size % factor != 0) continue;
      out.push_back(Placement::strided_shard(dim, static_cast<int>(factor)));
    }
  }
  if (choices.may_be_partial[index(mesh_dim)]) {
    out.push_back(Placement::partial(op));
  }
  return out;
}

// Adds the layout in default order, and in reversed order if several mesh dims
// shard one tensor dim.
void add_orders(const Placements& placements, std::vector<Layout>& out) {
  auto plain = Layout::create(placements);
  if (!plain) return;
  ShardOrder order(placements.size(), 0);
  bool has_several = false;
  for (int dim = 0; dim < plain->min_tensor_rank(); ++dim) {
    const DimIndices cuts = plain->cuts(dim);
    has_several = has_several || cuts.size() > 1;
    for (std::size_t at = 0; at < cuts.size(); ++at) {
      order[index(cuts[at])] = static_cast<std::int8_t>(cuts.size() - 1 - at);
    }
  }
  out.push_back(*std::move(plain));
  if (!has_several) return;
  if (auto reversed = Layout::create(placements, order)) {
    out.push_back(*std::move(reversed));
  }
}

// The cost of an explanation: terms, strided shards, other orders, shards.
auto simplicity(const Layout& layout) {
  int terms = 0;
  int shards = 0;
  for (const Placement placement : layout.placements()) {
    terms += placement.is_partial() ? 1 : 0;
    shards += placement.is_shard() ? 1 : 0;
  }
  return std::tuple(terms, layout.has_strided(), !layout.has_default_order(),
                    shards);
}

}  // namespace

std::vector<Layout> layout_candidates(const DeviceMesh& mesh, const Dims& whole,
                                      const LayoutChoices& choices) {
  std::vector<Layout> out;
  const bool has_terms =
      std::find(choices.may_be_partial.begin(), choices.may_be_partial.end(),
                true) != choices.may_be_partial.end();
  for (const ReduceOp op : kTermOps) {
    if (!is_possible(op, choices.ops)) continue;
    std::vector<Placements> made = {Placements()};
    for (int d = 0; d < mesh.ndim(); ++d) {
      std::vector<Placements> longer;
      for (const Placements& start : made) {
        for (const Placement next : choices_of(d, mesh, whole, choices, op)) {
          if (longer.size() == kMostLayouts) break;
          longer.push_back(start);
          longer.back().push_back(next);
        }
      }
      made = std::move(longer);
    }
    std::vector<Layout> of_op;
    for (const Placements& placements : made) add_orders(placements, of_op);
    std::erase_if(of_op, [&](const Layout& layout) {
      return op != ReduceOp::kSum && !layout.has_partial();
    });
    std::stable_sort(of_op.begin(), of_op.end(),
                     [](const Layout& a, const Layout& b) {
                       return simplicity(a) < simplicity(b);
                     });
    out.insert(out.end(), of_op.begin(), of_op.end());
    if (!has_terms) break;
  }
  return out;
}

}  // namespace shardprop::verification
