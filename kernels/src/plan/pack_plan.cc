#include "pack_plan.h"

#include <algorithm>
#include <span>

#include "message.h"
#include "overlap.h"

namespace shardprop::kernels {
namespace {

constexpr const char* kChunkCat = "chunk_cat";
constexpr const char* kSplit = "split_with_sizes_copy";

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return a / b + (a % b != 0);
}

Status check_same_dtype(const char* op, const char* list,
                        std::span<const Operand> operands) {
  for (std::size_t i = 1; i < operands.size(); ++i) {
    if (operands[i].dtype != operands[0].dtype) {
      return invalid(op, list, "[", i, "] is ", to_string(operands[i].dtype),
                     ", ", list, "[0] is ", to_string(operands[0].dtype));
    }
  }
  return {};
}

// Returns the dim counted from the front, or -1 if it is out of range.
std::int64_t wrap(std::int64_t dim, int rank) {
  if (dim < -rank || dim >= rank) return -1;
  return dim < 0 ? dim + rank : dim;
}

Status check_chunk_cat_tensors(const ChunkCatArgs& args,
                               std::vector<Operand>* tensors) {
  if (args.num_chunks < 1) {
    return invalid(kChunkCat, "num_chunks is ", args.num_chunks,
                   ", must be positive");
  }
  if (args.tensors.empty()) {
    return invalid(kChunkCat, "the list of tensors is empty");
  }
  tensors->resize(args.tensors.size());
  for (std::size_t i = 0; i < args.tensors.size(); ++i) {
    Operand& tensor = (*tensors)[i];
    const OperandName name{"tensors", static_cast<std::int64_t>(i)};
    if (Status status = make_operand(kChunkCat, name, args.tensors[i], &tensor);
        !status.ok()) {
      return status;
    }
    if (tensor.rank == 0) {
      return invalid(kChunkCat, name.str(), " has no dims to cut");
    }
    if (tensor.count() == 0) {
      return invalid(kChunkCat, name.str(), " of sizes ", tensor.shape(),
                     " is empty");
    }
  }
  return check_same_dtype(kChunkCat, "tensors", *tensors);
}

// Finds the common shard dim of all tensors, by PyTorch's rules.
Status common_dim(const ChunkCatArgs& args, std::span<const Operand> tensors,
                  int* dim) {
  const bool same_rank = std::all_of(
      tensors.begin(), tensors.end(),
      [&](const Operand& tensor) { return tensor.rank == tensors[0].rank; });
  std::int64_t wrapped = args.dim;
  if (same_rank) {
    wrapped = wrap(args.dim, tensors[0].rank);
    if (wrapped < 0) {
      return invalid(kChunkCat, "dim ", args.dim, " is out of range for ",
                     tensors[0].rank, "-D tensors");
    }
  } else if (args.dim < 0) {
    return invalid(kChunkCat, "dim ", args.dim,
                   " is negative, but the tensors differ in ndim");
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (wrapped >= tensors[i].rank) {
      return invalid(kChunkCat, "dim ", args.dim,
                     " is out of range for tensors[", i, "] of sizes ",
                     tensors[i].shape());
    }
    for (int d = 0; d < wrapped; ++d) {
      if (tensors[i].sizes[d] != tensors[0].sizes[d]) {
        return invalid(kChunkCat, "tensors[", i, "] has size ",
                       tensors[i].sizes[d], " in dim ", d, ", tensors[0] has ",
                       tensors[0].sizes[d]);
      }
    }
  }
  *dim = static_cast<int>(wrapped);
  return {};
}

// Appends one item; its columns follow the columns of the earlier items.
Status add_item(const char* op, OperandName name, const Operand& tensor,
                std::int64_t dim, std::int64_t* columns, PackPlan* plan) {
  const int at = static_cast<int>(dim);
  PackItem item{&tensor, at, ceil_div(tensor.sizes[at], plan->num_chunks),
                *columns};
  std::int64_t width = item.chunk * item.trailing();
  if (plan->sharded) {
    for (int d = 0; d < at; ++d) width *= tensor.sizes[d];
  }
  if (__builtin_add_overflow(*columns, width, columns)) {
    return invalid(op, name.str(), " makes the packed rows too long");
  }
  plan->items.push_back(item);
  return {};
}

Status check_shard_dims(const char* op, const char* list,
                        std::span<const std::int64_t> shard_dims,
                        std::span<const Operand> tensors) {
  if (shard_dims.size() != tensors.size()) {
    return invalid(op, shard_dims.size(), " shard_dims for ", tensors.size(),
                   " ", list);
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (shard_dims[i] < 0 || shard_dims[i] >= tensors[i].rank) {
      return invalid(op, "shard_dims[", i, "] is ", shard_dims[i],
                     ", out of range for ", list, "[", i, "] of sizes ",
                     tensors[i].shape());
    }
  }
  return {};
}

enum class Direction { kPack, kUnpack };

// A range of chunks of an item: `chunks` chunks from `first_chunk` on, each
// with `rows` rows of the shard dim from `first_row` on.
struct ChunkRange {
  std::int64_t first_chunk;
  std::int64_t chunks;
  std::int64_t first_row;
  std::int64_t rows;
  bool zeros;
};

void append_range(const PackPlan& plan, const PackItem& item,
                  Direction direction, const ChunkRange& range,
                  BoxList* boxes) {
  if (range.chunks <= 0 || range.rows <= 0) return;
  const Operand& tensor = *item.tensor;
  const std::int64_t cut_stride = tensor.strides[item.dim];
  const std::int64_t row_width = plan.column_stride() * item.trailing();
  std::byte* packed = plan.packed.data + item.column * plan.column_stride() +
                      range.first_chunk * plan.chunk_stride() +
                      range.first_row * row_width;
  // Padding has no address in the tensor, so none is computed.
  std::byte* unpacked =
      range.zeros
          ? nullptr
          : tensor.data +
                (range.first_chunk * item.chunk + range.first_row) * cut_stride;
  Box box;
  const bool pack = direction == Direction::kPack;
  box.dst = pack ? packed : unpacked;
  box.src = pack ? unpacked : packed;
  box.rank = 0;
  const auto add = [&](std::int64_t size, std::int64_t packed_stride,
                       std::int64_t tensor_stride) {
    if (range.zeros) tensor_stride = 0;
    box.add(size, pack ? packed_stride : tensor_stride,
            pack ? tensor_stride : packed_stride);
  };
  std::int64_t inner = row_width;
  std::array<std::int64_t, kMaxDims> packed_strides;
  if (plan.sharded) {
    inner *= item.chunk;
    for (int d = item.dim - 1; d >= 0; --d) {
      packed_strides[d] = inner;
      inner *= tensor.sizes[d];
    }
  } else {
    std::copy_n(plan.packed.strides.begin(), item.dim, packed_strides.begin());
  }
  inner = plan.column_stride();
  for (int d = tensor.rank - 1; d > item.dim; --d) {
    packed_strides[d] = inner;
    inner *= tensor.sizes[d];
  }
  for (int d = 0; d < item.dim; ++d) {
    add(tensor.sizes[d], packed_strides[d], tensor.strides[d]);
  }
  add(range.chunks, plan.chunk_stride(), item.chunk * cut_stride);
  add(range.rows, row_width, cut_stride);
  for (int d = item.dim + 1; d < tensor.rank; ++d) {
    add(tensor.sizes[d], packed_strides[d], tensor.strides[d]);
  }
  simplify(box);
  boxes->push_back(box);
}

void append_boxes(const PackPlan& plan, const PackItem& item,
                  Direction direction, BoxList* boxes) {
  const std::int64_t size = item.tensor->sizes[item.dim];
  const std::int64_t full = size / item.chunk;
  const std::int64_t rest = size % item.chunk;
  const auto append = [&](const ChunkRange& range) {
    append_range(plan, item, direction, range, boxes);
  };
  append({0, full, 0, item.chunk, false});
  if (rest > 0) append({full, 1, 0, rest, false});
  if (direction == Direction::kUnpack) return;
  const std::int64_t started = full + (rest > 0 ? 1 : 0);
  if (rest > 0) append({full, 1, rest, item.chunk - rest, true});
  append({started, plan.num_chunks - started, 0, item.chunk, true});
}

}  // namespace

std::int64_t PackItem::trailing() const {
  std::int64_t product = 1;
  for (int d = dim + 1; d < tensor->rank; ++d) product *= tensor->sizes[d];
  return product;
}

Status plan_chunk_cat(const ChunkCatArgs& args, PackPlan* plan) {
  std::vector<Operand>& tensors = plan->tensors;
  Status status = check_chunk_cat_tensors(args, &tensors);
  if (!status.ok()) return status;
  plan->sharded = !args.shard_dims.empty();
  plan->num_chunks = args.num_chunks;
  plan->lead = 0;
  if (plan->sharded) {
    if (args.dim != 0) {
      return invalid(kChunkCat, "dim is ", args.dim,
                     ", must be 0 with shard_dims");
    }
    status = check_shard_dims(kChunkCat, "tensors", args.shard_dims, tensors);
  } else {
    status = common_dim(args, tensors, &plan->lead);
  }
  if (!status.ok()) return status;

  std::int64_t columns = 0;
  plan->items.reserve(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    status = add_item(
        kChunkCat, {"tensors", static_cast<std::int64_t>(i)}, tensors[i],
        plan->sharded ? args.shard_dims[i] : plan->lead, &columns, plan);
    if (!status.ok()) return status;
  }

  status = make_operand(kChunkCat, {"out"}, args.out, &plan->packed);
  if (!status.ok()) return status;
  std::vector<std::int64_t> expected(tensors[0].sizes.begin(),
                                     tensors[0].sizes.begin() + plan->lead);
  expected.push_back(args.num_chunks);
  expected.push_back(columns);
  if (!std::ranges::equal(plan->packed.shape(), expected)) {
    return invalid(kChunkCat, "out has sizes ", plan->packed.shape(),
                   ", must have ", std::span<const std::int64_t>(expected));
  }
  status =
      check_cast(kChunkCat, tensors[0].dtype, plan->packed.dtype, args.scale);
  if (!status.ok()) return status;
  return check_overlap(kChunkCat, {"out", false, {&plan->packed, 1}},
                       {"tensors", true, tensors});
}

namespace {

Status check_split(const SplitWithSizesCopyArgs& args, Operand* in,
                   std::int64_t* dim, std::vector<Operand>* outs) {
  Status status = make_operand(kSplit, {"in"}, args.in, in);
  if (!status.ok()) return status;
  if (in->rank == 0) return invalid(kSplit, "in has no dims to split");
  *dim = wrap(args.dim, in->rank);
  if (*dim < 0) {
    return invalid(kSplit, "dim ", args.dim,
                   " is out of range for in of sizes ", in->shape());
  }
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < args.sizes.size(); ++i) {
    if (args.sizes[i] < 0) {
      return invalid(kSplit, "sizes[", i, "] is ", args.sizes[i],
                     ", must not be negative");
    }
    if (__builtin_add_overflow(sum, args.sizes[i], &sum)) {
      return invalid(kSplit, "the sizes do not sum to a number");
    }
  }
  if (sum != in->sizes[*dim]) {
    return invalid(kSplit, "the sizes sum to ", sum, ", but in has size ",
                   in->sizes[*dim], " in dim ", *dim);
  }
  if (args.outs.size() != args.sizes.size()) {
    return invalid(kSplit, args.outs.size(), " outs for ", args.sizes.size(),
                   " sizes");
  }
  outs->resize(args.outs.size());
  for (std::size_t i = 0; i < args.outs.size(); ++i) {
    const OperandName name{"outs", static_cast<std::int64_t>(i)};
    status = make_operand(kSplit, name, args.outs[i], &(*outs)[i]);
    if (!status.ok()) return status;
  }
  status = check_same_dtype(kSplit, "outs", *outs);
  if (!status.ok() || outs->empty()) return status;
  status = check_cast(kSplit, in->dtype, (*outs)[0].dtype, args.scale);
  if (!status.ok()) return status;
  return check_overlap(kSplit, {"outs", true, *outs}, {"in", false, {in, 1}});
}

}  // namespace

Status plan_sharded_split(const SplitWithSizesCopyArgs& args, PackPlan* plan) {
  std::vector<Operand>& outs = plan->tensors;
  std::int64_t dim = 0;
  Status status = check_split(args, &plan->packed, &dim, &outs);
  if (!status.ok()) return status;
  const Operand& in = plan->packed;
  if (in.rank != 2 || dim != 1) {
    return invalid(kSplit,
                   "shard_dims take an in of 2 dims split along dim 1; "
                   "in has sizes ",
                   in.shape(), " and dim is ", args.dim);
  }
  if (in.sizes[0] < 1) {
    return invalid(kSplit, "in has sizes ", in.shape(),
                   ", shard_dims need at least one row");
  }
  status = check_shard_dims(kSplit, "outs", args.shard_dims, outs);
  if (!status.ok()) return status;
  plan->sharded = true;
  plan->lead = 0;
  plan->num_chunks = in.sizes[0];
  plan->items.reserve(outs.size());
  std::int64_t columns = 0;
  for (std::size_t i = 0; i < outs.size(); ++i) {
    const std::int64_t before = columns;
    const OperandName name{"outs", static_cast<std::int64_t>(i)};
    status =
        add_item(kSplit, name, outs[i], args.shard_dims[i], &columns, plan);
    if (!status.ok()) return status;
    if (columns - before != args.sizes[i]) {
      return invalid(kSplit, name.str(), " of sizes ", outs[i].shape(),
                     " cut along dim ", args.shard_dims[i], " takes ",
                     columns - before, " of each row, but sizes[", i, "] is ",
                     args.sizes[i]);
    }
    // An empty tensor moves nothing and has no chunks to count.
    if (outs[i].count() == 0) plan->items.pop_back();
  }
  return {};
}

Status plan_split(const SplitWithSizesCopyArgs& args, BoxList* boxes) {
  Operand in;
  std::vector<Operand> outs;
  std::int64_t dim = 0;
  Status status = check_split(args, &in, &dim, &outs);
  if (!status.ok()) return status;
  boxes->reserve(outs.size());
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < outs.size(); ++i) {
    const Operand& out = outs[i];
    Operand part = in;
    part.sizes[dim] = args.sizes[i];
    if (!std::ranges::equal(part.shape(), out.shape())) {
      return invalid(kSplit, "outs[", i, "] has sizes ", out.shape(),
                     ", must have ", part.shape());
    }
    if (out.count() > 0) {
      append_copy_box(out, in.data + offset * in.strides[dim], in.strides,
                      boxes);
    }
    offset += args.sizes[i];
  }
  return {};
}

void append_pack_boxes(const PackPlan& plan, const PackItem& item,
                       BoxList* boxes) {
  append_boxes(plan, item, Direction::kPack, boxes);
}

void append_unpack_boxes(const PackPlan& plan, const PackItem& item,
                         BoxList* boxes) {
  append_boxes(plan, item, Direction::kUnpack, boxes);
}

}  // namespace shardprop::kernels
