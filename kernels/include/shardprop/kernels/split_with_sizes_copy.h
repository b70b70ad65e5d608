#pragma once

#include <cstdint>
#include <span>

#include <shardprop/kernels/tensor.h>

namespace shardprop::kernels {

// Unpacks the result of an all-gather: PyTorch's `split_with_sizes_copy`.
//
// outs[t] becomes `in` narrowed along `dim` to [offset_t, offset_t + sizes[t])
// with offset_t the sum of the sizes before it, and has that shape. A negative
// dim counts from the end.
//
// With `shard_dims`, `in` is num_chunks x W, dim is 1, and outs[t] is the full
// tensor that chunk_cat with the same shard_dims packs. Its k-th chunk along
// shard_dims[t] is read from row k, and the padding of the last chunks is
// dropped. sizes[t] is then c_t * rest_t (chunk_cat.h). FSDP interleaves the
// chunks in a second pass.
//
//   in, 3 ranks:  AAAABBBCC     A: 2x4, B: 3x3, C: 1x2, shard_dims 0, 0, 0,
//                 AAAABBB00     sizes 4, 3, 2
//                 0000BBB00
//
// Casts and `scale` work as in chunk_cat.
//
// kInvalidArgument, if one of these holds:
// * `in` has no dims, or dim is out of range;
// * sizes are negative, or do not sum to the size of `dim`;
// * the number of outs differs from that of sizes;
// * outs have another shape, or different types;
// * shard_dims have another length or are out of range;
// * with shard_dims, `in` is not 2-D or dim is not 1.
//
// kUnsupported: as chunk_cat. kOverlap: outs overlap one another or `in`.
struct SplitWithSizesCopyArgs {
  TensorView in;
  std::span<const std::int64_t> sizes;
  std::int64_t dim = 0;
  std::span<const MutableTensorView> outs;
  std::span<const std::int64_t> shard_dims = {};  // NOLINT: as in tensor.h
  double scale = 1.0;
};

}  // namespace shardprop::kernels
