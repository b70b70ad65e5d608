// `nccl_communicator` makes a world of ranks that each use one GPU, over NCCL
// 2.19 or later.
//
//   // The bootstrap connects the ranks: MPI, or threads of one process.
//   auto world =
//       nccl_communicator(*mpi_communicator(), {.device = local_rank});
//   if (!world) return fail(world.error());   // says what is missing
//   LocalTensor x = (*world)->allocate({1024}, DType::kBF16).value();
//
// NCCL is opened at run time, so one build works on machines with and without
// it. The bootstrap communicator carries data that NCCL does not: ids of new
// groups, checked mode, failures. Work is queued on a stream of this
// communicator; wait() returns when the GPU is done. The stream does not wait
// for the caller's streams by itself. When a call is made, its inputs must be
// complete, or MemoryOps::stream_order() must have made memory_ops().stream()
// wait for them. The caller's current device does not change.
//
// All groups share that stream, so calls of all groups must have the same order
// on all ranks (communicator.h).
//
// NCCL's communicators are non-blocking. After an error or a timeout all of
// them are aborted on every rank: the rank that notices informs the others
// through the bootstrap. A wait gives NCCL three quarters of the timeout. The
// rest is for a barrier on the bootstrap that finds the missing rank. If NCCL
// reports that a peer is gone, the same barrier finds that peer, and the error
// reports both.
//
// NCCL itself reduces f64, f32, f16 and bf16 (sum, avg, product) and integers
// of 8, 32 and 64 bits (also min and max), in its own order, and rounds at
// every hop. Other reductions are exchanged and computed in rank order: f8,
// whose sums are in f32, and min and max of floats, since NCCL drops their NaN.
#pragma once

#include <shardprop/collective/communicator.h>

#include <memory>
#include <string>

namespace shardprop {

// `NcclOptions` are the GPU of this rank and the library file.
struct NcclOptions {
  CommunicatorOptions common;
  int device = 0;       // CUDA's number of this rank's GPU
  std::string library;  // if empty, libnccl.so.2
};

// Errors: kEngineMissing (no NCCL or an older one, no driver, no GPU with that
// number, a build without CUDA), kEngine.
Result<std::unique_ptr<Communicator>> nccl_communicator(
    std::unique_ptr<Communicator> bootstrap, const NcclOptions& options = {});

}  // namespace shardprop
