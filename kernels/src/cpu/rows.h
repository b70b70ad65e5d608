#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <shardprop/kernels/dtype.h>
#include <shardprop/kernels/reduce_into.h>

// What the instruction sets differ in: loops over rows of adjacent elements.
// Each set is compiled from rows_impl.h in a file and namespace of its own, so
// that no function compiled for one is ever called on a machine of another.
namespace shardprop::kernels::cpu {

// Rows of `width` elements; strides in bytes. No alignment is asked of either
// side.
struct Panel {
  std::byte* dst;
  const std::byte* src;
  std::int64_t dst_stride;
  std::int64_t src_stride;
  std::int64_t rows;
  std::int64_t width;
  // What copy() fetches while it streams, as many bytes; may be null.
  const std::byte* ahead = nullptr;
};

// One period of a fill: any element repeated.
struct Pattern {
  std::byte bytes[64];
};

struct RowKernels {
  const char* name;

  // With `stream`, whole cache lines are written past the caches; whoever reads
  // them on another thread needs a store fence in between.
  using Copy = void (*)(const Panel& bytes, bool stream);
  using Fill = void (*)(const Panel& bytes, const Pattern& pattern,
                        bool stream);
  using Cast = void (*)(const Panel& elements, float scale, bool stream);
  using Scale = void (*)(const Panel& elements, double scale);
  // Element c of row r goes to element r of row c: `rows` and `width` are those
  // of the source, dst_stride separates the rows of the result.
  using Transpose = void (*)(const Panel& elements);
  // accumulator[i] = accumulator[i] op to_accumulator(src[i])
  using Accumulate = void (*)(void* accumulator, const void* src,
                              std::int64_t count);

  Copy copy;
  Fill fill;
  Cast cast[kCastableCount][kCastableCount];  // [from][to]
  Scale scale_f64;
  Transpose transpose[4];  // by log2 of the element size
  // Null where the type lacks the op. Castable types accumulate in f32.
  Accumulate accumulate[kReduceOpCount][kDTypeCount];
};

// The best that this machine runs; the same at every call.
const RowKernels& row_kernels();

// All that this machine runs, for tests.
std::span<const RowKernels* const> all_row_kernels();

}  // namespace shardprop::kernels::cpu
