// Evaluates products of tensors, summed over the factors that the result lacks.
// They follow from the index space of the call.

#include "base/index.h"
#include "reference/kernels.h"
#include "reference/linalg/matrix_product.h"
#include "reference/tensors/indexing.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace shardprop::reference {
namespace {

// The factors of an operand, dim by dim, with one axis per factor.
struct Axes {
  std::vector<FactorId> factors;
  Dims strides;
};

// Returns each factor of each dim with its stride in the operand, which is
// row-major.
Axes axes_of(const IndexSpace& space, const Operand& operand) {
  Axes out;
  std::int64_t step = 1;
  for (std::size_t d = operand.dims.size(); d-- > 0;) {
    const DimFactors& factors = operand.dims[d];
    for (std::size_t f = factors.size(); f-- > 0;) {
      out.factors.push_back(factors[f]);
      out.strides.push_back(step);
      step *= space.factor(factors[f]).size;
    }
  }
  return out;
}

std::int64_t stride_of(const Axes& axes, int factor) {
  for (std::size_t i = 0; i < axes.factors.size(); ++i) {
    if (axes.factors[i] == factor) return axes.strides[i];
  }
  return 0;
}

bool holds(const Axes& axes, int factor) {
  return std::find(axes.factors.begin(), axes.factors.end(), factor) !=
         axes.factors.end();
}

// Returns the values with these factors as dims. They repeat along a factor
// that the operand lacks.
template <class T>
std::vector<T> arranged(const IndexSpace& space, const Axes& axes,
                        const std::vector<T>& from,
                        const std::vector<int>& factors) {
  Dims shape;
  Dims strides;
  for (const int factor : factors) {
    shape.push_back(space.factor(factor).size);
    strides.push_back(stride_of(axes, factor));
  }
  std::vector<T> out;
  for_each_offset(shape, strides, [&](std::int64_t offset) {
    out.push_back(from[index(offset)]);
  });
  return out;
}

std::int64_t points(const IndexSpace& space, const std::vector<int>& factors) {
  std::int64_t n = 1;
  for (const int factor : factors) n *= space.factor(factor).size;
  return n;
}

std::vector<int> joined(std::initializer_list<std::vector<int>> parts) {
  std::vector<int> out;
  for (const auto& part : parts)
    out.insert(out.end(), part.begin(), part.end());
  return out;
}

// Multiplies operands a and b and sums over the factors that the result lacks;
// row-major.
template <class T>
std::vector<T> product_of_terms(const IndexSpace& space, const Axes& result,
                                const Axes& a, const std::vector<T>& a_values,
                                const Axes& b, const std::vector<T>& b_values) {
  std::vector<int> batch;
  std::vector<int> rows;
  std::vector<int> columns;
  std::vector<int> summed;
  for (int f = 0; f < static_cast<int>(space.factors.size()); ++f) {
    const bool in_a = holds(a, f);
    const bool in_b = holds(b, f);
    if (!holds(result, f)) {
      if (in_a || in_b) summed.push_back(f);
    } else if (in_a == in_b) {
      batch.push_back(f);
    } else {
      (in_a ? rows : columns).push_back(f);
    }
  }
  const std::vector<T> c = batched_product(
      arranged(space, a, a_values, joined({batch, rows, summed})),
      arranged(space, b, b_values, joined({batch, summed, columns})),
      {points(space, batch), points(space, rows), points(space, summed),
       points(space, columns)});
  // Maps (batch, rows, columns) back to the dims of the result.
  Axes made;
  std::int64_t step = 1;
  const std::vector<int> order = joined({batch, rows, columns});
  for (std::size_t i = order.size(); i-- > 0;) {
    made.factors.push_back(static_cast<FactorId>(order[i]));
    made.strides.push_back(step);
    step *= space.factor(order[i]).size;
  }
  std::vector<int> wanted(result.factors.rbegin(), result.factors.rend());
  return arranged(space, made, c, wanted);
}

// Returns the operand that is added to the product: addmm's self, linear's
// bias.
std::optional<std::size_t> added_operand(const Call& call) {
  const std::string_view name = call.base_name();
  const bool adds = name.starts_with("add") || name == "baddbmm";
  const std::string_view argument = adds ? "self" : "bias";
  if (!call.has(argument) || (!adds && name != "linear")) return std::nullopt;
  return call.op().tensor_arg(argument);
}

template <class T>
std::vector<T> scaled(std::vector<T> x, double by) {
  for (T& v : x) v *= static_cast<T>(by);
  return x;
}

template <class T>
std::vector<Tensor> multiplied(const Call& call, const IndexSpace& space) {
  const auto added = added_operand(call);
  std::vector<std::size_t> factors;
  for (std::size_t i = 0; i < call.inputs().size(); ++i) {
    if (i != added) factors.push_back(i);
  }
  require(factors.size() == 2, "a product of two tensors");
  const Axes result = axes_of(space, space.outputs[0]);
  const auto axes = [&](std::size_t i) {
    return axes_of(space, space.inputs[factors[i]]);
  };
  const auto read = [&](std::size_t i) {
    return values<T>(call.inputs()[factors[i]]);
  };
  std::vector<T> left = read(0);
  if constexpr (std::is_same_v<T, Complex>) {
    if (call.base_name() == "vdot") {
      for (T& v : left) v = std::conj(v);
    }
  }
  std::vector<T> out =
      product_of_terms(space, result, axes(0), left, axes(1), read(1));
  if (added) {
    const double alpha = call.number("alpha", 1);
    const double beta = call.number("beta", 1);
    if (alpha != 1) out = scaled(std::move(out), alpha);
    // With beta 0 the added tensor is not read, so its NaNs have no effect.
    if (beta != 0) {
      const std::vector<int> wanted(result.factors.rbegin(),
                                    result.factors.rend());
      const std::vector<T> terms =
          scaled(arranged(space, axes_of(space, space.inputs[*added]),
                          values<T>(call.inputs()[*added]), wanted),
                 beta);
      for (std::size_t i = 0; i < out.size(); ++i) out[i] += terms[i];
    }
  }
  return {call.made(out)};
}

std::vector<Tensor> einsum(const Call& call) {
  auto space = call.library().index_space(call.op());
  if (!space) call_error(space.error().message);
  switch (domain_of(call.out().dtype())) {
    case Domain::kReal:
      return multiplied<double>(call, *space);
    // Arithmetic wraps, as that of unsigned integers does.
    case Domain::kInteger:
      return multiplied<std::int64_t>(call, *space);
    case Domain::kComplex:
      break;
  }
  return multiplied<Complex>(call, *space);
}

// Multiplies any number of operands, point by point, and sums.
template <class T>
std::vector<Tensor> summed(const Call& call, const IndexSpace& space) {
  std::vector<int> factors(space.factors.size());
  std::iota(factors.begin(), factors.end(), 0);
  std::vector<T> terms(index(points(space, factors)), T{1});
  for (std::size_t i = 0; i < call.inputs().size(); ++i) {
    const std::vector<T> each = arranged(space, axes_of(space, space.inputs[i]),
                                         values<T>(call.inputs()[i]), factors);
    for (std::size_t p = 0; p < terms.size(); ++p) {
      terms[p] = combined<T>(Combine::kMultiply, terms[p], each[p]);
    }
  }
  const Axes result = axes_of(space, space.outputs[0]);
  Dims shape;
  Dims strides;
  for (const int factor : factors) {
    shape.push_back(space.factor(factor).size);
    strides.push_back(stride_of(result, factor));
  }
  std::vector<T> out(index(call.out().numel()));
  std::size_t p = 0;
  for_each_offset(shape, strides, [&](std::int64_t offset) {
    T& sum = out[index(offset)];
    sum = combined<T>(Combine::kAdd, sum, terms[p++]);
  });
  return {call.made(out)};
}

std::vector<Tensor> trilinear(const Call& call) {
  auto space = call.library().index_space(call.op());
  if (!space) call_error(space.error().message);
  return in_domain(call.out().dtype(),
                   [&]<class T>(T) { return summed<T>(call, *space); });
}

}  // namespace

void add_products(Kernels& k) {
  k.add({"mm", "mm.dtype", "bmm", "bmm.dtype", "mv", "dot", "vdot", "outer",
         "ger", "addmm", "addmm.dtype", "addmv", "addr", "addbmm", "baddbmm",
         "baddbmm.dtype", "matmul", "linear"},
        einsum);
  k.add({"_trilinear"}, trilinear);
}

}  // namespace shardprop::reference
