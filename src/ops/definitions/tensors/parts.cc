// This file defines complex numbers as pairs of reals, and the gradients of
// selections and slices. Each of these gradients is a tensor of zeros with one
// part written.

#include "ops/definitions/dtypes.h"
#include "ops/definitions/families.h"
#include "ops/definitions/words.h"
#include "ops/forms/indices.h"
#include "ops/forms/mapped.h"
#include "ops/forms/segment_dims.h"
#include "ops/space/view_strides.h"
#include "ops/space/windows.h"

#include <algorithm>

namespace shardprop {
namespace {

DType complex_of(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return DType::kC32;
    case DType::kF32:
      return DType::kC64;
    case DType::kF64:
      return DType::kC128;
    default:
      call_error("complex numbers of that dtype do not exist");
  }
}

DType into_complex(const OpCall& call, std::size_t) {
  return complex_of(call.first().dtype());
}

Dims strides_as_real(const OpCall& call, const Dims&, DType) {
  Dims strides = call.first().strides();
  for (std::int64_t& stride : strides) stride = multiply_sizes(stride, 2);
  strides.push_back(1);
  return strides;
}

Dims strides_as_complex(const OpCall& call, const Dims&, DType) {
  Dims strides = call.first().strides();
  require(!strides.empty() && strides.back() == 1 &&
              size_of(call.first(), -1 + call.first().rank()) == 2,
          "the last dim holds no pairs");
  strides.pop_back();
  for (std::int64_t& stride : strides) {
    require(stride % 2 == 0, "pairs do not lie together");
    stride /= 2;
  }
  return strides;
}

// Returns the strides of real and imag. For a real tensor they are those of the
// tensor itself.
Dims strides_of_part(const OpCall& call, const Dims&, DType dtype) {
  Dims strides = call.first().strides();
  if (dtype == call.first().dtype()) return strides;
  for (std::int64_t& stride : strides) stride = multiply_sizes(stride, 2);
  return strides;
}

// The result has the sizes `input_sizes`. One of its dims is selected or
// sliced, and each rank passes its local sizes.
BoundForm bind_part_written(const OpCall& call) {
  const TensorMeta& grad = call.tensor("grad_output");
  const Dims shape = dims_of(call.integers("input_sizes"));
  const int rank = static_cast<int>(shape.size());
  const bool selects = call.has("index");
  require(rank > 0 && grad.rank() == rank - (selects ? 1 : 0),
          "the gradient does not match the input's sizes");
  const int dim = call.dim("dim", rank);
  const bool slices = call.has("start") && call.has("end") && call.has("step");
  if (slices) {
    require(size_of(grad, dim) ==
                slice_length(shape[index(dim)], call.op().int_arg("start"),
                             call.op().int_arg("end"), call.integer("step")),
            "the gradient does not match the slice");
  }
  SpaceBuilder b;
  Operand whole;
  Operand part;
  for (int d = 0; d < rank; ++d) {
    const auto piece =
        d == dim && slices
            ? piece_of_slice(shape[index(d)], grad.size(d),
                             call.op().int_arg("start"), call.integer("step"))
            : std::nullopt;
    if (piece) {
      WrittenPiece written =
          written_piece(b, shape[index(d)], grad.size(d), *piece,
                        RankScalar::input_size(0, d));
      whole.dims.push_back(std::move(written.whole));
      part.dims.push_back(std::move(written.own));
      continue;
    }
    if (d == dim) {
      whole.dims.push_back(
          b.blocked(shape[index(d)], "a part of it is written"));
      if (selects || size_of(grad, d) > 0) {
        cut_by_program(b.space, whole.dims.back());
      }
      if (!selects) part.dims.emplace_back();
      continue;
    }
    const int at = selects && d > dim ? d - 1 : d;
    require(size_of(grad, at) == shape[index(d)],
            "the gradient does not match the input's sizes");
    whole.dims.push_back(b.dim(shape[index(d)]));
    part.dims.push_back(whole.dims.back());
  }
  b.input(std::move(part));
  b.output(std::move(whole), {.shape = shape});
  return b.bound();
}

// A rank writes the elements that belong to its own rows.
constexpr std::string_view kSelectBackward = R"(
miss = ne(places(out, dim), place_of(out, dim, index))
rows = unsqueeze(grad_output, wrap(out, dim))
return masked_fill(rows, trailing(miss, rank(out) - 1 - wrap(out, dim)), 0))";

constexpr std::string_view kSliceBackward = R"(
at = places(out, dim) - slice_start(out, dim, start)
row = floor_divide(at, step)
miss = (at < 0) | (row >= size(grad_output, dim))
by_one = step == 1
miss = miss | (remainder(at, step) >= 1) if not by_one
rows = index_select(grad_output, dim, masked_fill(row, miss, 0))
return masked_fill(rows, trailing(miss, rank(out) - 1 - wrap(out, dim)), 0))";

OpDefinition part_written(std::string_view program) {
  return form("part_written(input_sizes)")
      .passes()
      .local_shape("input_sizes")
      .per_rank(program);
}

// The last dim becomes a diagonal of two new dims.
BoundForm bind_diag_embed(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  require(self.rank() > 0, "a scalar is not a diagonal");
  const int rank = self.rank() + 1;
  const int a = call.dim("dim1", rank);
  const int c = call.dim("dim2", rank);
  require(a != c, "a diagonal lies in two dims");
  const std::int64_t offset = call.integer("offset");
  constexpr std::int64_t kFar = std::int64_t{1} << 40;
  require(offset > -kFar && offset < kFar, "an offset is out of range");
  const std::int64_t side =
      add_sizes(size_of(self, self.rank() - 1), offset < 0 ? -offset : offset);
  SpaceBuilder b;
  Operand in = b.per_dim(self.shape());
  b.block(in.dims.back(), "it becomes a diagonal");
  b.input(in);
  Operand out;
  Dims shape;
  std::size_t next = 0;
  for (int d = 0; d < rank; ++d) {
    const bool diagonal = d == a || d == c;
    shape.push_back(diagonal ? side : self.shape()[next]);
    out.dims.push_back(diagonal ? DimFactors{} : in.dims[next++]);
  }
  b.output(std::move(out), {.shape = std::move(shape)});
  return b.bound();
}

// `src` replaces the diagonal of `self`; the other dims share factors.
BoundForm bind_diagonal_scatter(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  const TensorMeta& src = call.tensor("src");
  require(self.rank() >= 2 && src.rank() == self.rank() - 1,
          "the source is not a diagonal of self");
  const int a = call.dim("dim1", self.rank());
  const int c = call.dim("dim2", self.rank());
  require(a != c, "a diagonal lies in two dims");
  SpaceBuilder b;
  const Operand whole = b.per_dim(self.shape());
  Operand part;
  for (int d = 0; d < self.rank(); ++d) {
    if (d == a || d == c) {
      b.block(whole.dims[index(d)], "the diagonal runs over it");
      continue;
    }
    require(
        size_of(src, static_cast<int>(part.dims.size())) == size_of(self, d),
        "the source is not a diagonal of self");
    part.dims.push_back(whole.dims[index(d)]);
  }
  part.dims.emplace_back();
  b.input(whole);
  b.input(std::move(part));
  b.output(whole, {.strides = strides_to_write(self)});
  return b.bound();
}

// The result is zeros of `input_sizes` with the gradient on a diagonal.
BoundForm bind_diagonal_written(const OpCall& call) {
  const TensorMeta& grad = call.tensor("grad_output");
  const Dims shape = dims_of(call.integers("input_sizes"));
  const int rank = static_cast<int>(shape.size());
  require(rank >= 2 && grad.rank() == rank - 1,
          "the gradient is not a diagonal of the input");
  const int a = call.dim("dim1", rank);
  const int c = call.dim("dim2", rank);
  require(a != c, "a diagonal lies in two dims");
  SpaceBuilder b;
  Operand part;
  Operand whole;
  for (int d = 0; d < rank; ++d) {
    if (d == a || d == c) {
      whole.dims.emplace_back();
      continue;
    }
    require(
        size_of(grad, static_cast<int>(part.dims.size())) == shape[index(d)],
        "the gradient is not a diagonal of the input");
    part.dims.push_back(b.dim(shape[index(d)]));
    whole.dims.push_back(part.dims.back());
  }
  part.dims.push_back(
      b.blocked(size_of(grad, grad.rank() - 1), "it becomes a diagonal"));
  require(size_of(grad, grad.rank() - 1) ==
              diagonal_length(shape[index(a)], shape[index(c)],
                              call.integer("offset")),
          "the gradient is not a diagonal of the input");
  b.input(std::move(part));
  b.output(std::move(whole), {.shape = shape});
  return b.bound();
}

// The result is the sum of the windows of a dim. In the gradient, the windows
// follow one another in that dim, and their elements are the last dim.
BoundForm bind_windows_added(const OpCall& call) {
  const TensorMeta& grad = call.tensor("grad_in");
  const Dims shape = dims_of(call.integers("input_sizes"));
  const int rank = static_cast<int>(shape.size());
  require(grad.rank() == rank + 1,
          "the gradient does not match the input's sizes");
  const int dim = call.dim("dim", rank);
  const std::int64_t size = call.integer("size");
  const std::int64_t step = call.integer("step");
  if (rank == 0) {  // one window, with one or no element
    require(step > 0 && size >= 0 && size <= 1 && size_of(grad, 0) == size,
            "the gradient does not hold the window of a scalar");
    SpaceBuilder b;
    b.input(SpaceBuilder::whole(1));
    b.output(SpaceBuilder::whole(0), {.shape = shape});
    return b.bound();
  }
  require(step > 0 && size >= 0 && size <= shape[index(dim)] &&
              size_of(grad, rank) == size &&
              size_of(grad, dim) == (shape[index(dim)] - size) / step + 1,
          "the gradient does not hold the windows of the dim");
  SpaceBuilder b;
  Operand windows;
  Operand whole;
  for (int d = 0; d < rank; ++d) {
    if (d == dim) {
      windows.dims.emplace_back();
      whole.dims.emplace_back();
      continue;
    }
    require(size_of(grad, d) == shape[index(d)],
            "the gradient does not match the input's sizes");
    windows.dims.push_back(b.dim(shape[index(d)]));
    whole.dims.push_back(windows.dims.back());
  }
  windows.dims.emplace_back();
  b.input(std::move(windows));
  b.output(std::move(whole), {.shape = shape});
  return b.bound();
}

// A strided region of self's memory is overwritten, so no rank can hold a part.
BoundForm bind_storage_written(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  const TensorMeta& src = call.tensor("src");
  const std::vector<std::int64_t> strides = call.integers("stride");
  require(src.shape() == dims_of(call.integers("size")) &&
              strides.size() == src.shape().size() &&
              call.integer_or("storage_offset", 0) >= 0,
          "the source is not of the size that is written");
  for (std::size_t d = 0; d < strides.size(); ++d) {
    require(strides[d] > 0 || (strides[d] == 0 && src.shape()[d] <= 1),
            "elements are written to one place");
  }
  SpaceBuilder b;
  b.input(SpaceBuilder::whole(self.rank()));
  b.input(SpaceBuilder::whole(src.rank()));
  b.output(SpaceBuilder::whole(self.rank()),
           {.shape = self.shape(), .strides = strides_to_write(self)});
  return b.bound();
}

Notation channels_whole(const OpCall& call) {
  const int rank = call.first().rank();
  require(rank >= 3, "the input has no channels of images");
  const std::int64_t groups = call.integer("groups");
  require(groups > 0 && size_of(call.first(), 1) % groups == 0,
          "the groups do not divide the channels");
  const Term dims = term_of_dims(rank, {1});
  return {{dims}, {dims}, {}, {}};
}

void define_complex(Family& f) {
  f.add("complex", pointwise().typed("into_complex()").additive());
  f.add("polar", pointwise().typed("into_complex()"));
  f.add("view_as_real", mapped("...->...{c:2}")
                            .typed("real(first)")
                            .strided("real")
                            .linear_in("self")
                            .free());
  f.add("view_as_complex", in_dense_rows(mapped("...{c}->...")
                                             .typed("into_complex()")
                                             .strided("complex")
                                             .linear_in("self")
                                             .free()));
  f.add({"real", "imag"}, same_shape()
                              .typed("real(first)")
                              .strided("part")
                              .linear_in("self")
                              .free());
}

}  // namespace

void words_of_parts(RuleWords& words) {
  words.form(custom("part_written(input_sizes)", bind_part_written));
  words.form(custom("diagonal_written(input_sizes)", bind_diagonal_written));
  words.form(custom("windows_added(input_sizes)", bind_windows_added));
  words.form(custom("storage_written()", bind_storage_written));
  words.form(custom("diag_embed(dim1,dim2)", bind_diag_embed));
  words.form(mapped("channels_shuffled()", channels_whole));
  words.form(custom("diagonal_scatter(dim1,dim2)", bind_diagonal_scatter));
  words.dtype("into_complex", into_complex);
  words.strides("real", strides_as_real);
  words.strides("complex", strides_as_complex);
  words.strides("part", strides_of_part);
}

void define_parts(Family f) {
  define_complex(f);
  f.add("select_backward", part_written(kSelectBackward));
  f.add("slice_backward", part_written(kSliceBackward));
  f.add("diagonal_backward", form("diagonal_written(input_sizes)")
                                 .passes()
                                 .local_shape("input_sizes"));
  f.add("unfold_backward", form("windows_added(input_sizes)")
                               .linear_in("grad_in")
                               .local_shape("input_sizes"));
  f.add(
      "as_strided_scatter",
      in_order(form("storage_written()").passes({"self", "src"})),
      "replicated: it names places of storage, of which no rank holds a part");
  f.add("diag_embed", form("diag_embed(dim1,dim2)").passes());
  f.add("channel_shuffle",
        form("channels_shuffled()").strided("images").passes());
  f.add("native_channel_shuffle", form("channels_shuffled()").passes());
  f.add("diagonal_scatter", form("diagonal_scatter(dim1,dim2)").passes());
  f.add("new_empty_strided", factory("size")
                                 .typed("given(dtype,first)")
                                 .strided("stated")
                                 .ignores_values());
}

}  // namespace shardprop
