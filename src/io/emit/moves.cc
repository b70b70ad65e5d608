#include "io/emit/moves.h"

#include "base/try.h"
#include "io/emit/group_cuts.h"
#include "io/emit/message_grids.h"
#include "io/emit/regions.h"
#include "io/emit/runs.h"
#include "io/emit/tensor_ops.h"
#include "program/rank_step.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace shardprop::emit {
namespace {

// Returns the dtype in which the backends reduce values of a dtype that they do
// not support.
DType passed_through_in(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return DType::kU8;
    case DType::kI16:
    case DType::kU16:
      return DType::kI32;
    default:
      return dtype;
  }
}

// True if all backends send this dtype; other dtypes are sent as bytes.
bool is_sent(DType dtype) {
  switch (dtype) {
    case DType::kBool:
    case DType::kU8:
    case DType::kI8:
    case DType::kI32:
    case DType::kI64:
    case DType::kF16:
    case DType::kBF16:
    case DType::kF32:
    case DType::kF64:
      return true;
    default:
      return false;
  }
}

// Returns the name of the reduction. Bool terms are reduced as 0 and 1.
std::string_view reduce_name(ReduceOp op, DType dtype) {
  if (dtype == DType::kBool) {
    switch (op) {
      case ReduceOp::kSum:
      case ReduceOp::kMax:
      case ReduceOp::kBor:
        return "max";
      case ReduceOp::kProduct:
      case ReduceOp::kMin:
      case ReduceOp::kBand:
        return "min";
      default:
        break;
    }
  }
  // Gloo and MPI have no average: the sum is scaled.
  return op == ReduceOp::kAvg ? "sum" : to_string(op);
}

}  // namespace

std::string group_name(const DeviceMesh& mesh, const DimIndices& mesh_dims) {
  std::string name = "shardprop";
  for (const std::int32_t dim : mesh_dims) name += "_" + mesh.name(dim);
  return name;
}

LocalRegion Moves::region(const Layout& layout, const Coordinate& at) const {
  return local_region(layout, mesh_, whole_->shape(), at);
}

TorchId Moves::communicate(const std::string& op, TorchArguments args,
                           const DimIndices& mesh_dims, TensorMeta meta) {
  args.emplace_back("group_name", Argument(group_name(mesh_, mesh_dims)));
  const TorchId started =
      graph_.op("_c10d_functional." + op + ".default", std::move(args), meta);
  graph_.note_started();
  return graph_.op("_c10d_functional.wait_tensor.default",
                   {{"tensor", started}}, std::move(meta));
}

TorchId Moves::send(const std::string& op, TorchId x, TorchArguments args,
                    const DimIndices& mesh_dims, Dims shape) {
  const DType dtype = graph_.dtype(x);
  x = contiguous(graph_, x);
  DType sent = dtype;
  if (!is_sent(dtype)) {
    x = as_bytes(graph_, x);
    sent = DType::kU8;
    shape.push_back(graph_.shape(x).back());
  }
  args.insert(args.begin(), {"input", x});
  x = communicate(op, std::move(args), mesh_dims,
                  dense(std::move(shape), sent));
  return sent == dtype ? x : from_bytes(graph_, x, dtype);
}

TorchId Moves::flat(TorchId x) {
  return reshape(graph_, x, Dims{graph_.meta(x).numel()});
}

// Casts to the dtype of the messages, reduces, and casts back.
TorchId Moves::reduced(const std::string& op, const CollectiveStep& step,
                       TorchId x, ReduceOp by, Dims shape, std::int64_t ranks) {
  const DType own = graph_.dtype(x);
  const DType sent = passed_through_in(step.dtype);
  x = contiguous(graph_, cast(graph_, x, sent));
  TorchArguments args = {
      {"input", x},
      {"reduce_op", Argument(std::string(reduce_name(by, step.dtype)))}};
  if (op != "all_reduce") args.emplace_back("group_size", integer(ranks));
  x = communicate(op, std::move(args), step.mesh_dims,
                  dense(std::move(shape), sent));
  if (by == ReduceOp::kAvg) {
    x = scaled(graph_, x, 1 / static_cast<double>(ranks));
  }
  return sent == own ? x : cast(graph_, x, own);
}

TorchId Moves::all_reduce(const CollectiveStep& step, TorchId x, ReduceOp op,
                          double scale) {
  std::int64_t ranks = 1;
  for (const std::int32_t dim : step.mesh_dims) ranks *= mesh_.size(dim);
  const Dims shape = graph_.shape(x);
  return scaled(graph_, reduced("all_reduce", step, x, op, shape, ranks),
                scale);
}

TorchId Moves::reduce_scatter(const CollectiveStep& step, TorchId x,
                              ReduceOp op) {
  std::int64_t ranks = 1;
  for (const std::int32_t dim : step.mesh_dims) ranks *= mesh_.size(dim);
  Dims shape = graph_.shape(x);
  shape[0] /= ranks;
  return reduced("reduce_scatter_tensor", step, x, op, std::move(shape), ranks);
}

TorchId Moves::all_gather(const CollectiveStep& step, TorchId x) {
  std::int64_t ranks = 1;
  for (const std::int32_t dim : step.mesh_dims) ranks *= mesh_.size(dim);
  Dims shape = graph_.shape(x);
  shape[0] *= ranks;
  return send("all_gather_into_tensor", x, {{"group_size", integer(ranks)}},
              step.mesh_dims, std::move(shape));
}

namespace {

// [n1, .., nk, L0, L1, ..] -> the tensor with the parts of each dim at their
// positions.
TorchId join_chunks(TorchGraph& graph, TorchId x, const GroupCuts& cuts) {
  if (!cuts.is_rows()) {
    Dims split(cuts.ranks.begin(), cuts.ranks.end());
    std::vector<std::int64_t> order;
    Dims joined;
    for (std::size_t d = 0; d < cuts.dims.size(); ++d) {
      const GroupCuts::Dim& dim = cuts.dims[d];
      split.push_back(dim.chunk);
      for (const std::size_t axis : dim.axes) {
        order.push_back(static_cast<std::int64_t>(axis));
      }
      order.push_back(static_cast<std::int64_t>(cuts.ranks.size() + d));
      joined.push_back(dim.padded());
    }
    x = reshape(graph, x, std::move(split));
    x = reshape(graph, permute(graph, x, order), std::move(joined));
  }
  for (std::size_t d = 0; d < cuts.dims.size(); ++d) {
    x = rearranged(graph, x, static_cast<int>(d), cuts.dims[d].joined());
  }
  return x;
}

// The inverse of `join_chunks`: concatenates the chunks for the ranks of the
// group.
TorchId part_chunks(TorchGraph& graph, TorchId x, const GroupCuts& cuts) {
  for (std::size_t d = 0; d < cuts.dims.size(); ++d) {
    const auto at = static_cast<int>(d);
    x = padded(graph, x, at, cuts.dims[d].padded());
    x = rearranged(graph, x, at, cuts.dims[d].parted());
  }
  if (cuts.is_rows()) return x;
  Dims split;
  std::vector<std::int64_t> order(cuts.ranks.size());
  std::vector<std::int64_t> rest;
  Dims rows;
  for (const GroupCuts::Dim& dim : cuts.dims) {
    for (const std::size_t axis : dim.axes) {
      order[axis] = static_cast<std::int64_t>(split.size());
      split.push_back(cuts.ranks[axis]);
    }
    rest.push_back(static_cast<std::int64_t>(split.size()));
    split.push_back(dim.chunk);
    rows.push_back(dim.chunk);
  }
  order.insert(order.end(), rest.begin(), rest.end());
  rows[0] *= cuts.group_size();
  x = permute(graph, reshape(graph, x, std::move(split)), order);
  return reshape(graph, x, std::move(rows));
}

tl::unexpected<Error> not_in_parts(const RedistributeStep& step) {
  return broken_step(
      to_string(step.src) + " -> " + to_string(step.dst),
      "its ranks do not hold a part each of what it gathers or scatters");
}

}  // namespace

Result<TorchId> Moves::gather(const RedistributeStep& step, TorchId x) {
  const auto cuts =
      group_cuts(step.src, step.dst, step.mesh_dims, mesh_, *whole_, at_);
  if (!cuts) return not_in_parts(step);
  for (std::size_t d = 0; d < cuts->dims.size(); ++d) {
    x = padded(graph_, x, static_cast<int>(d), cuts->dims[d].chunk);
  }
  return join_chunks(graph_, all_gather(step, x), *cuts);
}

Result<TorchId> Moves::reduce_scatter(const RedistributeStep& step, TorchId x) {
  SP_ASSIGN(const StepReduction by,
            step_reduction(step, mesh_,
                           to_string(step.src) + " -> " + to_string(step.dst)));
  const auto cuts =
      group_cuts(step.dst, step.src, step.mesh_dims, mesh_, *whole_, at_);
  if (!cuts) return not_in_parts(step);
  x = part_chunks(graph_, x, *cuts);
  Dims shape;
  for (const GroupCuts::Dim& dim : cuts->dims) shape.push_back(dim.chunk);
  x = reduced("reduce_scatter_tensor", step, x, by.op, std::move(shape),
              cuts->group_size());
  for (std::size_t d = 0; d < cuts->dims.size(); ++d) {
    x = emit::slice(graph_, x, static_cast<int>(d), 0, cuts->dims[d].own);
  }
  return scaled(graph_, x, by.scale);
}

// Sends messages of equal size: one split, one collective, one cat.
Result<TorchId> Moves::exchange(const RedistributeStep& step, TorchId x) {
  if (step.kind != CollectiveKind::kAllToAll) return exchange_pieces(step, x);
  const auto cuts =
      group_exchange(step.src, step.dst, step.mesh_dims, mesh_, *whole_, at_);
  if (!cuts) return exchange_pieces(step, x);
  x = part_chunks(graph_, x, cuts->sent);
  const std::int64_t ranks = cuts->sent.group_size();
  const std::vector<std::int64_t> splits(static_cast<std::size_t>(ranks),
                                         graph_.shape(x)[0] / ranks);
  x = send("all_to_all_single", x,
           {{"output_split_sizes", Argument(splits)},
            {"input_split_sizes", Argument(splits)}},
           step.mesh_dims, graph_.shape(x));
  return join_chunks(graph_, x, cuts->received);
}

// Sends flat messages that contain only the elements of their receiver.
// Permutations and layouts that shard a common tensor dim use it. A message has
// its elements in the order of the receiver.
Result<TorchId> Moves::exchange_pieces(const RedistributeStep& step,
                                       TorchId x) {
  const StepGroup group = step_group(step, mesh_, at_);
  const LocalRegion held = region(step.src, at_);
  const LocalRegion wanted = region(step.dst, at_);
  std::vector<std::int64_t> send_sizes;
  std::vector<std::int64_t> receive_sizes;
  std::vector<Message> sent;
  std::vector<Message> received;
  for (const Coordinate& at : group.members) {
    const LocalRegion out = common_part(held, region(step.dst, at));
    send_sizes.push_back(out.numel());
    if (!out.empty()) sent.push_back(message(held, out));
    const LocalRegion in = common_part(region(step.src, at), wanted);
    receive_sizes.push_back(in.numel());
    if (!in.empty()) received.push_back(message(wanted, in));
  }
  std::vector<TorchId> packed;
  for (const MessageGrid& grid : message_grids(sent)) {
    packed.push_back(pack(graph_, x, grid));
  }
  const TorchId buffer = packed.empty() ? emit::slice(graph_, flat(x), 0, 0, 0)
                         : packed.size() == 1
                             ? packed[0]
                             : cat(graph_, std::move(packed), 0);
  const std::int64_t all = std::accumulate(
      receive_sizes.begin(), receive_sizes.end(), std::int64_t{0});
  const TorchId got = send("all_to_all_single", buffer,
                           {{"output_split_sizes", Argument(receive_sizes)},
                            {"input_split_sizes", Argument(send_sizes)}},
                           step.mesh_dims, Dims{all});
  return unpack(graph_, got, message_grids(received), wanted.shape());
}

Result<TorchId> Moves::slice(const RedistributeStep& step, TorchId x) {
  const LocalRegion held = region(step.src, at_);
  const LocalRegion wanted = region(step.dst, at_);
  if (!gives_up(step, at_)) {
    return scaled(graph_, select(graph_, x, held, wanted),
                  rescaling(step, mesh_));
  }
  const bool product = std::any_of(
      step.mesh_dims.begin(), step.mesh_dims.end(), [&](std::int32_t dim) {
        return step.dst[dim].is_partial() &&
               step.dst[dim].reduce_op() == ReduceOp::kProduct;
      });
  return filled(graph_, wanted.shape(), graph_.dtype(x), product ? 1 : 0,
                device_);
}

Result<TorchId> Moves::run(const RedistributeStep& step,
                           const TensorMeta& whole, TorchId x) {
  whole_ = &whole;
  switch (step.kind) {
    case CollectiveKind::kSlice:
      return slice(step, x);
    case CollectiveKind::kAllGather:
      return gather(step, x);
    case CollectiveKind::kReduceScatter:
      return reduce_scatter(step, x);
    case CollectiveKind::kAllReduce: {
      SP_ASSIGN(
          const StepReduction by,
          step_reduction(step, mesh_,
                         to_string(step.src) + " -> " + to_string(step.dst)));
      return all_reduce(step, x, by.op, by.scale);
    }
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kPermute:
      return exchange(step, x);
    default:
      return broken_step(
          to_string(step.src) + " -> " + to_string(step.dst),
          "no redistribution step is a " + std::string(to_string(step.kind)));
  }
}

}  // namespace shardprop::emit
