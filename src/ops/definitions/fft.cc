// Fourier transforms: the dims transformed stay whole, the others are cut.

#include "ops/definitions/dtypes.h"
#include "ops/definitions/families.h"

#include <algorithm>
#include <optional>

namespace shardprop {
namespace {

DType complex_of(DType dtype) {
  switch (dtype) {
    case DType::kF64:
    case DType::kC128:
      return DType::kC128;
    case DType::kF16:
    case DType::kC32:
      return DType::kC32;
    default:
      return DType::kC64;
  }
}

enum class Into : std::uint8_t { kComplex, kHalf, kReal };

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

BoundForm bind_transform(const OpCall& call, Into into) {
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
        into == Into::kHalf && last && call.boolean_or("onesided", true);
    if (into == Into::kReal && last && !length_given(call, i, last)) {
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

OpDefinition transform(std::string name, Into into) {
  return custom(
             std::move(name),
             [into](const OpCall& call) { return bind_transform(call, into); })
      .typed([into](const OpCall& call, std::size_t) {
        const DType dtype = complex_of(call.first().dtype());
        return into == Into::kReal ? real_dtype(dtype) : dtype;
      })
      // The kernels refuse a batch of none.
      .nonempty()
      .linear_in("self");
}

}  // namespace

void define_fft(Family f) {
  f.add({"_fft_c2c", "fft_fft", "fft_ifft", "fft_fft2", "fft_ifft2", "fft_fftn",
         "fft_ifftn"},
        transform("fft(dim)", Into::kComplex));
  f.add({"_fft_r2c", "fft_rfft", "fft_rfft2", "fft_rfftn", "fft_ihfft",
         "fft_ihfft2", "fft_ihfftn"},
        transform("rfft(dim)", Into::kHalf));
  f.add({"_fft_c2r", "fft_irfft", "fft_irfft2", "fft_irfftn", "fft_hfft",
         "fft_hfft2", "fft_hfftn"},
        transform("irfft(dim)", Into::kReal));
}

}  // namespace shardprop
