#pragma once

#include <shardprop/kernels/dtype.h>

#include "access.h"
#include "params.h"

// Moves boxes that are not rows: one element at a time, with types chosen at
// run time.
namespace shardprop::kernels::cuda {

SHARDPROP_HD float decode(std::uint64_t bits, DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return to_float(F16{static_cast<std::uint16_t>(bits)});
    case DType::kBFloat16:
      return to_float(BF16{static_cast<std::uint16_t>(bits)});
    case DType::kFloat8E4M3FN:
      return to_float(F8E4M3FN{static_cast<std::uint8_t>(bits)});
    case DType::kFloat8E5M2:
      return to_float(F8E5M2{static_cast<std::uint8_t>(bits)});
    default:
      return float_of(static_cast<std::uint32_t>(bits));
  }
}

SHARDPROP_HD std::uint64_t encode(float value, DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return from_float<F16>(value).bits;
    case DType::kBFloat16:
      return from_float<BF16>(value).bits;
    case DType::kFloat8E4M3FN:
      return from_float<F8E4M3FN>(value).bits;
    case DType::kFloat8E5M2:
      return from_float<F8E5M2>(value).bits;
    default:
      return bits_of(value);
  }
}

SHARDPROP_HD std::uint64_t convert_bits(std::uint64_t bits,
                                        const ElementsParams& params) {
  if (params.plain != 0) return bits;
  const auto from = static_cast<DType>(params.from);
  if (from == DType::kFloat64) {
    double value;
    memcpy(&value, &bits, sizeof value);
    value *= params.scale;
    memcpy(&bits, &value, sizeof bits);
    return bits;
  }
  return encode(decode(bits, from) * static_cast<float>(params.scale),
                static_cast<DType>(params.to));
}

struct Addresses {
  std::uint64_t dst;
  std::uint64_t src;
};

// Adds the strides of an index, row-major over the first `rank` dims.
SHARDPROP_HD Addresses address_of(const ElementsParams& params,
                                  std::uint32_t rank, std::int64_t index) {
  Addresses at{params.dst, params.src};
  for (std::uint32_t d = rank; d-- > 0;) {
    const std::int64_t outer = index / params.sizes[d];
    const std::int64_t i = index - outer * params.sizes[d];
    index = outer;
    at.dst += static_cast<std::uint64_t>(i * params.dst_strides[d]);
    at.src += static_cast<std::uint64_t>(i * params.src_strides[d]);
  }
  return at;
}

SHARDPROP_HD void run_elements(const ElementsParams& params,
                               std::uint32_t block, std::uint32_t blocks,
                               std::uint32_t thread) {
  const int from = params.from_size;
  const int to = params.to_size;
  for (std::uint64_t tile = block; tile < params.tiles; tile += blocks) {
    for (std::uint32_t u = 0; u < kUnroll; ++u) {
      const auto index =
          static_cast<std::int64_t>(tile * kTileSlots + u * kThreads + thread);
      if (index >= params.count) break;
      const Addresses at = address_of(params, params.rank, index);
      for (int part = 0; part < to; part += 8) {
        std::uint64_t bits;
        if (params.src == 0) {
          memcpy(&bits, params.fill + part, sizeof bits);
        } else {
          bits = convert_bits(
              load_loose(at.src + part, from - part < 8 ? from - part : 8),
              params);
        }
        store_loose(at.dst + part, bits, to - part < 8 ? to - part : 8);
      }
    }
  }
}

// Moves a rectangle whose last dim is dense in dst and whose last but one is
// dense in src. Squares of it pass through shared memory, so that reads and
// writes are both along dense dims. T holds the bits of an element of src.
template <class T>
struct Transposition {
  static constexpr std::uint32_t kRows = kThreads / kTileSide;
  // A column more than needed keeps columns in different banks.
  using Square = T[kTileSide][kTileSide + 1];

  struct Place {
    Addresses at;
    std::int64_t across;  // first index of the square, dense in src
    std::int64_t along;   // dense in dst
  };

  static SHARDPROP_HD Place place(const ElementsParams& params,
                                  std::uint64_t tile) {
    const std::uint32_t outer_rank = params.rank - 2;
    const auto squares = [&](std::uint32_t d) {
      return (params.sizes[d] + kTileSide - 1) / kTileSide;
    };
    const std::int64_t along = squares(params.rank - 1);
    const std::int64_t across = squares(params.rank - 2);
    const auto index = static_cast<std::int64_t>(tile);
    return {address_of(params, outer_rank, index / (along * across)),
            index / along % across * kTileSide, index % along * kTileSide};
  }

  static SHARDPROP_HD void read(const ElementsParams& params,
                                std::uint64_t tile, std::uint32_t thread,
                                Square& square) {
    const Place start = place(params, tile);
    const std::uint32_t x = thread % kTileSide;
    const std::int64_t across = start.across + x;
    if (across >= params.sizes[params.rank - 2]) return;
#pragma unroll
    for (std::uint32_t y = thread / kTileSide; y < kTileSide; y += kRows) {
      const std::int64_t along = start.along + y;
      if (along >= params.sizes[params.rank - 1]) break;
      square[y][x] = load_element<T>(
          start.at.src + static_cast<std::uint64_t>(
                             along * params.src_strides[params.rank - 1] +
                             across * static_cast<std::int64_t>(sizeof(T))));
    }
  }

  static SHARDPROP_HD void write(const ElementsParams& params,
                                 std::uint64_t tile, std::uint32_t thread,
                                 const Square& square) {
    const Place start = place(params, tile);
    const std::uint32_t x = thread % kTileSide;
    const std::int64_t along = start.along + x;
    const std::int64_t to = params.to_size;
    if (along >= params.sizes[params.rank - 1]) return;
#pragma unroll
    for (std::uint32_t y = thread / kTileSide; y < kTileSide; y += kRows) {
      const std::int64_t across = start.across + y;
      if (across >= params.sizes[params.rank - 2]) break;
      const std::uint64_t bits = convert_bits(square[x][y], params);
      const std::uint64_t dst =
          start.at.dst +
          static_cast<std::uint64_t>(
              across * params.dst_strides[params.rank - 2] + along * to);
      switch (to) {
        case 1:
          store_element(dst, static_cast<std::uint8_t>(bits));
          break;
        case 2:
          store_element(dst, static_cast<std::uint16_t>(bits));
          break;
        case 4:
          store_element(dst, static_cast<std::uint32_t>(bits));
          break;
        default:
          store_element(dst, bits);
      }
    }
  }
};

}  // namespace shardprop::kernels::cuda
