// This file defines matrix products.

#include "ops/definitions/families.h"
#include "ops/definitions/words.h"
#include "ops/forms/mapped.h"

#include <cmath>
#include <string>

namespace shardprop {
namespace {

DType of_int_product(const OpCall& call, std::size_t) {
  const DType own = call.first().dtype();
  require(own == DType::kI8 || own == DType::kU8, "the factors are not bytes");
  return DType::kI32;
}

std::string factors_dtype(std::string_view a, std::string_view b) {
  return "widened(out_dtype,alike(" + std::string(a) + ',' + std::string(b) +
         "))";
}

// Returns the dtype of the factors, which the tensor argument `added` shares.
std::string with_addend(std::string_view added, std::string_view a,
                        std::string_view b) {
  return "addend(" + std::string(added) + ',' + factors_dtype(a, b) + ')';
}

OpDefinition added_product(std::string_view notation, std::string_view a,
                           std::string_view b) {
  return einsum(notation)
      .typed(with_addend("self", a, b))
      .scales({"beta", "alpha"});
}

// The result has the memory order of the added tensor if both have the same
// shape.
Dims strides_of_addr(const OpCall& call, const Dims& shape, DType dtype) {
  const TensorMeta& self = call.tensor("self");
  return self.shape() == shape ? dense_like(self, shape, dtype).strides()
                               : make_meta(shape, dtype).strides();
}

// CUDA's kernel has another approximation of gelu than other devices, so that ranks do not
// compute it by an operator of its own. They compute relu.
constexpr std::string_view kActivated =
    "if use_gelu: +mn,m{k},{k}n->mn | +mn,m[k],[k]n->mn";
constexpr std::string_view kActivation = R"(
y = addmm(self, mat1, mat2, beta=beta, alpha=alpha)
y = gelu(y) if use_gelu
y = relu(y) if not use_gelu
return y)";

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

void words_of_matmul(RuleWords& words) {
  words.form(einsum("trilinear()", trilinear_notation));
  words.strides("addr", strides_of_addr);
  words.dtype("int_product", of_int_product);
}

void define_matmul(Family f) {
  f.add("_trilinear", form("trilinear()"));
  f.add("mm", einsum("mk,kn->mn").typed(factors_dtype("self", "mat2")));
  f.add("bmm", einsum("bmk,bkn->bmn").typed(factors_dtype("self", "mat2")));
  f.add("mv", einsum("mk,k->m").typed(factors_dtype("self", "vec")));
  f.add("dot", einsum("k,k->").typed(factors_dtype("self", "tensor")));
  f.add("vdot", einsum("k,k->").typed(factors_dtype("self", "other")));
  f.add({"outer", "ger"}, einsum("m,n->mn").promoted());
  f.add("addmm", added_product("+mn,mk,kn->mn", "mat1", "mat2"));
  f.add("_addmm_activation", added_product(kActivated, "mat1", "mat2")
                                 .nonlinear()
                                 .same_without("k")
                                 .decomposed(kActivation));
  // Without rows or columns the kernel does not broadcast the added operand.
  f.add("addmv", added_product("+m,mk,k->m", "mat", "vec").nonempty());
  f.add("addr", einsum("+mn,m,n->mn").promoted().strided("addr"));
  f.add("addbmm", added_product("+mn,bmk,bkn->mn", "batch1", "batch2"));
  f.add("baddbmm", added_product("+bmn,bmk,bkn->bmn", "batch1", "batch2"));
  f.add("matmul", einsum(kMatmul).typed(factors_dtype("self", "other")));
  f.add("linear", einsum("...k,k,+->... | ...k,nk,+n->...n")
                      .typed(with_addend("bias", "input", "weight")));
  f.add("bilinear", einsum("...a,...b,nab,+n->...n")
                        .typed(with_addend("bias", "input1", "weight"))
                        .nonempty());
  f.add("_int_mm", einsum("mk,kn->mn").typed("int_product()"));
}

}  // namespace shardprop
