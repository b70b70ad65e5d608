// `mpi_communicator` makes a world of ranks that are processes under MPI (3.1
// or later).
//
//   Result<std::unique_ptr<Communicator>> world = mpi_communicator();
//   if (!world) return fail(world.error());
//   all_reduce(**world, x, ReduceOp::kSum, group);
//
// It initialises MPI if needed, and finalises MPI only in that case. If MPI is
// initialised already, its thread level is respected. All traffic is on
// duplicates of the parent communicator that return errors. The first call of a
// group waits for all members and creates the sub-communicator. All other calls
// are non-blocking and are polled until a deadline.
//
// MPI itself reduces sums, products and bits of integers, f32, f64 and complex
// sums, min and max, in its own order. Other reductions (bf16, f16, f8, avg)
// are exchanged and computed in rank order, with the same bits as on threads.
// In checked mode all reductions are.
//
// Faults: a rank that cannot continue informs the others (abort()). If a rank
// is killed or hangs, the others fail at the timeout with an error that names
// it. Buffers that MPI may still access then are never freed
// (CommunicatorStats::abandoned), and MPI is not finalised. Memory without an
// owner must stay allocated until the process ends.
//
// Threads: several threads may use several communicators of one process only if
// MPI was initialised with MPI_THREAD_MULTIPLE. This library requests
// MPI_THREAD_SERIALIZED, with which the caller ensures that only one thread at
// a time is inside any of them.
#pragma once

#include <shardprop/collective/communicator.h>

#include <cstdint>
#include <memory>
#include <optional>

namespace shardprop {

// `MpiOptions` are the parent communicator and the message size of a world.
struct MpiOptions {
  CommunicatorOptions common;
  // The communicator to duplicate, as returned by MPI_Comm_c2f; MPI_COMM_WORLD
  // if empty.
  std::optional<int> parent;
  // Messages are split into parts of at most this many bytes, or elements if
  // MPI reduces them, since MPI counts in int. From 1 to 2^31 - 1.
  std::int64_t largest_part = std::int64_t{1} << 30;
};

// Returns this process's endpoint of the parent's ranks; every rank makes the
// call. Errors: kEngine (an MPI call failed, or MPI has been finalised),
// kTimeout, kInvalidArgument (largest_part).
Result<std::unique_ptr<Communicator>> mpi_communicator(
    const MpiOptions& options = {});

}  // namespace shardprop
