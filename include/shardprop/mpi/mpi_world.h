// Ranks that are processes under MPI (3.1 or later).
//
//   Result<std::unique_ptr<Communicator>> world = mpi_communicator();
//   if (!world) return fail(world.error());
//   all_reduce(**world, x, ReduceOp::kSum, group);
//
// MPI is initialised if it is not yet, and finalised only in that case. If MPI
// is initialised already, its thread level is respected. All traffic is on
// duplicates of the parent that return errors. Beyond the set-up of a group
// only non-blocking calls are made, polled to a deadline; the set-up itself
// (the first call of a group) waits until all members are there, then creates
// the sub-communicator.
//
// MPI itself reduces, in an order of its own, sums, products and bits of
// integers, f32, f64 and complex sums, min and max. All else (bf16, f16, f8,
// avg) is exchanged and reduced in rank order, with the same bits as on
// threads. In checked mode that holds for everything.
//
// Faults: a rank that cannot go on tells the others (abort()). One that is
// killed or hangs is missed by them at the timeout and named, as the one that
// does not answer. Buffers that MPI may still read or write then are never
// freed (CommunicatorStats::abandoned), nor is MPI finalised; memory without
// an owner must stay where it is until the process ends.
//
// Threads: several communicators of one process may be used by several threads
// only if MPI was initialised with MPI_THREAD_MULTIPLE. With
// MPI_THREAD_SERIALIZED, which is asked for here, the caller takes care that
// one thread at a time is inside any of them.
#pragma once

#include <shardprop/collective/communicator.h>

#include <cstdint>
#include <memory>
#include <optional>

namespace shardprop {

struct MpiOptions {
  CommunicatorOptions common;
  // The communicator to duplicate, as MPI_Comm_c2f gives it; MPI_COMM_WORLD
  // when empty.
  std::optional<int> parent;
  // Messages are split into parts of at most this many bytes, or elements if
  // MPI reduces them: MPI counts in int. From 1 to 2^31 - 1.
  std::int64_t largest_part = std::int64_t{1} << 30;
};

// This process's end of the parent's ranks; every one of them makes the call.
// Errors: kEngine (an MPI call failed, or MPI has been finalised), kTimeout,
// kInvalidArgument (largest_part).
Result<std::unique_ptr<Communicator>> mpi_communicator(
    const MpiOptions& options = {});

}  // namespace shardprop
