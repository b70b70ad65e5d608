#include <shardprop/program/rank_int.h>

#include <shardprop/base/error.h>
#include <shardprop/placement/local_region.h>

#include <string_view>
#include <utility>

namespace shardprop {
namespace {

// Returns a layout of dim 0 alone that shards it as `layout` shards dim `dim`.
Layout cuts_of(const Layout& layout, int dim) {
  Placements placements(static_cast<std::size_t>(layout.mesh_ndim()));
  ShardOrder order(placements.size());
  for (std::size_t m = 0; m < placements.size(); ++m) {
    const Placement placement = layout.placements()[m];
    if (!placement.is_shard() || placement.dim() != dim) continue;
    placements[m] = Placement::strided_shard(0, placement.split_factor());
    order[m] = layout.shard_order()[m];
  }
  auto cuts = Layout::create(std::move(placements), std::move(order));
  if (!cuts) throw InternalError("the cuts of a dim are not a layout");
  return *std::move(cuts);
}

}  // namespace

RankInt RankInt::of(Kind kind, std::int64_t size, const Layout& layout, int dim,
                    const Formula& formula) {
  if (kind == Kind::kConstant) return formula.constant;
  Layout cuts = cuts_of(layout, dim);
  if (cuts.is_replicated() || formula.scale == 0) {
    return formula.of(kind == Kind::kLocalSize ? size : 0);
  }
  RankInt out;
  out.kind_ = kind;
  out.formula_ = formula;
  out.size_ = size;
  out.cuts_ = std::move(cuts);
  return out;
}

std::int64_t RankInt::at(const DeviceMesh& mesh, const Coordinate& rank) const {
  if (is_constant()) return constant();
  const Intervals held = local_intervals(cuts_, mesh, 0, size_, rank);
  std::int64_t x = 0;
  if (kind_ == Kind::kLocalSize) {
    for (const Interval& piece : held) x += piece.size();
  } else {
    if (held.size() > 1) {
      throw InternalError("an offset is asked of a dim held in pieces");
    }
    x = held.empty() ? size_ : held[0].begin;
  }
  return formula_.of(x);
}

std::string to_string(const RankInt& value) {
  if (value.is_constant()) return std::to_string(value.constant());
  const RankInt::Formula& formula = value.formula_;
  std::string out;
  if (formula.scale != 1) out += std::to_string(formula.scale) + "*";
  out += value.kind_ == RankInt::Kind::kLocalSize ? "local(" : "offset(";
  out += std::to_string(value.size_) + ", " + to_string(value.cuts_) + ")";
  if (formula.divisor != 1) {
    out += (formula.rounds_up ? "/^" : "/") + std::to_string(formula.divisor);
  }
  if (formula.constant > 0) out += " + " + std::to_string(formula.constant);
  if (formula.constant < 0) out += " - " + std::to_string(-formula.constant);
  return out;
}

}  // namespace shardprop
