#pragma once

#include <type_traits>

#include <shardprop/kernels/reduce_into.h>

#include "access.h"
#include "params.h"

// One thread of the reduction computes a vector of the output, or one element
// if the operands are strided or misaligned. It reads all inputs before it
// writes the output, which may be one of them.
namespace shardprop::kernels::cuda {

// Castable types accumulate in f32, all others in their own type.
template <class T>
using AccumulatorOf =
    std::conditional_t<std::is_integral_v<T> || std::is_same_v<T, double>, T,
                       float>;

template <class T>
SHARDPROP_HD T take_min(T a, T b) {
  return (a < b) | (a != a) ? a : b;
}

template <class T>
SHARDPROP_HD T take_max(T a, T b) {
  return (a > b) | (a != a) ? a : b;
}

template <class T>
SHARDPROP_HD T combine_whole(T a, T b, ReduceOp op) {
  // Unsigned, so that overflow wraps.
  const auto x = static_cast<std::uint64_t>(a);
  const auto y = static_cast<std::uint64_t>(b);
  switch (op) {
    case ReduceOp::kSum:
      return static_cast<T>(x + y);
    case ReduceOp::kProduct:
      return static_cast<T>(x * y);
    case ReduceOp::kMin:
      return take_min(a, b);
    case ReduceOp::kMax:
      return take_max(a, b);
    case ReduceOp::kBitwiseAnd:
      return static_cast<T>(x & y);
    case ReduceOp::kBitwiseOr:
      return static_cast<T>(x | y);
    default:
      return static_cast<T>(x ^ y);
  }
}

template <class T>
SHARDPROP_HD T combine(T a, T b, ReduceOp op) {
  if constexpr (std::is_integral_v<T>) {
    return combine_whole(a, b, op);
  } else {
    switch (op) {
      case ReduceOp::kSum:
        return a + b;
      case ReduceOp::kProduct:
        return a * b;
      case ReduceOp::kMin:
        return take_min(a, b);
      default:
        return take_max(a, b);
    }
  }
}

template <class From, class To>
struct Reduction {
  using Accumulator = AccumulatorOf<From>;
  static constexpr int kFrom = sizeof(From);
  static constexpr int kTo = sizeof(To);
  static constexpr int kElements = 16 / (kFrom > kTo ? kFrom : kTo);
  using Input = Words<kElements * kFrom / 4>;
  using Output = Words<kElements * kTo / 4>;

  static SHARDPROP_HD Accumulator open(From value) {
    if constexpr (std::is_same_v<Accumulator, From>) {
      return value;
    } else {
      return to_float(value);
    }
  }

  static SHARDPROP_HD To close(Accumulator value, double scale) {
    if constexpr (std::is_same_v<Accumulator, float>) {
      return from_float<To>(value * static_cast<float>(scale));
    } else if constexpr (std::is_same_v<Accumulator, double>) {
      return value * scale;
    } else {
      return value;
    }
  }

  static SHARDPROP_HD void run_vector(const ReduceParams& params,
                                      std::int64_t index) {
    const auto op = static_cast<ReduceOp>(params.op);
    Accumulator sums[kElements] = {};
#pragma unroll 4
    for (std::uint32_t i = 1; i <= params.inputs; ++i) {
      const Input words =
          load_words<kElements * kFrom / 4>(static_cast<std::uint64_t>(
              params.words[i] + index * kElements * kFrom));
      From values[kElements];
      memcpy(values, &words, sizeof values);
#pragma unroll
      for (int e = 0; e < kElements; ++e) {
        const Accumulator value = open(values[e]);
        sums[e] = i == 1 ? value : combine(sums[e], value, op);
      }
    }
    To results[kElements];
#pragma unroll
    for (int e = 0; e < kElements; ++e) {
      results[e] = close(sums[e], params.scale);
    }
    Output words;
    memcpy(&words, results, sizeof words);
    store_words<kElements * kTo / 4>(
        static_cast<std::uint64_t>(params.words[0] + index * kElements * kTo),
        words);
  }

  static SHARDPROP_HD std::uint64_t address(const ReduceParams& params,
                                            std::uint32_t operand,
                                            std::int64_t index, int size) {
    if (params.dense != 0) {
      return static_cast<std::uint64_t>(params.words[operand] + index * size);
    }
    const std::uint32_t base = operand * (1 + params.rank);
    std::int64_t at = params.words[base];
    for (std::uint32_t d = params.rank; d-- > 0;) {
      const std::int64_t outer = index / params.sizes[d];
      at += (index - outer * params.sizes[d]) * params.words[base + 1 + d];
      index = outer;
    }
    return static_cast<std::uint64_t>(at);
  }

  static SHARDPROP_HD void run_element(const ReduceParams& params,
                                       std::int64_t index) {
    const auto op = static_cast<ReduceOp>(params.op);
    Accumulator sum{};
    for (std::uint32_t i = 1; i <= params.inputs; ++i) {
      const std::uint64_t src = address(params, i, index, kFrom);
      From from;
      if (params.loose != 0) {
        const std::uint64_t bits = load_loose(src, kFrom);
        memcpy(&from, &bits, sizeof from);
      } else {
        from = load_element<From>(src);
      }
      const Accumulator value = open(from);
      sum = i == 1 ? value : combine(sum, value, op);
    }
    const To result = close(sum, params.scale);
    const std::uint64_t dst = address(params, 0, index, kTo);
    if (params.loose != 0) {
      std::uint64_t bits = 0;
      memcpy(&bits, &result, sizeof result);
      store_loose(dst, bits, kTo);
    } else {
      store_element(dst, result);
    }
  }

  static SHARDPROP_HD void run(const ReduceParams& params, std::uint32_t block,
                               std::uint32_t blocks, std::uint32_t thread) {
    for (std::uint64_t tile = block; tile < params.tiles; tile += blocks) {
      const auto index = static_cast<std::int64_t>(tile * kThreads + thread);
      if (params.dense == 0) {
        if (index < params.count) run_element(params, index);
        continue;
      }
      const std::int64_t whole = params.count / kElements;
      if (index < whole) {
        run_vector(params, index);
      } else if (index == whole) {
        for (std::int64_t e = whole * kElements; e < params.count; ++e) {
          run_element(params, e);
        }
      }
    }
  }
};

}  // namespace shardprop::kernels::cuda
