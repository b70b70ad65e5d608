#pragma once

#include <cstdint>
#include <vector>

#include "engine.h"

// The kernels in their simplest form: one element at a time, by index.
namespace shardprop::kernels::testing {

// Returns the number that the bits of a castable type or f64 represent.
double number_of(std::uint64_t bits, DType dtype);

// Returns the bits of the nearest number of a castable type, ties to even. It
// is found in a table of all its numbers.
std::uint64_t nearest(float value, DType dtype);

// Returns the bits of an element after its conversion.
std::uint64_t converted(std::uint64_t bits, DType from, DType to, double scale);

std::uint64_t read(const Arena& arena, const Tensor& tensor,
                   std::int64_t index);
void write(Arena& arena, const Tensor& tensor, std::int64_t index,
           std::uint64_t bits);
bool same(std::uint64_t a, std::uint64_t b, DType dtype);

// Each function writes the expected result of the op.
void chunk_cat(Arena& arena, const std::vector<Tensor>& tensors,
               std::int64_t dim, std::int64_t num_chunks, const Tensor& out,
               double scale);
// Packs into `packed`; if `unpack` is set, reads `packed` into the tensors.
void sharded(Arena& arena, const std::vector<Tensor>& tensors,
             const std::vector<std::int64_t>& shard_dims, const Tensor& packed,
             double scale, bool unpack);
void split(Arena& arena, const Tensor& in, std::int64_t dim,
           const std::vector<Tensor>& outs, double scale);
void strided_copy(Arena& arena, const Tensor& in, const Tensor& out,
                  double scale);
void reduce_into(Arena& arena, ReduceOp op, const std::vector<Tensor>& inputs,
                 const Tensor& out, double scale);

}  // namespace shardprop::kernels::testing
