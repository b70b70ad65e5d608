#pragma once

#include <cstdint>

#include <shardprop/kernels/chunk_cat.h>
#include <shardprop/kernels/reduce_into.h>
#include <shardprop/kernels/split_with_sizes_copy.h>
#include <shardprop/kernels/status.h>
#include <shardprop/kernels/strided_copy.h>
#include <shardprop/kernels/thread_pool.h>

// The kernels on host memory. The widest vector instructions of the machine
// are found at run time (AVX-512, AVX2 or plain); stores bypass the caches when
// the call exceeds them. All give the same bits, as do the CUDA kernels; a NaN
// may differ from another NaN.
namespace shardprop::kernels::cpu {

struct CpuOptions {
  // Null: the calling thread alone. Small calls never leave it.
  ThreadPool* pool = nullptr;
};

// Whether nothing of so many bytes, read and written, would be found in the
// last-level cache afterwards: in this process's share of it, where the machine
// is a part of a larger one.
bool exceeds_caches(std::int64_t bytes);

Status chunk_cat(const ChunkCatArgs& args, const CpuOptions& options = {});
Status split_with_sizes_copy(const SplitWithSizesCopyArgs& args,
                             const CpuOptions& options = {});
Status strided_copy(const StridedCopyArgs& args,
                    const CpuOptions& options = {});
Status reduce_into(const ReduceIntoArgs& args, const CpuOptions& options = {});
Status fill(const FillArgs& args, const CpuOptions& options = {});

}  // namespace shardprop::kernels::cpu
