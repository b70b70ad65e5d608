// This file defines Fourier transforms.

#include "ops/definitions/dtypes.h"
#include "ops/definitions/families.h"
#include "ops/definitions/words.h"

namespace shardprop {
namespace {

DType spectrum_dtype(DType dtype) {
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

OpDefinition transform(Transform kind) {
  return transformed(kind)
      .typed(kind == Transform::kReal ? std::string_view("real(spectrum())")
                                      : "spectrum()")
      // The kernels reject an empty batch.
      .nonempty()
      .linear_in("self");
}

}  // namespace

void words_of_fft(RuleWords& words) {
  for (const Transform kind : {Transform::kComplex, Transform::kHalf,
                               Transform::kReal, Transform::kHalfFirst}) {
    words.form(transformed(kind));
  }
  words.dtype("spectrum", [](const OpCall& call, std::size_t) {
    return spectrum_dtype(call.first().dtype());
  });
}

void define_fft(Family f) {
  f.add({"_fft_c2c", "fft_fft", "fft_ifft", "fft_fft2", "fft_ifft2", "fft_fftn",
         "fft_ifftn"},
        transform(Transform::kComplex));
  f.add({"_fft_r2c", "fft_rfft", "fft_rfft2", "fft_rfftn"},
        transform(Transform::kHalf));
  f.add({"fft_ihfft", "fft_ihfft2", "fft_ihfftn"},
        transform(Transform::kHalfFirst));
  f.add({"_fft_c2r", "fft_irfft", "fft_irfft2", "fft_irfftn", "fft_hfft",
         "fft_hfft2", "fft_hfftn"},
        transform(Transform::kReal));
}

}  // namespace shardprop
