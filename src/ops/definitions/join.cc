// Parts and joins: slices, selections, splits, cats, stacks, padding.

#include "ops/definitions/families.h"
#include "ops/view_strides.h"

#include <algorithm>

namespace shardprop {
namespace {

BoundForm bind_slice(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  require(self.rank() > 0, "a scalar cannot be sliced");
  const int dim = call.dim("dim", self.rank());
  const std::int64_t step = call.integer("step");
  const std::int64_t length =
      slice_length(self.size(dim), call.op().int_arg("start"),
                   call.op().int_arg("end"), step);
  SpaceBuilder b;
  Operand whole = b.per_dim(self.shape());
  b.input(whole);
  // A slice that takes everything changes nothing.
  if (length != self.size(dim) || step != 1) {
    b.block(whole.dims[index(dim)], "it is sliced", FactorKind::kWindowed);
    whole.dims[index(dim)] =
        b.blocked(length, "it is sliced", FactorKind::kWindowed);
  }
  Dims strides = self.strides();
  strides[index(dim)] = multiply_sizes(strides[index(dim)], step);
  b.output(std::move(whole), {.strides = std::move(strides)});
  return b.bound();
}

BoundForm bind_narrow(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  require(call.overload() == "default" && self.rank() > 0, "nothing to narrow");
  const int dim = call.dim("dim", self.rank());
  const std::int64_t length = call.integer("length");
  require(length >= 0 && length <= self.size(dim), "a length is out of range");
  SpaceBuilder b;
  Operand whole = b.per_dim(self.shape());
  b.input(whole);
  b.block(whole.dims[index(dim)], "it is sliced", FactorKind::kWindowed);
  whole.dims[index(dim)] =
      b.blocked(length, "it is sliced", FactorKind::kWindowed);
  b.output(std::move(whole), {.strides = self.strides()});
  return b.bound();
}

Dims strides_without(const TensorMeta& self, int dim) {
  Dims strides = self.strides();
  strides.erase(strides.begin() + dim);
  return strides;
}

BoundForm bind_select(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  require(call.overload() == "int" && self.rank() > 0,
          "nothing to select from");
  const int dim = call.dim("dim", self.rank());
  const std::int64_t at = call.integer("index");
  require(at >= -self.size(dim) && at < self.size(dim),
          "an index is out of range");
  SpaceBuilder b;
  Operand whole = b.per_dim(self.shape());
  b.block(whole.dims[index(dim)], "one place of it is selected",
          FactorKind::kWindowed);
  b.input(whole);
  whole.dims.erase(whole.dims.begin() + dim);
  b.output(std::move(whole), {.strides = strides_without(self, dim)});
  return b.bound();
}

BoundForm bind_unbind(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  require(call.overload() == "int" && self.rank() > 0, "nothing to unbind");
  const int dim = call.dim("dim", self.rank());
  require(self.size(dim) <= 65536, "too many pieces");
  SpaceBuilder b;
  Operand whole = b.per_dim(self.shape());
  b.block(whole.dims[index(dim)], "it is cut up", FactorKind::kSegmented);
  b.input(whole);
  whole.dims.erase(whole.dims.begin() + dim);
  for (std::int64_t i = 0; i < self.size(dim); ++i) {
    b.output(whole, {.strides = strides_without(self, dim)});
  }
  return b.bound();
}

std::vector<std::int64_t> equal_pieces(std::int64_t size, std::int64_t piece) {
  require(piece >= 0, "a piece of no size");
  if (size == 0) return {0};
  require(piece > 0, "a piece of no size");
  require((size - 1) / piece < 65536, "too many pieces");
  std::vector<std::int64_t> sizes;
  for (std::int64_t left = size; left > 0; left -= piece) {
    sizes.push_back(std::min(left, piece));
  }
  return sizes;
}

std::vector<std::int64_t> split_sizes(const OpCall& call, std::int64_t size) {
  if (call.has("split_sizes")) return call.integers("split_sizes");
  if (call.overload() == "sizes") return call.integers("split_size");
  return equal_pieces(size, call.integer("split_size"));
}

std::vector<std::int64_t> chunk_sizes(const OpCall& call, std::int64_t size) {
  const std::int64_t chunks = call.integer("chunks");
  require(chunks > 0, "no chunks");
  if (size == 0) {
    require(chunks <= 65536, "too many pieces");
    return std::vector<std::int64_t>(index(chunks), 0);
  }
  return equal_pieces(size, size / chunks + (size % chunks != 0 ? 1 : 0));
}

DType promoted_list(const OpCall& call, std::size_t) {
  DType dtype = call.first().dtype();
  for (const TensorMeta& tensor : call.tensors("tensors")) {
    dtype = promote_types(dtype, tensor.dtype());
  }
  return dtype;
}

// An empty vector joins with anything, for old times' sake.
bool is_skipped(const TensorMeta& tensor) {
  return tensor.rank() == 1 && tensor.size(0) == 0;
}

BoundForm bind_cat(const OpCall& call) {
  const std::vector<TensorMeta> tensors = call.tensors("tensors");
  require(!tensors.empty(), "nothing to join");
  const auto first =
      std::find_if_not(tensors.begin(), tensors.end(), is_skipped);
  SpaceBuilder b;
  if (first == tensors.end()) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      b.input(SpaceBuilder::whole(1));
    }
    b.output(SpaceBuilder::whole(1), {.shape = Dims{0}});
    return b.bound();
  }
  require(first->rank() > 0, "scalars cannot be joined");
  const int dim = call.dim("dim", first->rank());
  Dims rest = first->shape();
  rest[index(dim)] = 1;
  const Operand whole = b.per_dim(rest);
  std::int64_t total = 0;
  const bool lone = tensors.size() == 1;
  for (const TensorMeta& tensor : tensors) {
    if (is_skipped(tensor) && first->rank() != 1) {
      b.input(SpaceBuilder::whole(1));
      continue;
    }
    require(tensor.rank() == first->rank(), "the ranks differ");
    for (int i = 0; i < tensor.rank(); ++i) {
      require(i == dim || tensor.size(i) == first->size(i),
              "sizes differ outside the dim that is joined");
    }
    total = add_sizes(total, tensor.size(dim));
    Operand operand = whole;
    operand.dims[index(dim)] = lone
                                   ? b.dim(tensor.size(dim))
                                   : b.blocked(tensor.size(dim), "it is joined",
                                               FactorKind::kSegmented);
    b.input(std::move(operand));
  }
  Operand joined = whole;
  joined.dims[index(dim)] =
      lone ? b.space.inputs[0].dims[index(dim)]
           : b.blocked(total, "it is joined", FactorKind::kSegmented);
  b.output(std::move(joined));
  return b.bound();
}

BoundForm bind_stack(const OpCall& call) {
  const std::vector<TensorMeta> tensors = call.tensors("tensors");
  require(!tensors.empty(), "nothing to stack");
  SpaceBuilder b;
  Operand whole = b.per_dim(tensors.front().shape());
  for (const TensorMeta& tensor : tensors) {
    require(tensor.shape() == tensors.front().shape(), "the shapes differ");
    b.input(whole);
  }
  const int dim = call.dim("dim", tensors.front().rank() + 1);
  whole.dims.insert(whole.dims.begin() + dim,
                    b.blocked(static_cast<std::int64_t>(tensors.size()),
                              "it is joined", FactorKind::kSegmented));
  b.output(std::move(whole));
  return b.bound();
}

// self with a region written: `region` is what src must look like, its dim
// `dim` written to, or gone.
BoundForm bind_written(const OpCall& call, int dim, const Dims& region) {
  const TensorMeta& self = call.tensor("self");
  const TensorMeta& src = call.tensor("src");
  require(src.shape() == region,
          "the source does not have the shape of what is written");
  SpaceBuilder b;
  const Operand whole = b.per_dim(self.shape());
  Operand source = whole;
  if (src.rank() == self.rank()) {
    if (src.size(dim) != self.size(dim)) {
      b.block(whole.dims[index(dim)], "a part of it is written",
              FactorKind::kWindowed);
      source.dims[index(dim)] = b.blocked(
          src.size(dim), "it is written to a part", FactorKind::kWindowed);
    }
  } else {
    b.block(whole.dims[index(dim)], "one place of it is written",
            FactorKind::kWindowed);
    source.dims.erase(source.dims.begin() + dim);
  }
  b.input(whole);
  b.input(std::move(source));
  b.output(whole,
           {.strides = dense_like(self, self.shape(), self.dtype()).strides()});
  return b.bound();
}

BoundForm bind_slice_scatter(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  require(self.rank() > 0, "a scalar cannot be sliced");
  const int dim = call.dim("dim", self.rank());
  Dims region = self.shape();
  region[index(dim)] =
      slice_length(self.size(dim), call.op().int_arg("start"),
                   call.op().int_arg("end"), call.integer("step"));
  return bind_written(call, dim, region);
}

BoundForm bind_select_scatter(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  require(self.rank() > 0, "a scalar has nothing to select");
  const int dim = call.dim("dim", self.rank());
  const std::int64_t at = call.integer("index");
  require(at >= -self.size(dim) && at < self.size(dim),
          "an index is out of range");
  Dims region = self.shape();
  region.erase(region.begin() + dim);
  return bind_written(call, dim, region);
}

// Dims that are padded stay whole: the rank that holds an end would pad alone.
BoundForm bind_pad(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  const std::vector<std::int64_t> amounts = call.integers("pad");
  require(amounts.size() % 2 == 0 && amounts.size() / 2 <= self.shape().size(),
          "the padding does not match the rank");
  SpaceBuilder b;
  Operand whole = b.per_dim(self.shape());
  b.input(whole);
  for (std::size_t i = 0; i < amounts.size() / 2; ++i) {
    if (amounts[2 * i] == 0 && amounts[2 * i + 1] == 0) continue;
    const std::size_t dim = self.shape().size() - 1 - i;
    const std::int64_t size = add_sizes(
        add_sizes(self.shape()[dim], amounts[2 * i]), amounts[2 * i + 1]);
    require(size >= 0, "more is cut off than there is");
    b.block(whole.dims[dim], "it is padded", FactorKind::kWindowed);
    whole.dims[dim] = b.blocked(size, "it is padded", FactorKind::kWindowed);
  }
  const Dims shape = [&] {
    Dims out;
    for (const DimFactors& dim : whole.dims) out.push_back(b.space.size(dim));
    return out;
  }();
  b.output(std::move(whole),
           {.strides = dense_like(self, shape, self.dtype()).strides()});
  return b.bound();
}

// Padding commutes with what keeps the value that is padded with.
void pad_linearities(const OpCall& call, IndexSpace& space) {
  const double value = call.op().float_arg("value").value_or(0);
  for (const ReduceOp kind : {ReduceOp::kAvg, ReduceOp::kMax, ReduceOp::kMin}) {
    add_single_linearity(call, space, 0, kind, kind);
  }
  if (value == 0) {
    add_single_linearity(call, space, 0, ReduceOp::kSum, ReduceOp::kSum);
  }
}

// Every dim is repeated: element i of the result is i modulo the size.
BoundForm bind_repeat(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  const auto times = call.integers("repeats");
  require(times.size() >= self.shape().size(), "fewer repeats than dims");
  const std::size_t added = times.size() - self.shape().size();
  SpaceBuilder b;
  const Operand whole = b.per_dim(self.shape());
  b.input(whole);
  Operand output;
  for (std::size_t i = 0; i < times.size(); ++i) {
    require(times[i] >= 0, "a count of repeats is negative");
    DimFactors factors = b.dim(times[i]);
    if (i >= added) {
      for (const FactorId id : whole.dims[i - added]) factors.push_back(id);
      // Local repeats interleave what the ranks hold.
      if (times[i] != 1) {
        b.block(whole.dims[i - added], "it is repeated",
                FactorKind::kSegmented);
      }
    }
    if (times[i] != 1 && i >= added) b.block(factors, "it is repeated");
    output.dims.push_back(std::move(factors));
  }
  // What repeats a new dim would have to be told of its shards.
  for (std::size_t i = 0; i < added; ++i) {
    b.block(output.dims[i], "it is repeated");
  }
  b.output(std::move(output));
  return b.bound();
}

}  // namespace

void define_join(Family f) {
  f.add("slice", custom("slice(dim)", bind_slice).passes().free());
  f.add("narrow", custom("slice(dim)", bind_narrow).passes().free());
  f.add("select", custom("select(dim)", bind_select).passes().free());
  f.add("unbind", custom("unbind(dim)", bind_unbind).passes().free());
  f.add({"split", "split_with_sizes"},
        cut_up("split(dim)", split_sizes).free());
  f.add({"unsafe_split", "unsafe_split_with_sizes"},
        cut_up("split(dim)", split_sizes).free());
  f.add("split_with_sizes_copy", cut_up("split(dim)", split_sizes, true));
  f.add({"chunk", "unsafe_chunk"}, cut_up("chunk(dim)", chunk_sizes).free());
  f.add({"cat", "concat", "concatenate"},
        custom("cat(dim)", bind_cat).typed(promoted_list).passes({"tensors"}));
  f.add("stack", custom("stack(dim)", bind_stack)
                     .typed(promoted_list)
                     .passes({"tensors"}));
  f.add("slice_scatter", custom("written(dim)", bind_slice_scatter)
                             .passes({"self", "src"})
                             .writes_into("self"));
  f.add("select_scatter", custom("written(dim)", bind_select_scatter)
                              .passes({"self", "src"})
                              .writes_into("self"));
  f.add("constant_pad_nd",
        custom("pad(pad)", bind_pad).refine("", pad_linearities));
  f.add("pad", custom("pad(pad)", bind_pad));
  f.add("repeat", custom("repeat(repeats)", bind_repeat).passes());
}

}  // namespace shardprop
