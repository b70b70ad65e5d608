#include "execute/compile.h"

#include "base/index.h"
#include "base/try.h"
#include "execute/gathered_parts.h"
#include "execute/local_ops.h"
#include "program/rank_step.h"

#include <shardprop/placement/local_region.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace shardprop::execute {
namespace {

LocalRegion region(const Layout& layout, const RankView& view,
                   const Coordinate& at) {
  return local_region(layout, view.mesh, view.meta.shape(), at);
}

// Checks that kernels for the casts and scales of the reduction exist
// (local_ops.h).
Result<void> check_arithmetic(DType dtype, const StepReduction& reduction,
                              const std::string& where) {
  const DType combined = reduction.dtype;
  if (dtype != combined && !(is_cast(dtype, combined))) {
    return fail(ErrorCode::kReduction,
                where + ": terms of " + std::string(to_string(dtype)) +
                    " cannot be combined in " +
                    std::string(to_string(combined)),
                "combine them in their own dtype, or floats in f32");
  }
  if (reduction.scale != 1 && !is_scalable(dtype)) {
    return fail(
        ErrorCode::kReduction,
        where + ": " + std::string(to_string(dtype)) + " cannot be scaled",
        "average f16 to f64, f8e4m3fn, f8e5m2 or complex numbers");
  }
  return {};
}

// True if the pieces need a buffer, because some piece is not one box of the
// tensor. Error: kPlanStep if the plan has no memory for the buffer.
Result<bool> is_staged(const RedistributeStep& step,
                       const std::vector<PeerCopies>& pieces,
                       const std::string& where) {
  const bool boxes = std::all_of(
      pieces.begin(), pieces.end(),
      [](const PeerCopies& peer) { return peer.copies.size() <= 1; });
  if (!boxes && !step.staged) {
    return broken_step(where, "its pieces need a buffer that is not planned");
  }
  return !boxes;
}

void append(RegionCopies& to, RegionCopies&& more) {
  to.insert(to.end(), std::make_move_iterator(more.begin()),
            std::make_move_iterator(more.end()));
}

Result<void> compile_gather(const RedistributeStep& step, const RankView& view,
                            const StepGroup& group, MoveStep& out) {
  const LocalRegion wanted = region(step.dst, view, view.at);
  if (auto parts = gathered_parts(step, view, group.members)) {
    out.along = parts->dim;
    out.parts = std::move(parts->parts);
    return {};
  }
  std::int64_t received = 0;
  for (std::size_t r = 0; r < group.members.size(); ++r) {
    const LocalRegion shard = region(step.src, view, group.members[r]);
    RegionCopies copies = common_copies(shard, wanted);
    if (numel(copies) != shard.numel()) {
      return broken_step(out.where, "a rank sends what nobody wants");
    }
    received += numel(copies);
    out.chunks.push_back(numel(copies));
    out.receives.push_back({static_cast<std::int64_t>(r), std::move(copies)});
  }
  if (received != wanted.numel()) {
    return broken_step(out.where, "the group does not hold what it gathers");
  }
  SP_ASSIGN(out.staged, is_staged(step, out.receives, out.where));
  if (!out.staged) {
    out.sends.push_back(out.receives[index(out.index)]);
    return {};
  }
  std::int64_t offset = 0;
  for (std::size_t r = 0; r < group.members.size(); ++r) {
    append(
        out.local,
        from_buffer(std::move(out.receives[r].copies),
                    region(step.src, view, group.members[r]).shape(), offset));
    offset += out.chunks[r];
  }
  out.local = merged(std::move(out.local));
  out.receives.clear();
  return {};
}

Result<void> compile_reduce_scatter(const RedistributeStep& step,
                                    const RankView& view,
                                    const StepGroup& group, MoveStep& out) {
  const LocalRegion held = region(step.src, view, view.at);
  std::vector<LocalRegion> parts;
  for (std::size_t r = 0; r < group.members.size(); ++r) {
    parts.push_back(region(step.dst, view, group.members[r]));
    RegionCopies copies = common_copies(held, parts[r]);
    if (numel(copies) != parts[r].numel()) {
      return broken_step(out.where, "a rank is to get what has no terms");
    }
    out.chunks.push_back(numel(copies));
    out.sends.push_back({static_cast<std::int64_t>(r), std::move(copies)});
  }
  SP_ASSIGN(out.staged, is_staged(step, out.sends, out.where));
  out.staged = out.staged || out.reduce_dtype != view.meta.dtype();
  if (!out.staged) return {};
  std::int64_t offset = 0;
  for (std::size_t r = 0; r < parts.size(); ++r) {
    append(out.local,
           to_buffer(std::move(out.sends[r].copies), parts[r].shape(), offset));
    offset += out.chunks[r];
  }
  out.local = merged(std::move(out.local));
  out.sends.clear();
  return {};
}

Result<void> compile_exchange(const RedistributeStep& step,
                              const RankView& view, const StepGroup& group,
                              MoveStep& out) {
  const LocalRegion held = region(step.src, view, view.at);
  const LocalRegion wanted = region(step.dst, view, view.at);
  std::int64_t received = 0;
  for (std::size_t r = 0; r < group.members.size(); ++r) {
    const auto peer = static_cast<std::int64_t>(r);
    const Coordinate& at = group.members[r];
    RegionCopies sent = common_copies(held, region(step.dst, view, at));
    if (!sent.empty()) out.sends.push_back({peer, std::move(sent)});
    RegionCopies got = common_copies(region(step.src, view, at), wanted);
    received += numel(got);
    if (!got.empty()) out.receives.push_back({peer, std::move(got)});
  }
  if (received != wanted.numel()) {
    return broken_step(out.where, "the group does not hold what it exchanges");
  }
  return {};
}

// True if the elements copied are one interval of each dim.
bool is_box(const RegionCopy& copy) {
  return std::all_of(
      copy.axes.begin(), copy.axes.end(), [](const CopyAxis& axis) {
        return std::count(axis.from.begin(), axis.from.end(), 1) == 1 &&
               std::count(axis.from.begin(), axis.from.end(), 0) ==
                   static_cast<std::ptrdiff_t>(axis.from.size()) - 1 &&
               axis.from == axis.to;
      });
}

Result<void> compile_slice(const RedistributeStep& step, const RankView& view,
                           MoveStep& out) {
  const LocalRegion held = region(step.src, view, view.at);
  const LocalRegion wanted = region(step.dst, view, view.at);
  out.neutral = gives_up(step, view.at);
  out.scale = rescaling(step, view.mesh);
  SP_CHECK(check_arithmetic(view.meta.dtype(),
                            {.dtype = view.meta.dtype(), .scale = out.scale},
                            out.where));
  for (const std::int32_t dim : step.mesh_dims) {
    if (step.dst[dim].is_partial()) out.op = step.dst[dim].reduce_op();
  }
  RegionCopies copies = common_copies(held, wanted);
  if (numel(copies) != wanted.numel()) {
    return broken_step(out.where, "a slice of what the rank does not hold");
  }
  if (copies.size() == 1 && is_box(copies.front())) {
    out.slice_start = copies.front().from;
  }
  out.local = merged(std::move(copies));
  return {};
}

// Checks that the terms of other mesh dims do not change in a step. Shards of
// other mesh dims may be written differently, because canonical layouts may
// encode the same shards in another way.
Result<void> check_untouched(const RedistributeStep& step, const RankView& view,
                             const std::string& where) {
  for (std::int32_t dim = 0; dim < view.mesh.ndim(); ++dim) {
    const Placement from = step.src[dim];
    const Placement to = step.dst[dim];
    const auto& dims = step.mesh_dims;
    if (view.mesh.size(dim) > 1 && from != to &&
        (from.is_partial() || to.is_partial()) &&
        std::find(dims.begin(), dims.end(), dim) == dims.end()) {
      return broken_step(where, "terms of mesh dim " + std::to_string(dim) +
                                    " change outside its collective");
    }
  }
  return {};
}

}  // namespace

Result<MoveStep> compile(const RedistributeStep& step, const RankView& view,
                         std::string where) {
  MoveStep out;
  out.kind = step.kind;
  out.where = std::move(where);
  if (step.src.mesh_ndim() != view.mesh.ndim() ||
      step.dst.mesh_ndim() != view.mesh.ndim()) {
    return broken_step(out.where, "its layouts are for another mesh");
  }
  SP_CHECK(check_layout(step.src, view.mesh, view.meta));
  SP_CHECK(check_layout(step.dst, view.mesh, view.meta));
  SP_CHECK(check_untouched(step, view, out.where));
  out.shape = local_shape(step.dst, view.mesh, view.meta.shape(), view.at);
  if (step.kind == CollectiveKind::kSlice) {
    SP_CHECK(compile_slice(step, view, out));
    return out;
  }
  SP_ASSIGN(out.group,
            Group::mesh_dims(view.mesh, std::span(step.mesh_dims.data(),
                                                  step.mesh_dims.size())));
  const StepGroup group = step_group(step, view.mesh, view.at);
  out.index = group.index;
  switch (step.kind) {
    case CollectiveKind::kAllGather:
      SP_CHECK(compile_gather(step, view, group, out));
      return out;
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllReduce: {
      SP_ASSIGN(const StepReduction reduction,
                step_reduction(step, view.mesh, out.where));
      SP_CHECK(check_arithmetic(view.meta.dtype(), reduction, out.where));
      out.op = reduction.op;
      out.reduce_dtype = reduction.dtype;
      out.scale = reduction.scale;
      if (step.kind == CollectiveKind::kReduceScatter) {
        SP_CHECK(compile_reduce_scatter(step, view, group, out));
      } else if (out.shape !=
                 local_shape(step.src, view.mesh, view.meta.shape(), view.at)) {
        return broken_step(out.where, "an all_reduce that changes shapes");
      }
      return out;
    }
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kPermute:
      for (const std::int32_t dim : step.mesh_dims) {
        if (!step.src[dim].is_shard() || !step.dst[dim].is_shard()) {
          return broken_step(out.where,
                             "an exchange of a tensor that is not sharded");
        }
      }
      out.padded = step.padded;
      SP_CHECK(compile_exchange(step, view, group, out));
      return out;
    default:
      return broken_step(out.where, "no redistribution step is a " +
                                        std::string(to_string(step.kind)));
  }
}

namespace {

// Returns the range from the first to the last rank, if the mesh contains all
// ranks between them.
std::optional<Interval> range_of(const DeviceMesh& mesh) {
  if (!mesh.is_strided()) return std::nullopt;
  const Interval range{mesh.rank_at_index(0),
                       mesh.rank_at_index(mesh.size() - 1) + 1};
  if (range.size() != mesh.size()) return std::nullopt;
  return range;
}

// Returns all ranks of either mesh, in ascending order.
Result<Group> ranks_of_both(const DeviceMesh& a, const DeviceMesh& b) {
  const auto in_a = range_of(a);
  const auto in_b = range_of(b);
  if (in_a && in_b && in_a->begin <= in_b->end && in_b->begin <= in_a->end) {
    const std::int64_t begin = std::min(in_a->begin, in_b->begin);
    const std::int64_t end = std::max(in_a->end, in_b->end);
    const MeshDim all[] = {{"ranks", end - begin}};
    SP_ASSIGN(const DeviceMesh mesh, DeviceMesh::create(all, begin));
    return Group::mesh(mesh);
  }
  Group::Ranks ranks;
  for (const DeviceMesh* mesh : {&a, &b}) {
    for (std::int64_t i = 0; i < mesh->size(); ++i) {
      ranks.push_back(mesh->rank_at_index(i));
    }
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return Group::ranks(std::move(ranks));
}

LocalRegion box(const InlineVector<Interval, 4>& piece) {
  std::vector<Intervals> dims;
  dims.reserve(piece.size());
  for (const Interval& run : piece) dims.push_back(Intervals{run});
  return LocalRegion(std::move(dims));
}

std::optional<LocalRegion> region_on(const TensorSpec& spec,
                                     const Layout& layout, std::int64_t rank) {
  const auto at = spec.mesh().coordinate_of(rank);
  if (!at) return std::nullopt;
  return local_region(layout, spec.mesh(), spec.meta().shape(), *at);
}

}  // namespace

Result<MoveStep> compile_sends(const CrossMeshPlan& plan, const TensorSpec& src,
                               const TensorSpec& dst, std::int64_t rank,
                               std::string where) {
  MoveStep out;
  out.kind = CollectiveKind::kSendRecv;
  out.where = std::move(where);
  const auto held = region_on(src, plan.sent_layout, rank);
  const auto wanted = region_on(dst, dst.layout(), rank);
  std::int64_t received = 0;
  if (wanted) out.shape = wanted->shape();
  if (held && wanted) {
    out.local = common_copies(*held, *wanted);
    received = numel(out.local);
    out.local = merged(std::move(out.local));
  }
  if (!plan.transfers.empty()) {
    SP_ASSIGN(out.group, ranks_of_both(src.mesh(), dst.mesh()));
  }
  for (const MeshTransfer& transfer : plan.transfers) {
    const bool sends = transfer.src_rank == rank;
    if (!sends && transfer.dst_rank != rank) continue;
    if (sends ? !held : !wanted) {
      return broken_step(out.where, "a message of a rank outside its mesh");
    }
    const std::int64_t other = sends ? transfer.dst_rank : transfer.src_rank;
    const auto peer = out.group->place_of(other);
    if (!peer) {
      return broken_step(out.where, "a message of a rank outside its mesh");
    }
    PeerCopies message{peer->index, {}};
    for (const auto& piece : transfer.pieces) {
      const LocalRegion part = box(piece);
      RegionCopies copies =
          sends ? common_copies(*held, part) : common_copies(part, *wanted);
      if (numel(copies) != part.numel()) {
        return broken_step(out.where, "a message of what a rank does not hold");
      }
      if (!sends) received += part.numel();
      message.copies.insert(message.copies.end(), copies.begin(), copies.end());
    }
    (sends ? out.sends : out.receives).push_back(std::move(message));
  }
  if (wanted && received != wanted->numel()) {
    return broken_step(out.where, "a rank does not get what it lacks");
  }
  return out;
}

}  // namespace shardprop::execute
