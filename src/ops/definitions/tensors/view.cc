// This file defines views: the same elements in another shape.

#include "base/index.h"
#include "ops/definitions/families.h"
#include "ops/definitions/words.h"
#include "ops/forms/mapped.h"
#include "ops/space/view_strides.h"
#include "ops/space/windows.h"

#include <algorithm>
#include <numeric>

namespace shardprop {
namespace {

Dims sizes_given(const OpCall& call) {
  return resolve_sizes(call.first(),
                       call.integers(call.has("size") ? "size" : "shape"));
}

// An operator that must not copy needs strides that allow the view.
Dims sizes_of_view(const OpCall& call) {
  const Dims shape = sizes_given(call);
  require(view_strides(call.first(), shape).has_value(),
          "the strides allow no view of that shape");
  return shape;
}

Dims shape_of_other(const OpCall& call) {
  const Dims& wanted = call.tensor("other").shape();
  require(product(wanted) == call.first().numel(),
          "the sizes hold another count of elements");
  return wanted;
}

Dims flattened(const OpCall& call) {
  const TensorMeta& self = call.first();
  require(call.overload() == "using_ints" || call.overload() == "default",
          "named dims are not supported");
  const int first = call.dim("start_dim", self.rank());
  const int last = call.dim("end_dim", self.rank());
  require(first <= last, "start_dim comes after end_dim");
  if (self.rank() == 0) return Dims{1};
  Dims shape;
  for (int dim = 0; dim < self.rank(); ++dim) {
    if (dim <= first || dim > last) {
      shape.push_back(size_of(self, dim));
    } else {
      shape.back() = multiply_sizes(shape.back(), size_of(self, dim));
    }
  }
  return shape;
}

Dims unflattened(const OpCall& call) {
  const TensorMeta& self = call.first();
  require(self.rank() > 0, "a scalar has no dim to unflatten");
  const int dim = call.dim("dim", self.rank());
  const Dims inner =
      resolve_sizes(make_meta(Dims{size_of(self, dim)}, self.dtype()),
                    call.integers("sizes"));
  Dims shape;
  for (int i = 0; i < self.rank(); ++i) {
    if (i != dim) {
      shape.push_back(size_of(self, i));
    } else {
      for (const std::int64_t size : inner) shape.push_back(size);
    }
  }
  return shape;
}

// atleast_2d inserts dims of size 1 in front; atleast_3d also appends one.
Dims at_least(const OpCall& call, std::size_t least) {
  Dims shape = call.first().shape();
  while (shape.size() < least) {
    const bool behind = shape.size() == 2;
    shape.insert(behind ? shape.end() : shape.begin(), 1);
  }
  return shape;
}

// Each rank passes the local sizes of its own dim.
void local_sizes(const OpCall& call, IndexSpace& space) {
  const int dim = call.dim("dim", call.first().rank());
  LocalArgument local{"sizes", true, {}};
  const auto count = static_cast<int>(call.integers("sizes").size());
  require(dim + count <= nth(call.op().outputs, 0).rank(),
          "the result does not have the given sizes as dims");
  for (int i = 0; i < count; ++i) {
    local.values.push_back(RankScalar::output_size(0, dim + i));
  }
  space.local_arguments.push_back(std::move(local));
}

std::vector<int> order_given(const OpCall& call) {
  const std::vector<std::int64_t> given = call.integers("dims");
  const int rank = call.first().rank();
  require(given.size() == index(rank), "a permutation names every dim");
  return rank == 0 ? std::vector<int>{} : call.dims("dims", rank);
}

std::vector<int> all_dims(const OpCall& call) {
  std::vector<int> dims(index(call.first().rank()));
  std::iota(dims.begin(), dims.end(), 0);
  return dims;
}

std::vector<int> two_swapped(const OpCall& call) {
  require(call.overload() == "int" || call.overload() == "default",
          "named dims are not supported");
  std::vector<int> dims = all_dims(call);
  const int rank = call.first().rank();
  const bool axes = call.has("axis0");
  const int a = call.dim(axes ? "axis0" : "dim0", rank);
  const int b = call.dim(axes ? "axis1" : "dim1", rank);
  if (rank > 0) std::swap(dims[index(a)], dims[index(b)]);
  return dims;
}

// A scalar stays as it is.
std::vector<int> last_two_swapped(const OpCall& call) {
  std::vector<int> dims = all_dims(call);
  require(dims.size() != 1, "a vector has no transpose");
  if (dims.size() >= 2) std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
  return dims;
}

// Scalars and vectors stay as they are.
std::vector<int> matrix_swapped(const OpCall& call) {
  std::vector<int> dims = all_dims(call);
  require(dims.size() <= 2, "a tensor of this rank has no transpose");
  std::reverse(dims.begin(), dims.end());
  return dims;
}

std::vector<int> reversed(const OpCall& call) {
  std::vector<int> dims = all_dims(call);
  std::reverse(dims.begin(), dims.end());
  return dims;
}

std::vector<int> dims_moved(const OpCall& call) {
  const int rank = call.first().rank();
  const std::vector<int> source = call.dims("source", rank);
  const std::vector<int> destination = call.dims("destination", rank);
  require(source.size() == destination.size(), "as many dims move as places");
  std::vector<int> order(index(rank), -1);
  for (std::size_t i = 0; i < source.size(); ++i) {
    order[index(destination[i])] = source[i];
  }
  int next = 0;
  for (int& dim : order) {
    if (dim >= 0) continue;
    while (std::find(source.begin(), source.end(), next) != source.end()) {
      ++next;
    }
    dim = next++;
  }
  return order;
}

DType dtype_seen(const OpCall& call) {
  const auto dtype = call.op().dtype_arg("dtype");
  require(dtype.has_value(), "the dtype is missing");
  return *dtype;
}

// In a view as elements of another width, the last dim has more or fewer
// elements. One wider element is never sharded.
BoundForm bind_view_as_dtype(const OpCall& call) {
  const TensorMeta& self = call.first();
  const std::int64_t from = item_size(self.dtype());
  const std::int64_t to = item_size(dtype_seen(call));
  Dims shape = self.shape();
  Dims strides = self.strides();
  SpaceBuilder b;
  if (from == to) {
    const Operand all = b.per_dim(shape);
    b.input(all);
    b.output(all, {.strides = strides});
    return b.bound();
  }
  require(self.rank() > 0 && strides.back() == 1,
          "elements of another width do not lie side by side");
  const bool narrows = to < from;
  const std::int64_t parts = narrows ? from / to : to / from;
  if (!narrows) {
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const std::int64_t places = d + 1 == shape.size() ? shape[d] : strides[d];
      require(places % parts == 0, "elements of another width do not fit");
    }
  }
  const auto scaled = [&](std::int64_t places) {
    return narrows ? multiply_sizes(places, parts) : places / parts;
  };
  const std::int64_t last = shape.back();
  const auto leading = shape.size() - 1;
  Operand wide = b.per_dim(Dims(shape.begin(), shape.begin() + leading));
  Operand narrow = wide;
  wide.dims.push_back(b.dim(narrows ? last : last / parts));
  narrow.dims.push_back(wide.dims.back());
  for (const FactorId id : b.blocked(parts, "they are one wider element")) {
    narrow.dims.back().push_back(id);
  }
  for (std::size_t d = 0; d < leading; ++d) strides[d] = scaled(strides[d]);
  b.input(narrows ? wide : narrow);
  b.output(narrows ? narrow : wide, {.strides = strides});
  return b.bound();
}

// The result is a strided region of the operand's memory, so no rank can hold a
// part.
BoundForm bind_as_strided(const OpCall& call) {
  SpaceBuilder b;
  b.input(SpaceBuilder::whole(call.first().rank()));
  const Dims shape = dims_of(call.integers("size"));
  b.output(SpaceBuilder::whole(static_cast<int>(shape.size())),
           {.shape = shape, .strides = dims_of(call.integers("stride"))});
  return b.bound();
}

Dims resized_shape(const OpCall& call) {
  if (call.has("the_template")) return call.tensor("the_template").shape();
  const Dims shape = dims_of(call.integers("size"));
  for (const std::int64_t size : shape) {
    require(size >= 0, "a size is negative");
  }
  return shape;
}

// The call reads memory in order. A larger result has uninitialized elements.
// If no size changes, the result is the operand.
Notation resized_notation(const OpCall& call) {
  const TensorMeta& self = call.first();
  if (!call.memory_format().empty()) {
    call_not_stated("a memory format that elements are read by");
  }
  require(
      dense_like(self, self.shape(), self.dtype()).strides() == self.strides(),
      "the storage has elements that the tensor has not");
  const Dims shape = resized_shape(call);
  const bool stays = shape == self.shape();
  std::vector<int> whole;
  for (std::size_t d = 0; d < shape.size() && !stays; ++d) {
    whole.push_back(static_cast<int>(d));
  }
  const Term result = term_of_dims(static_cast<int>(shape.size()), whole);
  Notation notation{{stays ? result : Term::replicated()}, {result}, {}, {}};
  if (call.has("the_template")) notation.inputs.push_back(result);
  return notation;
}

std::int64_t resized_size(const OpCall& call, const FactorName& name) {
  return resized_shape(call)[index(name.dim())];
}

Dims resized_strides(const OpCall& call, const Dims& shape, DType dtype) {
  return shape == call.first().shape() ? call.first().strides()
                                       : make_meta(shape, dtype).strides();
}

OpDefinition resized_storage() {
  return form("resized(size)").strided("resized").passes({"self"});
}

BoundForm bind_diagonal(const OpCall& call) {
  const TensorMeta& self = call.first();
  require(call.overload() == "default" && self.rank() >= 2,
          "a diagonal needs two dims");
  const int a = call.dim("dim1", self.rank());
  const int c = call.dim("dim2", self.rank());
  require(a != c, "a diagonal needs two dims");
  const std::int64_t offset = call.integer("offset");
  const std::int64_t length =
      diagonal_length(size_of(self, a), size_of(self, c), offset);
  SpaceBuilder b;
  const Operand whole = b.per_dim(self.shape());
  // A dim whose full length the diagonal covers is sharded with it: the
  // diagonal of each part begins at another position.
  const int along = length == size_of(self, a)   ? a
                    : length == size_of(self, c) ? c
                                                 : -1;
  for (const int dim : {a, c}) {
    if (dim == along) continue;
    b.block(whole.dims[index(dim)], "the diagonal runs over it");
  }
  b.input(whole);
  Operand output;
  Dims strides;
  for (int dim = 0; dim < self.rank(); ++dim) {
    if (dim == a || dim == c) continue;
    output.dims.push_back(whole.dims[index(dim)]);
    strides.push_back(self.strides()[index(dim)]);
  }
  if (along >= 0) {
    output.dims.push_back(whole.dims[index(along)]);
    RankScalar local = RankScalar::input_offset(0, along);
    local.scale = along == a ? 1 : -1;
    local.constant = offset;
    b.space.local_arguments.push_back({"offset", false, {local}});
  } else {
    output.dims.push_back(b.blocked(length, "it runs along the diagonal"));
  }
  strides.push_back(
      add_sizes(self.strides()[index(a)], self.strides()[index(c)]));
  b.output(std::move(output), {.strides = std::move(strides)});
  return b.bound();
}

}  // namespace

void words_of_view(RuleWords& words) {
  words.form(reshape_form("view(size)", sizes_of_view));
  words.form(reshape_form("reshape(size)", sizes_given));
  words.form(reshape_form("reshape(shape)", sizes_given));
  words.form(reshape_form("view(other)", shape_of_other));
  words.form(reshape_form("flatten()", flattened));
  words.form(reshape_form("ravel()", [](const OpCall& call) {
    return Dims{call.first().numel()};
  }));
  words.form(reshape_form("unflatten()", unflattened));
  for (const std::size_t least : {1, 2, 3}) {
    words.form(reshape_form(
        "atleast(" + std::to_string(least) + ")",
        [least](const OpCall& call) { return at_least(call, least); }));
  }
  words.form(permute_form("permute(dims)", order_given));
  words.form(permute_form("transpose(dim0,dim1)", two_swapped));
  words.form(permute_form("transpose()", last_two_swapped));
  words.form(permute_form("transpose(matrix)", matrix_swapped));
  words.form(permute_form("reversed()", reversed));
  words.form(permute_form("moved(source,destination)", dims_moved));
  words.form(mapped("resized(size)", resized_notation, resized_size));
  words.form(custom("view(dtype)", bind_view_as_dtype));
  words.modifier("local_sizes()", local_sizes);
  words.form(custom("as_strided()", bind_as_strided));
  words.form(custom("diagonal(dim1,dim2)", bind_diagonal));
  words.strides("resized", resized_strides);
}

void define_view(Family f) {
  // An operator that never copies is free for every operand.
  f.add({"view", "_unsafe_view"}, reshaped("view(size)", "size").free());
  f.add("view_copy", reshaped("reshape(size)", "size").filling());
  f.add("view.dtype",
        in_dense_rows(form("view(dtype)").typed("given(dtype,first)").free()));
  f.add("reshape", reshaped("reshape(shape)", "shape"));
  f.add("view_as", reshaped("view(other)").free());
  f.add("reshape_as", reshaped("view(other)"));
  f.add("flatten", reshaped("flatten()"));
  f.add("ravel", reshaped("ravel()"));
  f.add("unflatten", reshaped("unflatten()").free().refine("local_sizes()"));
  f.add("unsqueeze", unsqueezed());
  f.add("squeeze",
        squeezed().per_rank(
            "return squeeze(self, ones_among(self, default(dim, None)))"));
  f.add("permute", permuted("permute(dims)"));
  f.add({"transpose", "swapaxes", "swapdims"},
        permuted("transpose(dim0,dim1)"));
  f.add("t", permuted("transpose(matrix)"));
  f.add("mT", permuted("transpose()"));
  f.add({"mH", "adjoint"}, permuted("transpose()").conjugated());
  f.add({"numpy_T"}, permuted("reversed()"));
  f.add({"movedim", "moveaxis"}, permuted("moved(source,destination)"));
  f.add("expand", expanded("size").local_shape("size"));
  f.add("expand_as", expanded("other"));
  f.add({"broadcast_to"}, expanded("size").local_shape("size"));
  f.add({"alias", "detach", "lift", "lift_fresh", "prims.view_of"},
        same_shape().strided("first").passes().free());
  f.add({"conj", "_conj"},
        same_shape().strided("first").passes().free().conjugated());
  f.add(
      {"as_strided", "_reshape_alias"}, in_order(form("as_strided()").free()),
      "replicated: it names places of storage, of which no rank holds a part");
  f.add("resize", in_order(resized_storage().local_shape("size")));
  f.add("resize_as", in_order(resized_storage()));
  f.add("unfold", unfolded().passes().free());
  f.add("im2col", columns(false).linear_in("self"));
  f.add("col2im", columns(true).linear_in("self"));
  f.add("pixel_shuffle", shuffled(true).nonempty().passes());
  f.add("pixel_unshuffle",
        shuffled(false).strided("images").nonempty().passes());
  f.add({"diagonal", "linalg_diagonal"},
        form("diagonal(dim1,dim2)").passes().free());
  for (const char* least : {"1", "2", "3"}) {
    const std::string name = "atleast_" + std::string(least) + "d";
    f.add(name + ".default", reshaped("atleast(" + std::string(least) + ")"));
    f.add(name, at_least_each(least));
  }
  f.add("broadcast_tensors", expanded_together());
  f.add("meshgrid", grid_of_vectors());
  f.add("cartesian_prod", rows_of_vectors());
}

}  // namespace shardprop
