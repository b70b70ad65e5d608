// Short-time Fourier transforms: the batch of signals is sharded, time is not.

#include "ops/definitions/dtypes.h"
#include "ops/definitions/families.h"
#include "ops/definitions/words.h"
#include "ops/forms/mapped.h"

#include <algorithm>

namespace shardprop {
namespace {

std::int64_t hop_of(const OpCall& call) {
  const std::int64_t hop =
      call.op().int_arg("hop_length").value_or(call.integer("n_fft") / 4);
  require(hop > 0, "the hop is not positive");
  return hop;
}

DType of_complex(DType dtype) {
  switch (dtype) {
    case DType::kF64:
    case DType::kC128:
      return DType::kC128;
    case DType::kF32:
    case DType::kC64:
      return DType::kC64;
    default:
      call_error("a transform of integers, or of halves");
  }
}

bool takes_complex(const OpCall& call) {
  const TensorMeta* window = call.optional_tensor("window");
  return is_complex(call.first().dtype()) ||
         (window != nullptr && is_complex(window->dtype()));
}

// Older programs represent complex numbers as pairs of reals.
bool returns_pairs(const OpCall& call) {
  const auto& asked = call.op().arg("return_complex");
  return std::holds_alternative<bool>(asked) && !std::get<bool>(asked);
}

Notation stft_notation(const OpCall& call) {
  require(!call.boolean_or("align_to_window", false),
          "frames that are aligned to the window are not stated");
  const int rank = call.first().rank();
  require(rank == 1 || rank == 2, "the signal is neither one nor a batch");
  const Term batch = rank == 2 ? Term().add('b') : Term();
  Term frames = Term(batch).full({'f', 't'});
  if (returns_pairs(call)) frames.full({'c'});
  return {{Term(batch).full({'l'}), Term().full({'w'})}, {frames}, {}, {}};
}

std::int64_t stft_size(const OpCall& call, const FactorName& letter) {
  const std::int64_t n = call.integer("n_fft");
  require(n > 0, "the transform has no length");
  if (letter == 'c') return 2;
  if (letter == 'f') {
    const auto& asked = call.op().arg("onesided");
    const bool onesided = std::holds_alternative<bool>(asked)
                              ? std::get<bool>(asked)
                              : !takes_complex(call);
    return onesided ? n / 2 + 1 : n;
  }
  std::int64_t length = size_of(call.first(), call.first().rank() - 1);
  if (call.has("center") && call.boolean("center")) {
    length = add_sizes(length, n / 2 * 2);
  }
  require(length >= n, "the signal is shorter than a frame");
  return 1 + (length - n) / hop_of(call);
}

// Frames are transformed one after the other, and are columns of the result.
Dims stft_strides(const OpCall& call, const Dims& shape, DType) {
  const bool pairs = returns_pairs(call);
  require(shape.size() >= (pairs ? 3 : 2), "the result holds no frames");
  const std::size_t at = shape.size() - (pairs ? 3 : 2);
  const std::int64_t unit = pairs ? 2 : 1;
  Dims strides(shape.size(), 1);
  strides[at] = unit;
  strides[at + 1] = multiply_sizes(unit, shape[at]);
  if (at == 1) strides[0] = multiply_sizes(strides[2], shape[2]);
  return strides;
}

DType of_stft(const OpCall& call, std::size_t) {
  const DType dtype = of_complex(call.first().dtype());
  return returns_pairs(call) ? real_dtype(dtype) : dtype;
}

std::int64_t istft_size(const OpCall& call, const FactorName&) {
  const std::int64_t n = call.integer("n_fft");
  const std::int64_t frames = size_of(call.first(), call.first().rank() - 1);
  require(n > 0 && frames > 0,
          "`n_fft` is not positive, or the input has no frames");
  const std::int64_t whole =
      add_sizes(n, multiply_sizes(hop_of(call), frames - 1));
  const std::int64_t own = call.boolean("center") ? whole - n / 2 * 2 : whole;
  return call.op().int_arg("length").value_or(own);
}

DType of_istft(const OpCall& call, std::size_t) {
  const DType dtype = of_complex(call.first().dtype());
  return call.boolean("return_complex") ? dtype : real_dtype(dtype);
}

}  // namespace

void words_of_signal(RuleWords& words) {
  words.size("signal", istft_size);
  words.form(mapped("stft()", stft_notation, stft_size));
  words.dtype("stft", of_stft);
  words.strides("stft", stft_strides);
  words.dtype("istft", of_istft);
}

void define_signal(Family f) {
  f.add("stft",
        form("stft()").typed("stft()").strided("stft").nonempty().linear_in(
            "self"));
  f.add("istft", mapped("{ft},{w}->{l:signal()} | b{ft},{w}->b{l:signal()}")
                     .typed("istft()")
                     .nonempty()
                     .linear_in("self"));
}

}  // namespace shardprop
