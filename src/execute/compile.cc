#include "execute/compile.h"

#include "base/try.h"
#include "execute/local_ops.h"

#include <shardprop/placement/local_region.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

namespace shardprop::execute {
namespace {

auto broken(const std::string& where, const std::string& what) {
  return fail(ErrorCode::kPlanStep, where + ": " + what,
              "run plans as the planner made them");
}

// The group of one rank over the mesh dims of a step.
struct StepGroup {
  std::vector<Coordinate> members;  // in the order of the group
  std::int64_t index = 0;           // of this rank
};

StepGroup group_of(const RedistributeStep& step, const RankView& view) {
  StepGroup group;
  const RankGroup ranks = view.mesh.group(
      std::span(step.mesh_dims.data(), step.mesh_dims.size()), view.at);
  const std::int64_t own = view.mesh.rank_at(view.at);
  for (std::int64_t i = 0; i < ranks.size(); ++i) {
    const std::int64_t rank = ranks.rank(i);
    if (rank == own) group.index = i;
    group.members.push_back(*view.mesh.coordinate_of(rank));
  }
  return group;
}

LocalRegion region(const Layout& layout, const RankView& view,
                   const Coordinate& at) {
  return local_region(layout, view.mesh, view.meta.shape(), at);
}

// What the terms of the step's mesh dims are reduced by. Sum beside avg is one
// sum, scaled once.
struct Reduction {
  ReduceOp op = ReduceOp::kSum;
  DType dtype = DType::kF32;
  double scale = 1;
};

Result<Reduction> reduction_of(const RedistributeStep& step,
                               const RankView& view, const std::string& where) {
  std::optional<Placement> term;
  std::int64_t averaged = 1;
  bool all_averaged = true;
  for (const std::int32_t dim : step.mesh_dims) {
    const Placement placement = step.src[dim];
    if (!placement.is_partial()) {
      return broken(where, "mesh dim " + std::to_string(dim) + " of `" +
                               to_string(step.src) + "` holds no terms");
    }
    const bool avg = placement.reduce_op() == ReduceOp::kAvg;
    if (avg) averaged *= view.mesh.size(dim);
    all_averaged = all_averaged && avg;
    if (!term || !avg) term = placement;
  }
  if (!term) return broken(where, "it reduces over no mesh dim");
  Reduction made;
  made.op = term->reduce_op();
  made.dtype = term->reduce_dtype().value_or(view.meta.dtype());
  if (!all_averaged) made.scale = 1 / static_cast<double>(averaged);
  return made;
}

// What casts and scales there are (local_ops.h).
Result<void> check_arithmetic(DType dtype, const Reduction& reduction,
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

// Whether shards leave tensor dims that none come to: then every rank sends
// every other one a piece, in messages of one size.
bool deals_equal_pieces(const RedistributeStep& step) {
  if (step.src.has_strided() || step.dst.has_strided()) return false;
  std::set<int> left;
  std::set<int> cut;
  for (const std::int32_t dim : step.mesh_dims) {
    left.insert(step.src[dim].dim());
    cut.insert(step.dst[dim].dim());
  }
  return std::none_of(left.begin(), left.end(),
                      [&](int dim) { return cut.contains(dim); });
}

bool single_boxes(const std::vector<PeerCopies>& peers) {
  return std::all_of(peers.begin(), peers.end(), [](const PeerCopies& peer) {
    return peer.copies.size() <= 1;
  });
}

void append(RegionCopies& to, RegionCopies&& more) {
  to.insert(to.end(), std::make_move_iterator(more.begin()),
            std::make_move_iterator(more.end()));
}

Result<void> compile_gather(const RedistributeStep& step, const RankView& view,
                            const StepGroup& group, ProgramStep& out) {
  const LocalRegion wanted = region(step.dst, view, view.at);
  std::vector<LocalRegion> shards;
  std::int64_t received = 0;
  for (std::size_t r = 0; r < group.members.size(); ++r) {
    shards.push_back(region(step.src, view, group.members[r]));
    RegionCopies copies = common_copies(shards[r], wanted);
    if (numel(copies) != shards[r].numel()) {
      return broken(out.where, "a rank sends what nobody wants");
    }
    received += numel(copies);
    out.chunks.push_back(numel(copies));
    out.receives.push_back({static_cast<std::int64_t>(r), std::move(copies)});
  }
  if (received != wanted.numel()) {
    return broken(out.where, "the group does not hold what it gathers");
  }
  out.staged = !single_boxes(out.receives);
  if (!out.staged) {
    out.sends.push_back(out.receives[static_cast<std::size_t>(out.index)]);
    return {};
  }
  std::int64_t offset = 0;
  for (std::size_t r = 0; r < shards.size(); ++r) {
    append(out.local, from_buffer(std::move(out.receives[r].copies),
                                  shards[r].shape(), offset));
    offset += out.chunks[r];
  }
  out.local = merged(std::move(out.local));
  out.receives.clear();
  return {};
}

Result<void> compile_reduce_scatter(const RedistributeStep& step,
                                    const RankView& view,
                                    const StepGroup& group, ProgramStep& out) {
  const LocalRegion held = region(step.src, view, view.at);
  std::vector<LocalRegion> parts;
  for (std::size_t r = 0; r < group.members.size(); ++r) {
    parts.push_back(region(step.dst, view, group.members[r]));
    RegionCopies copies = common_copies(held, parts[r]);
    if (numel(copies) != parts[r].numel()) {
      return broken(out.where, "a rank is to get what has no terms");
    }
    out.chunks.push_back(numel(copies));
    out.sends.push_back({static_cast<std::int64_t>(r), std::move(copies)});
  }
  out.staged =
      out.reduce_dtype != view.meta.dtype() || !single_boxes(out.sends);
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
                              ProgramStep& out) {
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
    return broken(out.where, "the group does not hold what it exchanges");
  }
  return {};
}

// R to P: whether this rank gives up its values for the op's neutral element,
// as all but the first do where the op would count them again.
bool gives_up(const RedistributeStep& step, const RankView& view) {
  for (const std::int32_t dim : step.mesh_dims) {
    if (!step.src[dim].is_replicate() || !step.dst[dim].is_partial()) continue;
    const ReduceOp op = step.dst[dim].reduce_op();
    const bool counts = op == ReduceOp::kSum || op == ReduceOp::kProduct ||
                        op == ReduceOp::kBxor;
    if (counts && view.at[static_cast<std::size_t>(dim)] != 0) return true;
  }
  return false;
}

// P(sum) <-> P(avg): the terms of an average are as many times the larger.
double rescaling(const RedistributeStep& step, const RankView& view) {
  double scale = 1;
  for (const std::int32_t dim : step.mesh_dims) {
    const Placement from = step.src[dim];
    const Placement to = step.dst[dim];
    if (!from.is_partial() || !to.is_partial() || from == to) continue;
    const auto ranks = static_cast<double>(view.mesh.size(dim));
    scale *= to.reduce_op() == ReduceOp::kAvg ? ranks : 1 / ranks;
  }
  return scale;
}

// Whether the elements copied are one interval of each dim.
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
                           ProgramStep& out) {
  const LocalRegion held = region(step.src, view, view.at);
  const LocalRegion wanted = region(step.dst, view, view.at);
  out.neutral = gives_up(step, view);
  out.scale = rescaling(step, view);
  SP_CHECK(check_arithmetic(view.meta.dtype(),
                            {.dtype = view.meta.dtype(), .scale = out.scale},
                            out.where));
  for (const std::int32_t dim : step.mesh_dims) {
    if (step.dst[dim].is_partial()) out.op = step.dst[dim].reduce_op();
  }
  RegionCopies copies = common_copies(held, wanted);
  if (numel(copies) != wanted.numel()) {
    return broken(out.where, "a slice of what the rank does not hold");
  }
  if (copies.size() == 1 && is_box(copies.front())) {
    out.slice_start = copies.front().from;
  }
  out.local = merged(std::move(copies));
  return {};
}

// Terms of other mesh dims pass through a step as they are. Shards of other
// dims may be written anew, where canonical layouts say the same otherwise.
Result<void> check_untouched(const RedistributeStep& step, const RankView& view,
                             const std::string& where) {
  for (std::int32_t dim = 0; dim < view.mesh.ndim(); ++dim) {
    const Placement from = step.src[dim];
    const Placement to = step.dst[dim];
    const auto& dims = step.mesh_dims;
    if (view.mesh.size(dim) > 1 && from != to &&
        (from.is_partial() || to.is_partial()) &&
        std::find(dims.begin(), dims.end(), dim) == dims.end()) {
      return broken(where, "terms of mesh dim " + std::to_string(dim) +
                               " change outside its collective");
    }
  }
  return {};
}

}  // namespace

Result<ProgramStep> compile(const RedistributeStep& step, const RankView& view,
                            std::string where) {
  ProgramStep out;
  out.kind = step.collective;
  out.where = std::move(where);
  if (step.src.mesh_ndim() != view.mesh.ndim() ||
      step.dst.mesh_ndim() != view.mesh.ndim()) {
    return broken(out.where, "its layouts are for another mesh");
  }
  SP_CHECK(check_layout(step.src, view.mesh, view.meta));
  SP_CHECK(check_layout(step.dst, view.mesh, view.meta));
  SP_CHECK(check_untouched(step, view, out.where));
  out.shape = local_shape(step.dst, view.mesh, view.meta.shape(), view.at);
  if (step.collective == CollectiveKind::kSlice) {
    SP_CHECK(compile_slice(step, view, out));
    return out;
  }
  SP_ASSIGN(out.group,
            Group::mesh_dims(view.mesh, std::span(step.mesh_dims.data(),
                                                  step.mesh_dims.size())));
  const StepGroup group = group_of(step, view);
  out.index = group.index;
  switch (step.collective) {
    case CollectiveKind::kAllGather:
      SP_CHECK(compile_gather(step, view, group, out));
      return out;
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllReduce: {
      SP_ASSIGN(const Reduction reduction, reduction_of(step, view, out.where));
      SP_CHECK(check_arithmetic(view.meta.dtype(), reduction, out.where));
      out.op = reduction.op;
      out.reduce_dtype = reduction.dtype;
      out.scale = reduction.scale;
      if (step.collective == CollectiveKind::kReduceScatter) {
        SP_CHECK(compile_reduce_scatter(step, view, group, out));
      } else if (out.shape !=
                 local_shape(step.src, view.mesh, view.meta.shape(), view.at)) {
        return broken(out.where, "an all_reduce that changes shapes");
      }
      return out;
    }
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kPermute:
      for (const std::int32_t dim : step.mesh_dims) {
        if (!step.src[dim].is_shard() || !step.dst[dim].is_shard()) {
          return broken(out.where, "an exchange of a tensor that is not sharded");
        }
      }
      out.padded = step.collective == CollectiveKind::kAllToAll &&
                   deals_equal_pieces(step);
      SP_CHECK(compile_exchange(step, view, group, out));
      return out;
    default:
      return broken(out.where, "no redistribution step is a " +
                                   std::string(to_string(step.collective)));
  }
}

namespace {

// Index in the group of every rank of either mesh.
Group::Ranks ranks_of_both(const DeviceMesh& a, const DeviceMesh& b) {
  Group::Ranks ranks;
  for (const DeviceMesh* mesh : {&a, &b}) {
    for (std::int64_t i = 0; i < mesh->size(); ++i) {
      ranks.push_back(mesh->rank_at_index(i));
    }
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
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

Result<ProgramStep> compile_sends(const CrossMeshPlan& plan,
                                  const TensorSpec& src, const TensorSpec& dst,
                                  std::int64_t rank, std::string where) {
  ProgramStep out;
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
  const Group::Ranks ranks = ranks_of_both(src.mesh(), dst.mesh());
  const auto index_of = [&](std::int64_t of) {
    return std::lower_bound(ranks.begin(), ranks.end(), of) - ranks.begin();
  };
  for (const MeshTransfer& transfer : plan.transfers) {
    const bool sends = transfer.src_rank == rank;
    if (!sends && transfer.dst_rank != rank) continue;
    if (sends ? !held : !wanted) {
      return broken(out.where, "a message of a rank outside its mesh");
    }
    const std::int64_t other = sends ? transfer.dst_rank : transfer.src_rank;
    PeerCopies message{index_of(other), {}};
    for (const auto& piece : transfer.pieces) {
      const LocalRegion part = box(piece);
      RegionCopies copies =
          sends ? common_copies(*held, part) : common_copies(part, *wanted);
      if (numel(copies) != part.numel()) {
        return broken(out.where, "a message of what a rank does not hold");
      }
      if (!sends) received += part.numel();
      message.copies.insert(message.copies.end(), copies.begin(), copies.end());
    }
    (sends ? out.sends : out.receives).push_back(std::move(message));
  }
  if (wanted && received != wanted->numel()) {
    return broken(out.where, "a rank does not get what it lacks");
  }
  if (!plan.transfers.empty()) {
    SP_ASSIGN(out.group, Group::ranks(ranks));
  }
  return out;
}

}  // namespace shardprop::execute
