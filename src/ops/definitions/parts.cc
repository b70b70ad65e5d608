// Complex numbers as pairs of reals, and the gradients of parts: a tensor of
// zeros with one part written.

#include "ops/definitions/dtypes.h"
#include "ops/definitions/families.h"
#include "ops/forms/mapped.h"

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

DType into_real(const OpCall& call, std::size_t) {
  return real_dtype(call.first().dtype());
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
              call.first().size(-1 + call.first().rank()) == 2,
          "the last dim holds no pairs");
  strides.pop_back();
  for (std::int64_t& stride : strides) {
    require(stride % 2 == 0, "pairs do not lie together");
    stride /= 2;
  }
  return strides;
}

// real and imag of a complex tensor; of a real one, itself.
Dims strides_of_part(const OpCall& call, const Dims&, DType dtype) {
  Dims strides = call.first().strides();
  if (dtype == call.first().dtype()) return strides;
  for (std::int64_t& stride : strides) stride = multiply_sizes(stride, 2);
  return strides;
}

// The dims of `input_sizes` but for the one that is selected or sliced; each
// rank is told the sizes that it holds.
BoundForm bind_part_written(const OpCall& call) {
  const TensorMeta& grad = call.tensor("grad_output");
  const Dims shape = dims_of(call.integers("input_sizes"));
  const int rank = static_cast<int>(shape.size());
  const bool selects = call.has("index");
  require(rank > 0 && grad.rank() == rank - (selects ? 1 : 0),
          "the gradient does not match the input's sizes");
  const int dim = call.dim("dim", rank);
  SpaceBuilder b;
  Operand whole;
  Operand part;
  for (int d = 0; d < rank; ++d) {
    if (d == dim) {
      whole.dims.push_back(
          b.blocked(shape[index(d)], "a part of it is written"));
      if (!selects) part.dims.emplace_back();
      continue;
    }
    const int at = selects && d > dim ? d - 1 : d;
    require(grad.size(at) == shape[index(d)],
            "the gradient does not match the input's sizes");
    whole.dims.push_back(b.dim(shape[index(d)]));
    part.dims.push_back(whole.dims.back());
  }
  b.input(std::move(part));
  b.output(std::move(whole), {.shape = shape});
  return b.bound();
}

// The last dim becomes a diagonal of two new ones.
BoundForm bind_diag_embed(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  require(self.rank() > 0, "a scalar is no diagonal");
  const int rank = self.rank() + 1;
  const int a = call.dim("dim1", rank);
  const int c = call.dim("dim2", rank);
  require(a != c, "a diagonal lies in two dims");
  const std::int64_t offset = call.integer("offset");
  constexpr std::int64_t kFar = std::int64_t{1} << 40;
  require(offset > -kFar && offset < kFar, "an offset is out of range");
  const std::int64_t side =
      add_sizes(self.size(self.rank() - 1), offset < 0 ? -offset : offset);
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

// The diagonal of `self` replaced by `src`, other dims alike.
BoundForm bind_diagonal_scatter(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  const TensorMeta& src = call.tensor("src");
  require(self.rank() >= 2 && src.rank() == self.rank() - 1,
          "the source is no diagonal of self");
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
    require(src.size(static_cast<int>(part.dims.size())) == self.size(d),
            "the source is no diagonal of self");
    part.dims.push_back(whole.dims[index(d)]);
  }
  part.dims.emplace_back();
  b.input(whole);
  b.input(std::move(part));
  b.output(whole);
  return b.bound();
}

void define_complex(Family& f) {
  f.add("complex", pointwise().typed(into_complex).additive());
  f.add("polar", pointwise().typed(into_complex));
  const auto two = [](const OpCall&, char) { return std::int64_t{2}; };
  f.add("view_as_real", mapped("...->...[c]", two)
                            .typed(into_real)
                            .strided(strides_as_real)
                            .linear_in("self")
                            .free());
  f.add("view_as_real_copy",
        mapped("...->...[c]", two).typed(into_real).linear_in("self"));
  f.add("view_as_complex", mapped("...[c]->...")
                               .typed(into_complex)
                               .strided(strides_as_complex)
                               .linear_in("self")
                               .free());
  f.add("view_as_complex_copy",
        mapped("...[c]->...").typed(into_complex).linear_in("self"));
  f.add({"real", "imag"}, same_shape()
                              .typed(into_real)
                              .strided(strides_of_part)
                              .linear_in("self")
                              .free());
}

}  // namespace

void define_parts(Family f) {
  define_complex(f);
  f.add({"select_backward", "slice_backward"},
        custom("part_written(input_sizes)", bind_part_written)
            .linear_in("grad_output")
            .local_shape("input_sizes"));
  f.add("diag_embed",
        custom("diag_embed(dim1,dim2)", bind_diag_embed).linear_in("self"));
  f.add("diagonal_scatter",
        custom("diagonal_scatter(dim1,dim2)", bind_diagonal_scatter)
            .like("self")
            .passes());
  f.add("new_empty_strided",
        factory("size")
            .typed([](const OpCall& call, std::size_t) {
              return call.dtype_or("dtype", call.first().dtype());
            })
            .strided([](const OpCall& call, const Dims& shape, DType) {
              Dims strides = dims_of(call.integers("stride"));
              require(strides.size() == shape.size(), "one stride per dim");
              return strides;
            })
            .ignores_values());
}

}  // namespace shardprop
