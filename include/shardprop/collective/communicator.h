// `Communicator` is the endpoint of one rank in a world of ranks that exchange
// data.
//
// It is the single interface over engines: threads (thread_world.h), MPI, NCCL,
// or the engine of a framework. An engine implements the protected functions.
// The base class checks calls, counts payload and keeps the first failure.
//
// Contract
//   * A communicator is used by one thread at a time.
//   * start() does not wait for other ranks, with these exceptions. On MPI and
//     NCCL the first call of a group waits for all members. On NCCL a call also
//     waits until NCCL has accepted it, and NCCL may first connect to members.
//     In checked mode on NCCL every call waits for all members.
//   * start() keeps the call's buffers until the collective completes. If the
//     Work is dropped, later calls on this communicator release the buffers.
//   * MPI moves data only while a rank is inside a call on its communicator. A
//     rank that computes for long delays members that wait for its data.
//   * Collectives of one group match by order: the k-th call of every member.
//     On MPI and NCCL the first calls of all groups must have the same order on
//     all ranks. On NCCL all calls of all groups must: if two ranks share two
//     groups, they call them in the same order, since NCCL runs one call after
//     another. In checked mode no call is queued until all members join.
//     A wrong order then ends on the host, at the timeout, with an error that
//     names both calls.
//   * A wait lasts at most the timeout, counted from the start of the wait. If
//     a rank leaves (destroys its communicator), fails (abort()) or does not
//     join, the wait ends with an error that names the rank and the collective.
//   * After the first failure of this kind every later call on every rank
//     returns it; make a new world. Results that were complete stay valid.
//   * Invalid arguments have no effect: the call fails on its rank before any
//     data is sent. If that rank then skips the call, the other ranks time out.
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

// `CommunicatorOptions` are the timeout and the checks of a world.
struct CommunicatorOptions {
  // Longest wait of a call; at most fifty years, which milliseconds::max()
  // selects.
  std::chrono::milliseconds timeout = std::chrono::seconds(30);
  // If true, ranks compare their calls before they exchange data, so that a
  // mismatch is an error that names both calls. Threads always compare.
  bool checked = false;
};

// Returns the timeout, or the nearest one that clocks can represent.
std::chrono::milliseconds within_clock(std::chrono::milliseconds timeout);

// `CommunicatorStats` counts the calls of one communicator since it was made.
struct CommunicatorStats {
  std::int64_t calls = 0;
  std::int64_t payload_bytes = 0;  // see payload_bytes() of collective_call.h
  // Collectives whose result was dropped and whose buffers are still in use.
  std::int64_t parked = 0;
  // Collectives whose buffers cannot be freed, since an engine may still access
  // them after a failure. They stay allocated until the process ends.
  std::int64_t abandoned = 0;
  std::int64_t abandoned_bytes = 0;
};

// `Work` is the part of one rank in one running collective.
class Work {
 public:
  Work() = default;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  virtual ~Work() = default;

  // Returns whether wait() would return immediately. It makes progress and
  // never blocks.
  virtual bool is_done() = 0;
  // Waits until outputs are written and inputs may be reused. Later calls
  // return the same answer. Errors: kTimeout, kRankFailed, kCollectiveMismatch,
  // kEngine.
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

  // Starts a collective. Errors: kGroup (a rank outside the world),
  // kNotInGroup, kCollectiveCall and related codes if the call violates
  // collective_call.h, kReduction (an op that the dtype does not have),
  // kCollectiveDevice, kEngine, and the failure that this world has seen.
  Result<std::shared_ptr<Work>> start(const Group& group, CollectiveCall call);
  // Calls start() and wait().
  Result<void> run(const Group& group, CollectiveCall call);
  // Returns when every member of the group has joined. It counts no payload.
  Result<void> barrier(const Group& group,
                       const std::string& where = "barrier");

  // Allocates uninitialised row-major memory of the kind that suits the engine
  // best: that of memory_ops(), unless the engine overrides this. Errors:
  // kTensorMeta, kOutOfMemory.
  virtual Result<LocalTensor> allocate(const Dims& sizes, DType dtype);
  // Returns the operations on this rank's memory between collectives, in order
  // with them. They are valid as long as the communicator. They are the host's,
  // unless the engine uses device memory.
  virtual MemoryOps& memory_ops();

  // Tells all ranks that this rank cannot continue: their waits end with
  // kRankFailed and `reason`.
  virtual void abort(const Error& reason) = 0;

  // Returns the failure that this world has seen, if any, which every later
  // call returns. It polls for failures reported by other ranks and does not
  // block.
  virtual std::optional<Error> failure() { return std::nullopt; }

  CommunicatorStats stats() const;

 protected:
  Communicator(std::int64_t rank, std::int64_t size, Engine engine,
               const CommunicatorOptions& options)
      : rank_(rank), size_(size), engine_(engine), options_(options) {
    set_timeout(options.timeout);
  }

  // Starts a call that has passed the checks. `place` is this rank's place in
  // `group`.
  virtual Result<std::shared_ptr<Work>> do_start(const Group& group,
                                                 Group::Place place,
                                                 CollectiveCall call) = 0;
  // Adds the figures of stats() that only the engine has.
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
