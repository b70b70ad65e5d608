// This file defines matrix products.

#include "ops/definitions/families.h"
#include "ops/forms/mapped.h"

#include <cmath>
#include <string>

namespace shardprop {
namespace {

void same_dtypes(const OpCall& call, std::string_view a, std::string_view b) {
  require(call.tensor(a).dtype() == call.tensor(b).dtype(),
          "the factors are of two dtypes");
}

// Returns the dtype of operand `a`, which `b` shares, unless the call asks for
// another one.
OpDefinition::TypeOf product_of(std::string_view a, std::string_view b) {
  return [a = std::string(a), b = std::string(b)](const OpCall& call,
                                                  std::size_t) {
    same_dtypes(call, a, b);
    const DType own = call.tensor(a).dtype();
    const DType wanted = call.dtype_or("out_dtype", own);
    const bool is_half = own == DType::kF16 || own == DType::kBF16;
    require(wanted == own || (is_half && wanted == DType::kF32),
            "`out_dtype` is not the factors', nor f32 of halves");
    return wanted;
  };
}

DType of_int_product(const OpCall& call, std::size_t) {
  const DType own = call.first().dtype();
  require(own == DType::kI8 || own == DType::kU8, "the factors are not bytes");
  return DType::kI32;
}

// The added operand has the dtype of the product.
OpDefinition::TypeOf sum_of(std::string_view a, std::string_view b) {
  return [product = product_of(a, b)](const OpCall& call, std::size_t result) {
    const DType dtype = product(call, result);
    require(call.has("out_dtype") || call.tensor("self").dtype() == dtype,
            "what is added is of another dtype");
    return dtype;
  };
}

// The bias, if any, has the dtype of the product.
OpDefinition::TypeOf affine_of(std::string_view a, std::string_view b) {
  return [product = product_of(a, b)](const OpCall& call, std::size_t result) {
    const DType dtype = product(call, result);
    const TensorMeta* bias = call.optional_tensor("bias");
    require(bias == nullptr || bias->dtype() == dtype,
            "the bias is of another dtype");
    return dtype;
  };
}

// A fractional scale of integers acts differently on an empty product. So each
// rank must have an element of every factor.
void whole_factors(const OpCall& call, IndexSpace& space) {
  if (is_floating(call.op().outputs[0].dtype())) return;
  for (const char* scale : {"beta", "alpha"}) {
    const double value = call.op().float_arg(scale).value_or(1);
    if (value == std::trunc(value)) continue;
    for (Factor& factor : space.factors) factor.least = 1;
  }
}

OpDefinition added_product(std::string_view notation, std::string_view a,
                           std::string_view b) {
  return einsum(notation)
      .typed(sum_of(a, b))
      .refine("whole_factors()", whole_factors);
}

// The result has the memory order of the added tensor if both have the same
// shape.
Dims strides_of_addr(const OpCall& call, const Dims& shape, DType dtype) {
  const TensorMeta& self = call.tensor("self");
  return self.shape() == shape ? dense_like(self, shape, dtype).strides()
                               : make_meta(shape, dtype).strides();
}

// The rules are those of numpy. A vector is a row on the left and a column on
// the right, and the result lacks that dim; leading dims broadcast.
constexpr std::string_view kMatmul =
    "k,k-> | k,...kn->...n | ...mk,k->...m | ...mk,...kn->...mn";

// Three operands get new dims of size 1, are multiplied, and are summed over
// some dims.
Notation trilinear_notation(const OpCall& call) {
  const auto expanded = call.integers("expand1").size();
  const std::size_t rank = call.tensor("i1").shape().size() + expanded;
  const std::int64_t unrolled = call.integer("unroll_dim");
  require(unrolled >= 0 && unrolled < static_cast<std::int64_t>(rank),
          "`unroll_dim` is out of range");
  const auto names = [&](const char* argument, int most) {
    std::vector<bool> named(rank, false);
    for (const std::int64_t dim : call.integers(argument)) {
      named[index(wrap_dim(dim, most))] = true;
    }
    return named;
  };
  const auto others = [&](const std::vector<bool>& left_out) {
    Term term;
    for (std::size_t d = 0; d < rank; ++d) {
      if (!left_out[d]) term.add(FactorName::of_dim(static_cast<int>(d)));
    }
    return term;
  };
  const int most = static_cast<int>(rank);
  std::vector<bool> anywhere(rank, true);
  Notation notation;
  for (const char* argument : {"expand1", "expand2", "expand3"}) {
    const std::vector<bool> absent = names(argument, most);
    for (std::size_t d = 0; d < rank; ++d) {
      anywhere[d] = anywhere[d] && absent[d];
    }
    notation.inputs.push_back(others(absent));
  }
  const std::vector<bool> summed = names("sumdim", most);
  for (std::size_t d = 0; d < rank; ++d) {
    require(!anywhere[d], "no operand has one of the dims");
  }
  notation.outputs = {others(summed)};
  return notation;
}

}  // namespace

void define_matmul(Family f) {
  f.add("_trilinear", einsum("trilinear()", trilinear_notation));
  f.add("mm", einsum("mk,kn->mn").typed(product_of("self", "mat2")));
  f.add("bmm", einsum("bmk,bkn->bmn").typed(product_of("self", "mat2")));
  f.add("mv", einsum("mk,k->m").typed(product_of("self", "vec")));
  f.add("dot", einsum("k,k->").typed(product_of("self", "tensor")));
  f.add("vdot", einsum("k,k->").typed(product_of("self", "other")));
  f.add({"outer", "ger"}, einsum("m,n->mn").promoted());
  f.add("addmm", added_product("+mn,mk,kn->mn", "mat1", "mat2"));
  // Without rows or columns the kernel does not broadcast the added operand.
  f.add("addmv", added_product("+m,mk,k->m", "mat", "vec").nonempty());
  f.add("addr", einsum("+mn,m,n->mn").promoted().strided(strides_of_addr));
  f.add("addbmm", added_product("+mn,bmk,bkn->mn", "batch1", "batch2"));
  f.add("baddbmm", added_product("+bmn,bmk,bkn->bmn", "batch1", "batch2"));
  f.add("matmul", einsum(kMatmul).typed(product_of("self", "other")));
  f.add("linear", einsum("...k,k,+->... | ...k,nk,+n->...n")
                      .typed(affine_of("input", "weight")));
  f.add("bilinear", einsum("...a,...b,nab,+n->...n")
                        .typed(affine_of("input1", "weight"))
                        .nonempty());
  f.add("_int_mm", einsum("mk,kn->mn").typed(of_int_product));
}

}  // namespace shardprop
