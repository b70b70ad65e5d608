// Fourier transforms: the dims transformed stay whole, the others are cut.

#include "ops/forms/forms.h"

#include <algorithm>
#include <optional>

namespace shardprop {
namespace {

// The dims that a transform runs over, the last one last.
std::vector<int> dims_of_call(const OpCall& call, int rank) {
  if (const auto dims = call.optional_integers("dim"); dims && !dims->empty()) {
    std::vector<int> out;
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

// The length asked for of the i-th dim transformed.
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

BoundForm bind_transform(const OpCall& call, Transform kind) {
  const TensorMeta& self = call.tensor("self");
  require(self.rank() > 0, "a scalar has no dim to transform");
  const std::vector<int> dims = dims_of_call(call, self.rank());
  SpaceBuilder b;
  Operand whole = b.per_dim(self.shape());
  Operand output = whole;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const int dim = dims[i];
    const bool last = i + 1 == dims.size();
    std::int64_t size = length_given(call, i, last).value_or(self.size(dim));
    const bool halves =
        kind == Transform::kHalf && last && call.boolean_or("onesided", true);
    if (kind == Transform::kReal && last && !length_given(call, i, last)) {
      size = 2 * (self.size(dim) - 1);
    }
    require(size > 0, "a transform of no elements");
    if (halves) size = size / 2 + 1;
    b.block(whole.dims[index(dim)], "it is transformed");
    output.dims[index(dim)] = b.blocked(size, "it is transformed");
  }
  b.input(whole);
  b.output(std::move(output));
  return b.bound();
}

}  // namespace

OpDefinition transformed(Transform kind) {
  constexpr std::string_view kNames[] = {"fft(dim)", "rfft(dim)", "irfft(dim)"};
  return OpDefinition(
      std::string(kNames[static_cast<std::size_t>(kind)]),
      [kind](const OpCall& call) { return bind_transform(call, kind); });
}

}  // namespace shardprop
