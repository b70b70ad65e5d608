// Ranks that each drive a GPU, over NCCL 2.19 or later.
//
//   // Over what the ranks find each other by: MPI, or threads of one process.
//   auto world =
//       nccl_communicator(*mpi_communicator(), {.device = local_rank});
//   if (!world) return fail(world.error());   // says what is missing
//   LocalTensor x = (*world)->allocate({1024}, DType::kBF16).value();
//
// NCCL is opened at run time, so that one build serves machines with and
// without it. The bootstrap communicator carries what NCCL does not: the ids of
// new groups, checked mode, failures. Work is queued on a stream of the
// communicator's own; wait() returns when the GPU is done. The stream does not
// wait for the caller's streams by itself. Inputs are ready when a call is
// made, or MemoryOps::stream_order() has made memory_ops().stream() wait for
// them. The caller's current device stays as it is.
//
// All groups share that stream, so calls of all groups come in one order on all
// ranks (communicator.h).
//
// Communicators are non-blocking. After an error or a timeout all of them are
// aborted, on every rank: the rank that notices tells the others by the
// bootstrap. A wait gives NCCL three quarters of the timeout; the rest is for a
// barrier on the bootstrap that finds out who is missing. Where NCCL itself
// says that a peer is gone, the same barrier finds out which, and the error
// says both.
//
// NCCL itself reduces f64 to f16 and bf16 (sum, avg, product) and integers of
// 8, 32 and 64 bits (min and max too), in an order of its own, and rounds at
// every hop. Everything else is exchanged and reduced in rank order: f8, whose
// sums are in f32, and min and max of floats, whose NaN NCCL would drop.
#pragma once

#include <shardprop/collective/communicator.h>

#include <memory>
#include <string>

namespace shardprop {

struct NcclOptions {
  CommunicatorOptions common;
  int device = 0;       // CUDA's number for this rank's GPU
  std::string library;  // libnccl.so.2 when empty
};

// Errors: kEngineMissing (no NCCL or an older one, no driver, no GPU of that
// number, a build without CUDA), kEngine.
Result<std::unique_ptr<Communicator>> nccl_communicator(
    std::unique_ptr<Communicator> bootstrap, const NcclOptions& options = {});

}  // namespace shardprop
