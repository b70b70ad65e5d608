#pragma once

#include <cstdint>

#include <shardprop/kernels/chunk_cat.h>
#include <shardprop/kernels/reduce_into.h>
#include <shardprop/kernels/split_with_sizes_copy.h>
#include <shardprop/kernels/status.h>
#include <shardprop/kernels/strided_copy.h>
#include <shardprop/kernels/thread_pool.h>

// The kernels on host memory. They use the widest vector instructions of the
// machine, which are detected at run time (AVX-512, AVX2 or plain). Stores
// bypass the caches if the call exceeds the caches. All variants give the same
// bits, as the CUDA kernels do, except that a NaN may differ from another NaN.
namespace shardprop::kernels::cpu {

struct CpuOptions {
  // If null, only the calling thread works. Small calls always use it alone.
  ThreadPool* pool = nullptr;
};

// True if a call that reads and writes this many bytes leaves no useful data in
// the last-level cache. The cache size is this process's share if the machine
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
