#pragma once

#include <shardprop/kernels/chunk_cat.h>
#include <shardprop/kernels/reduce_into.h>
#include <shardprop/kernels/split_with_sizes_copy.h>
#include <shardprop/kernels/status.h>
#include <shardprop/kernels/strided_copy.h>

// The kernels on memory of the current CUDA device. Calls are queued on the
// stream and return; nothing is allocated or copied on the device, and nothing
// synchronises: the descriptors travel as kernel parameters, so that calls can
// be captured in a graph, with the pointers they were given.
//
// One launch takes some 800 contiguous tensors of chunk_cat, or parts of a
// split into contiguous tensors, and 200 of other strides; longer lists take a
// launch for each batch, and large transpositions one each. reduce_into takes
// up to 479 inputs, fewer where they are strided. More of these, or more rows
// of work than 32 bits count, is kUnsupported. kCuda: a launch failed; earlier
// batches of the same call may have been queued.
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
