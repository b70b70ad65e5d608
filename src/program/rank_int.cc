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
                    std::int64_t scale, std::int64_t constant) {
  RankInt out;
  out.constant_ = constant;
  if (kind == Kind::kConstant) return out;
  Layout cuts = cuts_of(layout, dim);
  if (cuts.is_replicated() || scale == 0) {
    if (kind == Kind::kLocalSize) out.constant_ += scale * size;
    return out;
  }
  out.kind_ = kind;
  out.scale_ = scale;
  out.size_ = size;
  out.cuts_ = std::move(cuts);
  return out;
}

std::int64_t RankInt::at(const DeviceMesh& mesh, const Coordinate& rank) const {
  if (is_constant()) return constant_;
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
  return constant_ + scale_ * x;
}

std::string to_string(const RankInt& value) {
  if (value.is_constant()) return std::to_string(value.constant_);
  std::string out;
  if (value.scale_ != 1) out += std::to_string(value.scale_) + "*";
  out += value.kind_ == RankInt::Kind::kLocalSize ? "local(" : "offset(";
  out += std::to_string(value.size_) + ", " + to_string(value.cuts_) + ")";
  if (value.constant_ > 0) out += " + " + std::to_string(value.constant_);
  if (value.constant_ < 0) out += " - " + std::to_string(-value.constant_);
  return out;
}

}  // namespace shardprop
