// This file defines products under numpy's names. The equation follows from the
// ranks and from the dims that the call names.

#include "ops/definitions/dtypes.h"
#include "ops/definitions/families.h"
#include "ops/definitions/words.h"
#include "ops/forms/mapped.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {
namespace {

// --- einsum: its equation is nearly a sharding rule ---

// A letter that appears twice in one operand is a diagonal, so it is blocked.
// Without an arrow the result has the letters that appear once, in alphabetical
// order.
Notation einsum_notation(const OpCall& call) {
  std::string equation(call.op().string_arg("equation").value_or(""));
  std::erase(equation, ' ');
  const std::size_t arrow = equation.find("->");
  const std::string inputs = equation.substr(0, arrow);
  std::map<char, int> times;
  std::map<char, int> in_term;
  std::string diagonals;
  for (const char c : inputs) {
    if (c == ',') {
      in_term.clear();
    } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      ++times[c];
      if (++in_term[c] == 2) diagonals += c;
    } else {
      require(c == '.', "the equation is not of letters");
    }
  }
  require(inputs.empty() || times.size() > 0 || arrow != std::string::npos ||
              inputs.find('.') != std::string::npos,
          "the equation is not of letters");
  std::string output;
  if (arrow != std::string::npos) {
    output = equation.substr(arrow + 2);
  } else {
    if (inputs.find("...") != std::string::npos) output = "...";
    for (const auto& [letter, count] : times) {
      if (count == 1) output += letter;
    }
  }
  for (const char c : output) {
    require(c == '.' || times.contains(c),
            "the result names an unknown letter");
  }
  const auto term_of = [&](std::string_view letters) {
    Term term;
    for (std::size_t i = 0; i < letters.size(); ++i) {
      if (letters.substr(i, 3) == "...") {
        term.leading();
        i += 2;
        continue;
      }
      require(letters[i] != '.', "the equation has dots that are no `...`");
      const bool is_diagonal = diagonals.find(letters[i]) != std::string::npos;
      term.add(letters[i], is_diagonal ? DimUse::kBlocked : DimUse::kSharded);
    }
    require(std::count_if(term.dims.begin(), term.dims.end(),
                          [](const TermDim& dim) {
                            return dim.kind == TermDim::Kind::kLeading;
                          }) <= 1,
            "a term has two `...`");
    return term;
  };
  Notation notation;
  for (std::size_t from = 0; from <= inputs.size();) {
    const std::size_t end = std::min(inputs.find(',', from), inputs.size());
    notation.inputs.push_back(
        term_of(std::string_view(inputs).substr(from, end - from)));
    from = end + 1;
  }
  notation.outputs = {term_of(output)};
  return notation;
}

// A permuted operand is a view of it.
Dims einsum_strides(const OpCall& call, const Dims& shape, DType dtype) {
  const Notation notation = einsum_notation(call);
  const std::vector<TermDim>& from = notation.inputs[0].dims;
  const std::vector<TermDim>& into = notation.outputs[0].dims;
  const bool is_permuted =
      notation.inputs.size() == 1 &&
      std::is_permutation(from.begin(), from.end(), into.begin(), into.end()) &&
      std::all_of(from.begin(), from.end(), [](const TermDim& dim) {
        return dim.kind == TermDim::Kind::kFactors &&
               dim.factors[0].use == DimUse::kSharded;
      });
  if (!is_permuted) return make_meta(shape, dtype).strides();
  Dims strides;
  for (const TermDim& dim : into) {
    const auto at = std::find(from.begin(), from.end(), dim) - from.begin();
    strides.push_back(nth(call.first().strides(), index(at)));
  }
  return strides;
}

DType of_factors(const OpCall& call, std::size_t) {
  for (const TensorMeta& meta : call.op().inputs) {
    require(meta.dtype() == call.first().dtype(),
            "the factors are of two dtypes");
  }
  return call.first().dtype();
}

// The dims that both lists name are paired, in order, and each pair is summed.
Notation tensordot_notation(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  const TensorMeta& other = call.tensor("other");
  const auto dims_self = call.integers("dims_self");
  const auto dims_other = call.integers("dims_other");
  require(dims_self.size() == dims_other.size(),
          "each dim of the one factor goes with one of the other");
  const Term left = dims_from(0, self.rank());
  Term right = dims_from(self.rank(), other.rank());
  std::vector<bool> left_summed(left.dims.size(), false);
  std::vector<bool> right_summed(right.dims.size(), false);
  for (std::size_t i = 0; i < dims_self.size(); ++i) {
    const auto a = index(wrap_dim(dims_self[i], self.rank()));
    const auto b = index(wrap_dim(dims_other[i], other.rank()));
    require(self.rank() > 0 && other.rank() > 0, "a factor is a scalar");
    require(!left_summed[a] && !right_summed[b], "a dim is named twice");
    left_summed[a] = true;
    right_summed[b] = true;
    // A dim of size 1 pairs with a dim of any size; then each of the two is
    // summed alone.
    const bool broadcasts = self.shape()[a] == 1 || other.shape()[b] == 1;
    if (!broadcasts) right.dims[b] = left.dims[a];
  }
  Term rest;
  for (std::size_t d = 0; d < left.dims.size(); ++d) {
    if (!left_summed[d]) rest.dims.push_back(left.dims[d]);
  }
  for (std::size_t d = 0; d < right.dims.size(); ++d) {
    if (!right_summed[d]) rest.dims.push_back(right.dims[d]);
  }
  return {{left, right}, {rest}, {}, {}};
}

// Sums over the last dims of both; a scalar multiplies.
Notation inner_notation(const OpCall& call) {
  const int a = call.tensor("self").rank();
  const int b = call.tensor("other").rank();
  Term left = dims_from(0, a);
  Term right = dims_from(a, b);
  Term result = dims_from(0, a + b);
  if (a > 0 && b > 0) {
    right.dims.back() = left.dims.back();
    result = dims_from(0, a - 1);
    result.dims.insert(result.dims.end(), right.dims.begin(),
                       right.dims.end() - 1);
  }
  return {{left, right}, {result}, {}, {}};
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
Notation vecdot_notation(const OpCall& call) {
  const TensorMeta& x = call.tensor("x");
  const TensorMeta& y = call.tensor("y");
  const int rank = std::max(x.rank(), y.rank());
  require(rank > 0, "both factors are scalars");
  const int dim = call.dim("dim", rank);
  const auto term = [&](const TensorMeta& own, const TensorMeta& other) {
    Term made;
    for (int d = rank - own.rank(); d < rank; ++d) {
      const int in_own = d - (rank - own.rank());
      const int in_other = d - (rank - other.rank());
      const bool repeats = size_of(own, in_own) == 1 && in_other >= 0 &&
                           size_of(other, in_other) != 1;
      // A dim of size 1 has a name of its own.
      made.add(FactorName::of_dim(repeats ? rank + d : d));
    }
    return made;
  };
  return {{term(x, y), term(y, x)}, {term_with(rank, dim, {})}, {}, {}};
}

// The result has one block for each element of the left operand.
Notation kron_notation(const OpCall& call) {
  const int a = call.tensor("self").rank();
  const int b = call.tensor("other").rank();
  Term result;
  for (int back = std::max(a, b); back > 0; --back) {
    TermDim dim;
    if (back <= a) dim.factors.push_back({FactorName::of_dim(a - back)});
    if (back <= b) dim.factors.push_back({FactorName::of_dim(a + b - back)});
    result.dims.push_back(dim);
  }
  return {{dims_from(0, a), dims_from(a, b)}, {result}, {}, {}};
}

// Multiplies a chain of matrices; if `of_vectors`, the first and the last may be
// vectors.
Notation chain_notation(const OpCall& call, bool of_vectors) {
  const std::vector<TensorMeta>& factors = call.op().inputs;
  require(!factors.empty(), "no factors are given");
  require(!of_vectors || factors.size() >= 2, "only one factor is given");
  Notation notation;
  Term result;
  for (std::size_t i = 0; i < factors.size(); ++i) {
    const bool is_last = i + 1 == factors.size();
    const bool is_vector = of_vectors && factors[i].rank() == 1;
    require(is_vector ? i == 0 || is_last : factors[i].rank() == 2,
            "a factor is not a matrix");
    const FactorName rows = FactorName::of_dim(static_cast<int>(i));
    const FactorName columns = FactorName::of_dim(static_cast<int>(i) + 1);
    Term& term = notation.inputs.emplace_back();
    if (!is_vector || i > 0) term.add(rows);
    if (!is_vector || i == 0) term.add(columns);
    if (i == 0 && !is_vector) result.add(rows);
    if (is_last && !is_vector) result.add(columns);
  }
  notation.outputs = {result};
  return notation;
}

}  // namespace

void words_of_contractions(RuleWords& words) {
  words.form(einsum("by_equation()", einsum_notation));
  words.form(einsum("tensordot()", tensordot_notation));
  words.form(einsum("inner()", inner_notation));
  words.form(einsum("vecdot()", vecdot_notation));
  words.form(einsum("kron()", kron_notation));
  words.form(einsum("chain()", [](const OpCall& call) {
    return chain_notation(call, false);
  }));
  words.form(einsum("chain(vectors)", [](const OpCall& call) {
    return chain_notation(call, true);
  }));
  words.strides("einsum", einsum_strides);
  words.dtype("inner", of_inner);
  words.strides("inner", inner_strides);
}

void define_contractions(Family f) {
  f.add("einsum", form("by_equation()").promoted().strided("einsum"));
  f.add("tensordot", form("tensordot()").typed("same"));
  f.add("inner", form("inner()").typed("inner()").strided("inner"));
  f.add("linalg_vecdot", form("vecdot()").typed("same"));
  // Scalars get dims before they promote.
  f.add("kron", in_order(form("kron()").typed("promote(self,other)")));
  f.add("linalg_multi_dot", form("chain(vectors)").typed("same"));
  f.add("chain_matmul", form("chain()").typed("same"));
}

}  // namespace shardprop
