#pragma once

#include <shardprop/kernels/chunk_cat.h>
#include <shardprop/kernels/reduce_into.h>
#include <shardprop/kernels/split_with_sizes_copy.h>
#include <shardprop/kernels/status.h>
#include <shardprop/kernels/strided_copy.h>

// The kernels on memory of the current CUDA device. A call is queued on the
// stream and returns. It allocates and copies nothing on the device, and it
// does not synchronise. The descriptors are kernel parameters, so that calls
// can be captured in a graph, with the pointers that they were given.
//
// One launch takes about 800 contiguous tensors of chunk_cat, or as many parts
// of a split into contiguous tensors, or 200 tensors of other strides. Longer
// lists need one launch per batch, and each large transposition needs one.
// reduce_into takes up to 479 inputs, fewer if they are strided.
//
// kUnsupported: more inputs, or more rows of work than 32 bits count. kCuda: a
// launch failed; earlier batches of the same call may have been queued.
namespace shardprop::kernels::cuda {

struct CudaOptions {
  void* stream = nullptr;  // a cudaStream_t; null is the default stream
};

Status chunk_cat(const ChunkCatArgs& args, const CudaOptions& options = {});
Status split_with_sizes_copy(const SplitWithSizesCopyArgs& args,
                             const CudaOptions& options = {});
Status strided_copy(const StridedCopyArgs& args,
                    const CudaOptions& options = {});
Status reduce_into(const ReduceIntoArgs& args, const CudaOptions& options = {});
// `value` is read before the call returns.
Status fill(const FillArgs& args, const CudaOptions& options = {});

}  // namespace shardprop::kernels::cuda
