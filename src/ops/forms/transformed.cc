// Fourier transforms: the transformed dims are blocked, the others are
// parallel.

#include "base/index.h"
#include "ops/forms/forms.h"
#include "ops/forms/shared_form.h"

#include <algorithm>
#include <optional>

namespace shardprop {
namespace {

// Returns the transformed dims; the transform treats the last of them
// specially.
std::vector<int> dims_of_call(const OpCall& call, int rank) {
  if (const auto dims = call.optional_integers("dim")) {
    std::vector<int> out;
    require(rank > 0 || dims->empty(), "a tensor without dims is transformed");
    for (const std::int64_t dim : *dims) {
      const int at = wrap_dim(dim, rank);
      require(std::find(out.begin(), out.end(), at) == out.end(),
              "a dim is transformed twice");
      out.push_back(at);
    }
    return out;
  }
  const auto sizes = call.has("s") ? call.optional_integers("s") : std::nullopt;
  const int count = sizes ? static_cast<int>(sizes->size()) : rank;
  require(count <= rank, "more dims are transformed than there are");
  std::vector<int> out;
  for (int d = rank - count; d < rank; ++d) out.push_back(d);
  return out;
}

// Returns the requested length of the i-th transformed dim.
std::optional<std::int64_t> length_given(const OpCall& call, std::size_t i,
                                         bool last) {
  if (call.has("last_dim_size") && last) return call.integer("last_dim_size");
  if (call.has("n") && call.op().int_arg("n")) return call.integer("n");
  if (call.has("s")) {
    const auto sizes = call.optional_integers("s");
    if (sizes && i < sizes->size() && (*sizes)[i] != -1) return (*sizes)[i];
  }
  return std::nullopt;
}

// Returns the strides of the result of one MKL pass over some dims. The
// transformed dims are innermost, in their order; the others keep the order of
// the input.
Dims pass_strides(const Dims& strides, const Dims& sizes,
                  const std::vector<int>& dims) {
  std::vector<int> order;
  for (int d = 0; d < static_cast<int>(sizes.size()); ++d) {
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) {
      order.push_back(d);
    }
  }
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return strides[index(a)] > strides[index(b)];
  });
  order.insert(order.end(), dims.begin(), dims.end());
  Dims out(sizes.size(), 0);
  std::int64_t step = 1;
  for (auto dim = order.rbegin(); dim != order.rend(); ++dim) {
    out[index(*dim)] = step;
    step = multiply_sizes(step, std::max<std::int64_t>(sizes[index(*dim)], 1));
  }
  return out;
}

// Sorts the dims by stride, outermost first. The last one keeps its position if
// `but_last`.
std::vector<int> by_stride(std::vector<int> dims, const Dims& strides,
                           bool but_last) {
  std::stable_sort(
      dims.begin(), dims.end() - (but_last ? 1 : 0),
      [&](int a, int b) { return strides[index(a)] > strides[index(b)]; });
  return dims;
}

// `sizes` is the shape of the result.
Dims transform_strides(const OpCall& call, Transform kind,
                       const std::vector<int>& dims, const Dims& sizes,
                       bool padded) {
  const TensorMeta& self = call.tensor("self");
  if (dims.empty()) return dense_like(self, sizes, self.dtype()).strides();
  Dims strides =
      padded ? make_meta(sizes, self.dtype()).strides() : self.strides();
  if (kind == Transform::kComplex) {
    return pass_strides(strides, sizes, by_stride(dims, strides, false));
  }
  const std::vector<int> last = {dims.back()};
  std::vector<int> others(dims.begin(), dims.end() - 1);
  if (kind == Transform::kReal) {
    if (!others.empty()) {
      others = by_stride(std::move(others), strides, false);
      strides = pass_strides(strides, sizes, others);
    }
    return pass_strides(strides, sizes, last);
  }
  // The real pass runs first, and then the others.
  if (kind == Transform::kHalfFirst) {
    strides = pass_strides(strides, sizes, last);
    if (others.empty()) return strides;
    return pass_strides(strides, sizes,
                        by_stride(std::move(others), strides, false));
  }
  return pass_strides(strides, sizes, by_stride(dims, strides, true));
}

BoundForm bind_transform(const OpCall& call, Transform kind) {
  const TensorMeta& self = call.tensor("self");
  const std::vector<int> dims = dims_of_call(call, self.rank());
  SpaceBuilder b;
  Operand whole = b.per_dim(self.shape());
  Operand output = whole;
  Dims sizes = self.shape();
  bool padded = false;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const int dim = dims[i];
    const bool last = i + 1 == dims.size();
    std::int64_t size = length_given(call, i, last).value_or(self.size(dim));
    const bool halves =
        (kind == Transform::kHalf || kind == Transform::kHalfFirst) && last &&
        call.boolean_or("onesided", true);
    if (kind == Transform::kReal && last && !length_given(call, i, last)) {
      size = 2 * (self.size(dim) - 1);
    }
    require(size > 0, "a transform of no elements");
    const std::int64_t needed =
        kind == Transform::kReal && last ? size / 2 + 1 : size;
    padded = padded || needed > self.size(dim);
    if (halves) size = size / 2 + 1;
    b.block(whole.dims[index(dim)], "it is transformed");
    output.dims[index(dim)] = b.blocked(size, "it is transformed");
    sizes[index(dim)] = size;
  }
  b.input(whole);
  b.output(std::move(output),
           {.strides = transform_strides(call, kind, dims, sizes, padded)});
  return b.bound();
}

}  // namespace

OpDefinition transformed(Transform kind) {
  constexpr std::string_view kNames[] = {"fft(dim)", "rfft(dim)", "irfft(dim)",
                                         "ihfft(dim)"};
  return shared_form(
      std::string(kNames[index(kind)]),
      [kind](const OpCall& call) { return bind_transform(call, kind); });
}

}  // namespace shardprop
