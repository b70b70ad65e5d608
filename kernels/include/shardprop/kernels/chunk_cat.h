#pragma once

#include <cstdint>
#include <span>

#include <shardprop/kernels/tensor.h>

namespace shardprop::kernels {

// Packs tensors for a reduce-scatter: PyTorch's `_chunk_cat`
// (aten/src/ATen/native/TensorShape.cpp).
//
// Each tensor is padded with zeros along `dim` to a multiple of `num_chunks`
// and split into `num_chunks` chunks of c_t = ceil(size / num_chunks). The
// chunks are flattened from `dim` on and concatenated.
//
// `out` has the shape lead x num_chunks x sum_t(c_t * trail_t). Here lead is
// the sizes before `dim`, which are equal for all tensors, and trail_t is the
// product of the sizes after it.
//
// Example: A is 2x4, B is 3x3 and C is 1x2, for three ranks (dim 0, num_chunks
// 3). There is one letter per element, and 0 is padding:
//   AAAABBBCC
//   AAAABBB00
//   0000BBB00
//
// With `shard_dims`, tensor t is split along shard_dims[t] instead. Row k of
// `out`, of shape num_chunks x sum_t(c_t * rest_t), has the k-th chunk of each
// tensor in row-major order, padded along the shard dim. This is
// `_chunk_cat(torch.cat(t.chunk(num_chunks, d)), 0, num_chunks)`, the layout
// that FSDP sends, in one pass.
//
// Values are multiplied by `scale` in f32 (f64 for f64) and cast to the type of
// `out` (dtype.h). All casts among f32, f16, bf16 and the f8s exist. Other
// types are copied unchanged, and of these only f64 may be scaled.
//
// kInvalidArgument: an empty list or tensor; num_chunks < 1; dtypes that
// differ; dim out of range, or negative while the ndims differ; sizes before
// dim that differ; an `out` of another shape; shard_dims with dim != 0, of
// another length than the list or out of range. kUnsupported: a cast or scale
// that does not exist, more than kMaxDims dims. kOverlap: `out` overlaps itself
// or a tensor.
struct ChunkCatArgs {
  std::span<const TensorView> tensors;
  std::int64_t dim = 0;
  std::int64_t num_chunks = 1;
  MutableTensorView out;
  std::span<const std::int64_t> shard_dims = {};  // NOLINT: as in tensor.h
  double scale = 1.0;
};

}  // namespace shardprop::kernels
