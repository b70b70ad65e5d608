// Communicator: one rank's end of a world of ranks that exchange data.
//
// Communicator is the one interface over engines: threads (thread_world.h),
// MPI, NCCL, or a framework's own. An engine implements the protected
// functions. Checks, the count of payload and the failure that stays are done
// here.
//
// Contract
//   * A communicator is used by one thread at a time.
//   * start() does not wait for other ranks, with these exceptions. On MPI and
//     NCCL the first call of a group waits for all members. On NCCL a call also
//     waits until NCCL has taken it in, for which NCCL may connect to members
//     first; in checked mode every call waits for all members.
//   * start() co-owns the call's buffers until the collective is over. Dropping
//     the Work parks them; later calls on this communicator release them.
//   * MPI moves data only while a rank is inside a call on its communicator. A
//     rank that computes for long holds up members that wait for its data.
//   * Collectives of one group match by order: the k-th call of every member.
//     On MPI and NCCL the first calls of all groups come in one order on all
//     ranks. On NCCL all calls of all groups do: two ranks that share two
//     groups call them in the same order, as NCCL runs one call after another.
//     In checked mode nothing is queued before all members have come, so that a
//     wrong order ends on the host, at the timeout, with both calls named.
//   * A wait lasts at most the timeout, counted from the wait's begin. A rank
//     that leaves (destroys its communicator), fails (abort()) or does not come
//     ends it with an error that names the rank and the collective.
//   * After the first such failure every later call on every rank fails with
//     it: make a new world. What was complete before stays valid.
//   * Bad arguments have no effect: they fail on the rank that gave them before
//     anything is sent. A rank that goes on without the call will be missed by
//     the others.
//
//   Result<std::shared_ptr<Work>> work = communicator.start(group, call);
//   if (!work) return fail(work.error());
//   Result<void> done = (*work)->wait();
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/collective/collective_call.h>
#include <shardprop/collective/group.h>
#include <shardprop/collective/memory_ops.h>
#include <shardprop/mesh/topology.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace shardprop {

struct CommunicatorOptions {
  // At most fifty years: milliseconds::max() means that.
  std::chrono::milliseconds timeout = std::chrono::seconds(30);
  // Whether ranks compare their calls before they exchange any data, so that a
  // mismatch is an error that names both calls. Threads always do.
  bool checked = false;
};

// The timeout, or the nearest one that clocks can count to.
std::chrono::milliseconds within_clock(std::chrono::milliseconds timeout);

struct CommunicatorStats {
  std::int64_t calls = 0;
  std::int64_t payload_bytes = 0;  // see payload_bytes() of collective_call.h
  // Collectives whose result was dropped and whose buffers are still held.
  std::int64_t parked = 0;
  // Collectives whose buffers cannot be freed: after a failure an engine may
  // read or write them still. They stay allocated until the process ends.
  std::int64_t abandoned = 0;
  std::int64_t abandoned_bytes = 0;
};

// One rank's part of one collective in flight.
class Work {
 public:
  Work() = default;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  virtual ~Work() = default;

  // Whether wait() would return at once. Moves things along; never blocks.
  virtual bool is_done() = 0;
  // Outputs are written and inputs free when it returns; again and again the
  // same answer. Errors: kTimeout, kRankFailed, kCollectiveMismatch, kEngine.
  virtual Result<void> wait() = 0;
};

class Communicator {
 public:
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  virtual ~Communicator() = default;

  std::int64_t rank() const { return rank_; }
  std::int64_t size() const { return size_; }
  Engine engine() const { return engine_; }
  std::chrono::milliseconds timeout() const { return options_.timeout; }
  void set_timeout(std::chrono::milliseconds timeout) {
    options_.timeout = within_clock(timeout);
  }
  bool checked() const { return options_.checked; }

  // Errors: kGroup (a rank beyond the world), kNotInGroup, kCollectiveCall and
  // its like where the call is not what collective_call.h says, kReduction (an
  // op the dtype does not have), kCollectiveDevice, kEngine; and the failure
  // that this world has seen.
  Result<std::shared_ptr<Work>> start(const Group& group, CollectiveCall call);
  // start() and wait().
  Result<void> run(const Group& group, CollectiveCall call);
  // Returns when every member of the group has come. Counts no payload.
  Result<void> barrier(const Group& group,
                       const std::string& where = "barrier");

  // Memory of the kind the engine likes best, uninitialised, row-major: that of
  // memory_ops() unless an engine knows better. Errors: kTensorMeta,
  // kOutOfMemory.
  virtual Result<LocalTensor> allocate(const Dims& sizes, DType dtype);
  // The operations on this rank's memory between collectives, in order with
  // them. They live as long as the communicator, and are the host's unless the
  // engine's memory is a device's.
  virtual MemoryOps& memory_ops();

  // Tells all ranks that this one cannot go on: their waits end with
  // kRankFailed and `reason`.
  virtual void abort(const Error& reason) = 0;

  // The failure that this world has seen, if any: what every later call will
  // return. Hears what other ranks say; never blocks.
  virtual std::optional<Error> failure() { return std::nullopt; }

  CommunicatorStats stats() const;

 protected:
  Communicator(std::int64_t rank, std::int64_t size, Engine engine,
               const CommunicatorOptions& options)
      : rank_(rank), size_(size), engine_(engine), options_(options) {
    set_timeout(options.timeout);
  }

  // Starts a call that has been checked. `place` is this rank's in `group`.
  virtual Result<std::shared_ptr<Work>> do_start(const Group& group,
                                                 Group::Place place,
                                                 CollectiveCall call) = 0;
  // Adds the figures of stats() that only the engine knows.
  virtual void add_engine_stats(CommunicatorStats& stats) const = 0;

 private:
  std::int64_t rank_;
  std::int64_t size_;
  Engine engine_;
  CommunicatorOptions options_;
  std::int64_t calls_ = 0;
  std::int64_t payload_bytes_ = 0;
};

}  // namespace shardprop
