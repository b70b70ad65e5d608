#include <shardprop/placement/tensor_spec.h>

#include "base/index.h"
#include "base/nothing_wrong.h"
#include "base/try.h"
#include "placement/split_factor.h"

#include <shardprop/placement/local_region.h>

#include <algorithm>
#include <utility>

namespace shardprop {
namespace {

struct Cut {
  std::int32_t mesh_dim;
  std::int64_t parts;
  std::int64_t pieces;  // split factor
};

// swaps() is true if the two cuts of `size` elements can change places. The
// pieces of `first` are then divided by the parts of `second`.
//
// If the cuts are even, the index in a dim is a number of several digits, and
// each cut fixes one digit. `first` fixes the digit just below its pieces. If
// these pieces are a multiple of what `second` counts through, its digit is
// above the digit of `first`.
bool swaps(const Cut& first, const Cut& second, std::int64_t size) {
  return first.pieces % (second.pieces * second.parts) == 0 &&
         size % (first.pieces * first.parts) == 0;
}

// Returns the canonical cuts of one tensor dim of `size` elements. The highest
// digit is cut first, which leaves the fewest strided shards.
std::vector<Cut> canonical_cuts(std::vector<Cut> cuts, std::int64_t size) {
  // A cut into one part keeps all elements, so its pieces and place do not
  // matter.
  std::vector<Cut> idle;
  std::erase_if(cuts, [&](const Cut& cut) {
    if (cut.parts == 1) idle.push_back({cut.mesh_dim, 1, 1});
    return cut.parts == 1;
  });
  for (bool changed = true; changed;) {
    changed = false;
    std::int64_t left = size;
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
      Cut& first = cuts[i];
      Cut& second = cuts[i + 1];
      if (swaps(first, second, left)) {
        first.pieces /= second.parts;
        std::swap(first, second);
        changed = true;
      }
      if (left % (cuts[i].parts * cuts[i].pieces) != 0) break;
      left /= cuts[i].parts;
    }
  }
  // Each idle cut goes before the first cut of a later mesh dim. The result is
  // in default order if the other cuts are.
  std::sort(idle.begin(), idle.end(),
            [](const Cut& a, const Cut& b) { return a.mesh_dim < b.mesh_dim; });
  for (const Cut& cut : idle) {
    const auto later = std::find_if(
        cuts.begin(), cuts.end(),
        [&](const Cut& other) { return other.mesh_dim > cut.mesh_dim; });
    cuts.insert(later, cut);
  }
  return cuts;
}

// partials_of() lists the partials that a dtype allows, for the help line.
std::string partials_of(DType dtype) {
  std::string text;
  for (const ReduceOp op :
       {ReduceOp::kSum, ReduceOp::kAvg, ReduceOp::kProduct, ReduceOp::kMin,
        ReduceOp::kMax, ReduceOp::kBand, ReduceOp::kBor, ReduceOp::kBxor}) {
    if (!is_defined(op, dtype)) continue;
    text += (text.empty() ? "" : ", ") + to_string(Placement::partial(op));
  }
  const std::string name(to_string(dtype));
  return text.empty() ? "no partial is defined on " + name
                      : "partials of " + name + " are " + text;
}

}  // namespace

Layout canonical(const Layout& layout, const DeviceMesh& mesh,
                 std::span<const std::int64_t> shape) {
  if (!layout.has_strided() && layout.has_default_order()) return layout;
  Placements placements = layout.placements();
  ShardOrder order = layout.shard_order();
  for (std::size_t d = 0; d < shape.size(); ++d) {
    std::vector<Cut> cuts;
    for (const std::int32_t mesh_dim : layout.cuts(static_cast<int>(d))) {
      cuts.push_back(
          {mesh_dim, mesh.size(mesh_dim), layout[mesh_dim].split_factor()});
    }
    cuts = canonical_cuts(std::move(cuts), shape[d]);
    for (std::size_t i = 0; i < cuts.size(); ++i) {
      const auto at = index(cuts[i].mesh_dim);
      placements[at] = Placement::strided_shard(
          static_cast<int>(d), static_cast<int>(cuts[i].pieces));
      order[at] = static_cast<std::int8_t>(i);
    }
  }
  auto made = Layout::create(std::move(placements), std::move(order));
  if (!made) throw InternalError("a canonical layout is malformed");
  return *std::move(made);
}

Result<void> check_layout(const Layout& layout, const DeviceMesh& mesh,
                          const TensorMeta& meta) {
  if (layout.mesh_ndim() != mesh.ndim()) {
    return fail(ErrorCode::kPlacementCount,
                "`" + to_string(layout) + "` has " +
                    std::to_string(layout.mesh_ndim()) +
                    (layout.mesh_ndim() == 1 ? " placement" : " placements") +
                    ", mesh " + to_string(mesh) + " has " +
                    std::to_string(mesh.ndim()) +
                    (mesh.ndim() == 1 ? " dim" : " dims"),
                "write one placement per mesh dim, outermost first");
  }
  for (const Placement& placement : layout.placements()) {
    if (placement.is_shard() && placement.dim() >= meta.rank()) {
      return fail(ErrorCode::kShardDimOutOfRange,
                  to_string(placement) + " shards a dim that " +
                      to_string(meta) + " does not have",
                  meta.rank() == 0 ? "a scalar is replicated or partial"
                                   : "name a dim between 0 and " +
                                         std::to_string(meta.rank() - 1));
    }
    if (placement.is_strided() && placement.split_factor() > kMostPieces) {
      return fail(ErrorCode::kSplitFactor,
                  to_string(placement) + " splits a dim into more than " +
                      std::to_string(kMostPieces) + " pieces",
                  "give a smaller split factor");
    }
    if (placement.is_partial()) {
      const DType dtype = placement.reduce_dtype().value_or(meta.dtype());
      if (!is_defined(placement.reduce_op(), dtype)) {
        return fail(ErrorCode::kPartialDType,
                    to_string(placement) + " is not defined on " +
                        std::string(to_string(dtype)),
                    partials_of(dtype));
      }
    }
  }
  return nothing_wrong();
}

TensorSpec::TensorSpec() : layout_(Layout::replicated(1)) {}

TensorSpec::TensorSpec(DeviceMesh mesh, Layout layout, TensorMeta meta)
    : mesh_(std::move(mesh)),
      layout_(std::move(layout)),
      meta_(std::move(meta)) {}

Result<TensorSpec> TensorSpec::create(DeviceMesh mesh, const Layout& layout,
                                      TensorMeta meta) {
  SP_CHECK(check_layout(layout, mesh, meta));
  Layout form = canonical(layout, mesh, meta.shape());
  return TensorSpec(std::move(mesh), std::move(form), std::move(meta));
}

Result<TensorSpec> TensorSpec::parse(std::string_view text, DeviceMesh mesh) {
  const std::size_t space = text.find(' ');
  if (space == std::string_view::npos) {
    return fail(ErrorCode::kPlacementSyntax,
                "`" + std::string(text) + "` is not a tensor spec",
                "write it as bf16[8,2048,4096] S(0),R");
  }
  SP_ASSIGN(TensorMeta meta, TensorMeta::parse(text.substr(0, space)));
  SP_ASSIGN(const Layout layout, Layout::parse(text.substr(space + 1)));
  return create(std::move(mesh), layout, std::move(meta));
}

std::string to_string(const TensorSpec& spec) {
  return to_string(spec.meta()) + " " + to_string(spec.layout());
}

}  // namespace shardprop
