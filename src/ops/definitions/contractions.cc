// This file defines products under numpy's names. The equation follows from the
// ranks and from the dims that the call names.

#include "ops/definitions/dtypes.h"
#include "ops/definitions/families.h"

#include <algorithm>
#include <string>

namespace shardprop {
namespace {

constexpr std::string_view kLetters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

// Returns `count` letters, starting at index `first`.
std::string letters(std::size_t first, int count) {
  if (first + index(count) > kLetters.size()) {
    call_not_stated("the operands have more dims than there are letters");
  }
  return std::string(kLetters.substr(first, index(count)));
}

DType of_factors(const OpCall& call, std::size_t) {
  for (const TensorMeta& meta : call.op().inputs) {
    require(meta.dtype() == call.first().dtype(),
            "the factors are of two dtypes");
  }
  return call.first().dtype();
}

// Scalars get dims before they promote.
DType of_factors_with_dims(const OpCall& call, std::size_t) {
  return promote_types(call.tensor("self").dtype(),
                       call.tensor("other").dtype());
}

// The dims that both lists name are paired, in order, and each pair is summed.
std::string tensordot_notation(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  const TensorMeta& other = call.tensor("other");
  const auto dims_self = call.integers("dims_self");
  const auto dims_other = call.integers("dims_other");
  require(dims_self.size() == dims_other.size(),
          "each dim of the one factor goes with one of the other");
  const std::string left = letters(0, self.rank());
  std::string right = letters(left.size(), other.rank());
  std::string rest = left + right;
  for (std::size_t i = 0; i < dims_self.size(); ++i) {
    const int a = wrap_dim(dims_self[i], self.rank());
    const int b = wrap_dim(dims_other[i], other.rank());
    require(self.rank() > 0 && other.rank() > 0, "a factor is a scalar");
    require(rest.find(left[index(a)]) != std::string::npos &&
                rest.find(right[index(b)]) != std::string::npos,
            "a dim is named twice");
    std::erase(rest, left[index(a)]);
    std::erase(rest, right[index(b)]);
    // A dim of size 1 pairs with a dim of any size; then each of the two is
    // summed alone.
    const bool broadcasts = self.size(a) == 1 || other.size(b) == 1;
    if (!broadcasts) right[index(b)] = left[index(a)];
  }
  return left + ',' + right + "->" + rest;
}

// Sums over the last dims of both; a scalar multiplies.
std::string inner_notation(const OpCall& call) {
  const int a = call.tensor("self").rank();
  const int b = call.tensor("other").rank();
  const std::string left = letters(0, a);
  std::string right = letters(left.size(), b);
  if (a == 0 || b == 0) return left + ',' + right + "->" + left + right;
  right.back() = left.back();
  return left + ',' + right + "->" + left.substr(0, left.size() - 1) +
         right.substr(0, right.size() - 1);
}

bool multiplies_by_scalar(const OpCall& call) {
  return call.tensor("self").rank() == 0 || call.tensor("other").rank() == 0;
}

DType of_inner(const OpCall& call, std::size_t result) {
  return multiplies_by_scalar(call) ? promoted_dtype(call)
                                    : of_factors(call, result);
}

Dims inner_strides(const OpCall& call, const Dims& shape, DType dtype) {
  return multiplies_by_scalar(call)
             ? elementwise(call.op().inputs, dtype).strides()
             : make_meta(shape, dtype).strides();
}

// Operands broadcast, and the dim of both that `dim` names is summed.
std::string vecdot_notation(const OpCall& call) {
  const TensorMeta& x = call.tensor("x");
  const TensorMeta& y = call.tensor("y");
  const int rank = std::max(x.rank(), y.rank());
  require(rank > 0, "both factors are scalars");
  const int dim = call.dim("dim", rank);
  const std::string both = letters(0, rank);
  const std::string alone = letters(both.size(), rank);  // dims of size 1
  const auto term = [&](const TensorMeta& own, const TensorMeta& other) {
    std::string text;
    for (int d = rank - own.rank(); d < rank; ++d) {
      const int in_own = d - (rank - own.rank());
      const int in_other = d - (rank - other.rank());
      const bool repeats =
          own.size(in_own) == 1 && in_other >= 0 && other.size(in_other) != 1;
      text += repeats ? alone[index(d)] : both[index(d)];
    }
    return text;
  };
  std::string result = both;
  result.erase(index(dim), 1);
  return term(x, y) + ',' + term(y, x) + "->" + result;
}

// The result has one block for each element of the left operand.
std::string kron_notation(const OpCall& call) {
  const int a = call.tensor("self").rank();
  const int b = call.tensor("other").rank();
  const std::string left = letters(0, a);
  const std::string right = letters(left.size(), b);
  std::string result;
  for (int back = std::max(a, b); back > 0; --back) {
    std::string dim;
    if (back <= a) dim += left[index(a - back)];
    if (back <= b) dim += right[index(b - back)];
    result += dim.size() == 1 ? dim : '(' + dim + ')';
  }
  return left + ',' + right + "->" + result;
}

// Multiplies a chain of matrices; the first and the last may be vectors.
std::string chain_notation(const OpCall& call) {
  const std::vector<TensorMeta>& factors = call.op().inputs;
  require(!factors.empty(), "no factors are given");
  const bool of_vectors = call.base_name() == "linalg_multi_dot";
  require(!of_vectors || factors.size() >= 2, "only one factor is given");
  const std::string all = letters(0, static_cast<int>(factors.size()) + 1);
  std::string terms;
  std::string result;
  for (std::size_t i = 0; i < factors.size(); ++i) {
    const bool is_last = i + 1 == factors.size();
    const bool is_vector = of_vectors && factors[i].rank() == 1;
    require(is_vector ? i == 0 || is_last : factors[i].rank() == 2,
            "a factor is not a matrix");
    if (i > 0) terms += ',';
    if (!is_vector || i > 0) terms += all[i];
    if (!is_vector || i == 0) terms += all[i + 1];
    if (i == 0 && !is_vector) result += all[0];
    if (is_last && !is_vector) result += all[i + 1];
  }
  return terms + "->" + result;
}

}  // namespace

void define_contractions(Family f) {
  f.add("tensordot",
        einsum("tensordot()", tensordot_notation).typed(of_factors));
  f.add(
      "inner",
      einsum("inner()", inner_notation).typed(of_inner).strided(inner_strides));
  f.add("linalg_vecdot", einsum("vecdot()", vecdot_notation).typed(of_factors));
  f.add("kron",
        in_order(einsum("kron()", kron_notation).typed(of_factors_with_dims)));
  f.add({"linalg_multi_dot", "chain_matmul"},
        einsum("chain()", chain_notation).typed(of_factors));
}

}  // namespace shardprop
