#pragma once

#include <cstdint>
#include <span>

#include <shardprop/kernels/tensor.h>

namespace shardprop::kernels {

// Unpacks what an all-gather brought: PyTorch's `split_with_sizes_copy`.
//
// outs[t] becomes `in` narrowed along `dim` to [offset_t, offset_t + sizes[t])
// with offset_t the sum of the sizes before it, and has that shape. A negative
// dim counts from the end.
//
// With `shard_dims`, `in` is num_chunks x W, dim is 1, and outs[t] is the whole
// tensor that chunk_cat with the same shard_dims would have packed: its k-th
// chunk along shard_dims[t] is read from row k, and the padding of the last
// chunks is dropped. sizes[t] is then c_t * rest_t, see chunk_cat.h. FSDP does
// this interleaving in a second pass.
//
//   in, 3 ranks:  AAAABBBCC     A: 2x4, B: 3x3, C: 1x2, shard_dims 0, 0, 0,
//                 AAAABBB00     sizes 4, 3, 2
//                 0000BBB00
//
// Casts and `scale` as in chunk_cat.
//
// kInvalidArgument: `in` without dims; dim out of range; negative sizes, or
// sizes that do not sum to that of `dim`; another count of outs than of sizes;
// outs of another shape or of types that differ; shard_dims of another length,
// out of range, or with an `in` that is not 2-D or a dim other than 1.
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
