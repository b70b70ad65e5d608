// This file defines slices, selections, cats, stacks, repeats and padding.

#include "ops/definitions/families.h"
#include "ops/definitions/words.h"
#include "ops/space/windows.h"

#include <algorithm>
#include <numeric>
#include <string>

namespace shardprop {
namespace {

DType promoted_list(const OpCall& call, std::size_t) {
  DType dtype = call.first().dtype();
  for (const TensorMeta& tensor : call.tensors("tensors")) {
    dtype = promote_types(dtype, tensor.dtype());
  }
  return dtype;
}

// Padded dims are blocked: a rank at an end of the dim would have to pad one
// side only.
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
  b.output(std::move(whole));
  return b.bound();
}

// If no amount is positive, the operator only crops and keeps the memory order.
Dims strides_of_pad(const OpCall& call, const Dims& shape, DType dtype) {
  const TensorMeta& self = call.first();
  const std::vector<std::int64_t> amounts = call.integers("pad");
  if (std::all_of(amounts.begin(), amounts.end(),
                  [](std::int64_t amount) { return amount <= 0; })) {
    return dense_like(self, shape, dtype).strides();
  }
  return strides_as_images(call, shape, dtype);
}

// A reduction passes if it preserves the padding value.
void pad_linearities(const OpCall& call, IndexSpace& space) {
  const double value = call.op().float_arg("value").value_or(0);
  for (const ReduceOp kind : {ReduceOp::kAvg, ReduceOp::kMax, ReduceOp::kMin}) {
    add_single_linearity(call, space, 0, kind, kind);
  }
  if (value == 0) {
    add_single_linearity(call, space, 0, ReduceOp::kSum, ReduceOp::kSum);
  }
}

// The result is channels last if all tensors are.
Dims strides_of_joined(const OpCall& call, const Dims& shape, DType dtype) {
  const std::vector<TensorMeta> tensors = call.tensors("tensors");
  return std::all_of(tensors.begin(), tensors.end(), is_channels_last)
             ? channels_last_strides(shape)
             : make_meta(shape, dtype).strides();
}

// Returns the strides of a cat along the dim, with the dim split into one for
// the tensors and their own.
Dims strides_of_stacked(const OpCall& call, const Dims& shape, DType dtype) {
  const std::vector<TensorMeta> tensors = call.tensors("tensors");
  const Dims& each = nth(tensors, 0).shape();
  require(shape.size() == each.size() + 1, "the result stacks no such tensors");
  const auto dim = index(call.dim("dim", static_cast<int>(shape.size())));
  if (dim == each.size()) return make_meta(shape, dtype).strides();
  Dims joined = each;
  joined[dim] =
      multiply_sizes(each[dim], static_cast<std::int64_t>(tensors.size()));
  Dims strides = strides_of_joined(call, joined, dtype);
  strides.insert(strides.begin() + static_cast<std::ptrdiff_t>(dim),
                 multiply_sizes(strides[dim], each[dim]));
  return strides;
}

// --- Cats of tensors that get dims of size 1 first ---

// Missing dims come first, as in vstack and row_stack.
std::vector<int> as_rows(int rank) {
  if (rank == 0) return {kNewDim, kNewDim};
  if (rank == 1) return {kNewDim, 0};
  std::vector<int> dims(index(rank));
  std::iota(dims.begin(), dims.end(), 0);
  return dims;
}
std::vector<int> as_columns(int rank) {
  return rank == 1 ? std::vector<int>{0, kNewDim} : as_rows(rank);
}
std::vector<int> at_least_one(int rank) {
  return rank == 0   ? std::vector<int>{kNewDim}
         : rank == 1 ? std::vector<int>{0}
                     : as_rows(rank);
}
std::vector<int> in_depth(int rank) {
  if (rank == 0) return {kNewDim, kNewDim, kNewDim};
  if (rank == 1) return {kNewDim, 0, kNewDim};
  return rank == 2 ? std::vector<int>{0, 1, kNewDim} : as_rows(rank);
}

// Concatenates along `dim`, and vectors along `vector_dim`.
OpDefinition cat_form_along(std::string name, LiftOf lift, int dim,
                            int vector_dim) {
  return cat_form(
      std::move(name), std::move(lift), [=](const OpCall& call, int rank) {
        const int along = call.first().rank() <= 1 ? vector_dim : dim;
        require(along < rank, "the ranks differ");
        return along;
      });
}

// Every dim is repeated: element i of the result is element i modulo the size.
BoundForm bind_repeat(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  auto times = call.integers(call.has("repeats") ? "repeats" : "dims");
  // tile accepts fewer repeats than dims.
  while (call.has("dims") && times.size() < self.shape().size()) {
    times.insert(times.begin(), 1);
  }
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
      // Local repeats would interleave the ranks' parts.
      if (times[i] != 1) {
        b.block(whole.dims[i - added], "it is repeated",
                FactorKind::kSegmented);
      }
    }
    if (times[i] != 1 && i >= added) b.block(factors, "it is repeated");
    output.dims.push_back(std::move(factors));
  }
  // A shard of a new dim would need a local number of repeats.
  for (std::size_t i = 0; i < added; ++i) {
    b.block(output.dims[i], "it is repeated");
  }
  b.output(std::move(output));
  return b.bound();
}

// The result has the tensors along the diagonal of a matrix of zeros. A rank
// with a part of one cannot know its position, so all are replicated.
BoundForm bind_block_diag(const OpCall& call) {
  SpaceBuilder b;
  Dims shape = {0, 0};
  for (const TensorMeta& meta : call.tensors("tensors")) {
    require(meta.rank() <= 2, "a block has more than two dims");
    const std::int64_t rows = meta.rank() == 2 ? size_of(meta, 0) : 1;
    const std::int64_t columns =
        meta.rank() == 0 ? 1 : size_of(meta, meta.rank() - 1);
    shape[0] = add_sizes(shape[0], rows);
    shape[1] = add_sizes(shape[1], columns);
    b.input(SpaceBuilder::whole(meta.rank()));
  }
  b.output(SpaceBuilder::whole(2), {.shape = std::move(shape)});
  return b.bound();
}

// Each tensor is padded to chunks of one size along `dim`. The result has the
// first chunks of all tensors side by side, flattened from `dim` on, then the
// second chunks, and so on. The chunks are sharded if no tensor needs padding.
BoundForm bind_chunk_cat(const OpCall& call) {
  const std::vector<TensorMeta> tensors = call.tensors("tensors");
  require(!tensors.empty(), "no tensors");
  const std::int64_t chunks = call.integer("num_chunks");
  require(chunks > 0, "no chunks");
  const int dim = call.dim("dim", tensors[0].rank());
  SpaceBuilder b;
  Operand out;
  Dims shape;
  for (int d = 0; d < dim && d < tensors[0].rank(); ++d) {
    shape.push_back(size_of(tensors[0], d));
    out.dims.push_back(b.dim(shape.back()));
  }
  const bool unpadded =
      std::all_of(tensors.begin(), tensors.end(), [&](const TensorMeta& meta) {
        return dim < meta.rank() && size_of(meta, dim) % chunks == 0;
      });
  const DimFactors by_chunk = unpadded ? b.dim(chunks) : DimFactors{};
  for (const FactorId id : by_chunk) {
    b.space.local_arguments.push_back(
        {"num_chunks", false, {RankScalar::factor_size(id)}});
  }
  std::int64_t width = 0;
  for (const TensorMeta& meta : tensors) {
    require(dim < meta.rank() && meta.dtype() == tensors[0].dtype() &&
                meta.numel() > 0,
            "a tensor lacks the dim, has no elements or another dtype");
    Operand operand = out;
    std::int64_t chunk = 0;
    for (int d = 0; d < meta.rank(); ++d) {
      if (d < dim) {
        require(size_of(meta, d) == shape[index(d)],
                "dims before `dim` differ");
        continue;
      }
      chunk = d == dim ? (size_of(meta, d) - 1) / chunks + 1
                       : multiply_sizes(chunk, size_of(meta, d));
      const std::int64_t parts = d == dim && !by_chunk.empty() ? chunks : 1;
      DimFactors own = parts == 1 ? DimFactors{} : by_chunk;
      for (const FactorId id :
           b.blocked(size_of(meta, d) / parts, "it is cut in chunks")) {
        own.push_back(id);
      }
      operand.dims.push_back(std::move(own));
    }
    width = add_sizes(width, chunk);
    b.input(std::move(operand));
  }
  shape.push_back(chunks);
  shape.push_back(width);
  out.dims.push_back(by_chunk);
  out.dims.resize(shape.size());
  b.output(std::move(out), {.shape = std::move(shape)});
  return b.bound();
}

// A rank writes the elements that belong to its own rows.
constexpr std::string_view kSliceScatter = R"(
at = places(self, dim) - slice_start(self, dim, start)
row = floor_divide(at, step)
kept = (at < 0) | (row >= size(src, dim))
by_one = step == 1
kept = kept | (remainder(at, step) >= 1) if not by_one
rows = index_select(cast(src, dtype(self)), dim, masked_fill(row, kept, 0))
return where(trailing(kept, rank(self) - 1 - wrap(self, dim)), self, rows))";

constexpr std::string_view kSelectScatter = R"(
hit = places(self, dim) == place_of(self, dim, index)
return where(trailing(hit, rank(self) - 1 - wrap(self, dim)), unsqueeze(cast(src, dtype(self)), wrap(self, dim)), self))";

}  // namespace

void words_of_join(RuleWords& words) {
  words.form(cat_form_along("hstack()", at_least_one, 1, 0));
  words.form(cat_form_along("vstack()", as_rows, 0, 0));
  words.form(cat_form_along("dstack()", in_depth, 2, 2));
  words.form(cat_form_along("column_stack()", as_columns, 1, 1));
  words.form(custom("block_diag()", bind_block_diag));
  words.form(custom("chunk_cat(dim,num_chunks)", bind_chunk_cat));
  words.form(custom("pad(pad)", bind_pad));
  words.modifier("pad_linearities()", pad_linearities);
  words.form(custom("repeat(repeats)", bind_repeat));
  words.form(custom("repeat(dims)", bind_repeat));
  words.dtype("promoted_list", promoted_list);
  words.strides("joined", strides_of_joined);
  words.strides("stacked", strides_of_stacked);
  words.strides("pad", strides_of_pad);
}

void define_join(Family f) {
  const auto joined_along = [](std::string_view word) {
    return joined(word).typed("promoted_list()").strided("joined");
  };
  f.add("slice", sliced());
  f.add("narrow.default", narrowed());
  f.add("select", selected());
  f.add("unbind", unbound());
  f.add({"cat", "concat", "concatenate"},
        joined().typed("promoted_list()").strided("joined"));
  f.add("block_diag", form("block_diag()").promoted().passes(),
        "replicated: a part of a block does not know where it lies");
  f.add("_chunk_cat", form("chunk_cat(dim,num_chunks)").passes().nonempty());
  f.add("stack", stacked().typed("promoted_list()").strided("stacked"));
  f.add("hstack", joined_along("hstack()"));
  f.add({"vstack", "row_stack"}, joined_along("vstack()"));
  f.add("dstack", joined_along("dstack()"));
  f.add("column_stack", joined_along("column_stack()"));
  f.add("slice_scatter",
        slice_written().writes_into("self").per_rank(kSliceScatter));
  f.add("select_scatter",
        selection_written().writes_into("self").per_rank(kSelectScatter));
  f.add("constant_pad_nd",
        form("pad(pad)").strided("pad").refine("pad_linearities()"));
  f.add("pad", form("pad(pad)").strided("pad"));
  f.add("repeat", form("repeat(repeats)").passes());
  f.add("tile", form("repeat(dims)").passes());
}

}  // namespace shardprop
