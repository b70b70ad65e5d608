#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <shardprop/kernels/dtype.h>
#include <shardprop/kernels/reduce_into.h>

// Loops over rows of adjacent elements, which each instruction set implements.
// Each set is compiled from rows_impl.h in its own file and namespace, so that
// a machine never calls a function that was compiled for another instruction
// set.
namespace shardprop::kernels::cpu {

// Rows of `width` elements, with strides in bytes. Both sides may have any
// alignment.
struct Panel {
  std::byte* dst;
  const std::byte* src;
  std::int64_t dst_stride;
  std::int64_t src_stride;
  std::int64_t rows;
  std::int64_t width;
  // Memory that copy() prefetches while it streams, as many bytes as it copies;
  // may be null.
  const std::byte* ahead = nullptr;
};

// One period of a fill: an element, repeated.
struct Pattern {
  std::byte bytes[64];
};

struct RowKernels {
  const char* name;

  // With `stream`, entire cache lines are written past the caches. Another
  // thread may read them only after a store fence.
  using Copy = void (*)(const Panel& bytes, bool stream);
  using Fill = void (*)(const Panel& bytes, const Pattern& pattern,
                        bool stream);
  using Cast = void (*)(const Panel& elements, float scale, bool stream);
  using Scale = void (*)(const Panel& elements, double scale);
  // Writes element c of row r to element r of row c. `rows` and `width`
  // describe the source; dst_stride separates the rows of the result.
  using Transpose = void (*)(const Panel& elements);
  // accumulator[i] = accumulator[i] op to_accumulator(src[i])
  using Accumulate = void (*)(void* accumulator, const void* src,
                              std::int64_t count);

  Copy copy;
  Fill fill;
  Cast cast[kCastableCount][kCastableCount];  // [from][to]
  Scale scale_f64;
  Transpose transpose[4];  // by log2 of the element size
  // Null if the type does not have the op. Castable types accumulate in f32.
  Accumulate accumulate[kReduceOpCount][kDTypeCount];
};

// Returns the best set that this machine runs; it is the same at every call.
const RowKernels& row_kernels();

// Returns all sets that this machine runs, for tests.
std::span<const RowKernels* const> all_row_kernels();

}  // namespace shardprop::kernels::cpu
