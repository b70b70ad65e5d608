// `ThreadChannel` runs the collectives of one group of threads, in order.
//
// An operation collects the calls of its members, and the last member makes it
// ready. Waiting members run its tasks, their own first, until all are done.
//
// No member reads published tensors before the operation is ready, so a failure
// withdraws it at once. When it is ready, no member waits for another one, so
// it always ends. Hence no thread reads memory after its owner's call has
// ended.
#pragma once

#include <shardprop/collective/communicator.h>

#include "collective/device_queue.h"
#include "collective/state_word.h"

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace shardprop::collective {

class ThreadHub;

// The queue of a member's device, and its mark at the time of the call. Both
// are empty on the host.
struct MemberQueue {
  std::shared_ptr<DeviceQueue> queue;
  std::unique_ptr<DeviceQueue::Mark> ready;
};

// `ThreadOp` is one collective of a channel.
struct ThreadOp {
  enum class State : std::uint8_t {
    kCollecting,
    kReady,
    kWithdrawn,  // failed; its calls are being released
    kDone,
    kFailed
  };

  ThreadOp(std::int64_t op_number, std::size_t members)
      : number(op_number),
        calls(members),
        queues(members),
        came(members),
        dropped(members),
        taken(members) {}

  bool over() const {
    const State now = state.load();
    return now == State::kDone || now == State::kFailed;
  }

  const std::int64_t number;
  // Written under the channel's mutex; read and waited for without it.
  StateWord<State> state{State::kCollecting};

  // The channel's mutex guards these. `calls` and `queues` are only read while
  // kCollecting or kReady.
  std::vector<CollectiveCall> calls;
  std::vector<MemberQueue> queues;
  std::vector<bool> came;
  std::vector<bool> dropped;  // members that will not wait
  std::vector<bool> taken;    // tasks
  bool bulk = false;          // see bulk_copy.h
  std::size_t arrived = 0;
  std::size_t finished = 0;    // tasks
  std::optional<Error> error;  // what kFailed means; never changes after
};

class ThreadChannel {
 public:
  ThreadChannel(ThreadHub& hub, Group::Ranks ranks);

  const Group::Ranks& ranks() const { return ranks_; }

  // Publishes the next call of member `index`. Errors: the hub's failure, which
  // includes an error of the call's own tasks.
  Result<std::shared_ptr<ThreadOp>> publish(std::size_t index,
                                            CollectiveCall call,
                                            MemberQueue queue);
  // Runs tasks until the operation is over or the timeout has passed.
  Result<void> wait(ThreadOp& op, std::size_t index,
                    std::chrono::milliseconds timeout);
  // Runs tasks that no member has started. Returns true if the operation is
  // over.
  bool advance(ThreadOp& op, std::size_t index);
  // Records that the member will not wait for the operation.
  void drop(ThreadOp& op, std::size_t index);

  // Returns the number of operations that the member has dropped and that are
  // not over.
  std::int64_t parked(std::size_t index) const;
  // Withdraws operations that are not ready, after the hub has failed. It
  // releases their calls before a member that waits sees the failure.
  void withdraw(const Error& failure);
  // Returns the first operation that waits for the member of this index.
  std::optional<std::string> missed(std::size_t index) const;
  // Returns the last operation at which the member has arrived and that is not
  // over.
  std::optional<std::string> activity(std::size_t index) const;

 private:
  using Lock = std::unique_lock<std::mutex>;

  std::shared_ptr<ThreadOp> find_or_add(std::int64_t number);
  // Compares the calls of an operation at which all members have arrived, and
  // makes it ready. Errors: kCollectiveMismatch. Unlocks inside.
  Result<void> complete(Lock& lock, ThreadOp& op, std::size_t index);
  // Runs a task on behalf of member `index`. An exception becomes an error,
  // because other members sleep until the task is finished.
  Result<void> run(const ThreadOp& op, std::size_t task,
                   std::size_t index) const noexcept;
  // Runs tasks, the member's own first, while there are any. Unlocks inside.
  void run_tasks(Lock& lock, ThreadOp& op, std::size_t index);
  // Runs all tasks of a complete operation before any member sees it ready.
  // Sleepers then wake only once, when it is done.
  void run_at_once(Lock& lock, ThreadOp& op, std::size_t index);
  void finish(Lock& lock, ThreadOp& op);
  // Makes the error of a failed operation the hub's failure; the first failure
  // wins. Precondition: the mutex is not held.
  void report(const ThreadOp& op);
  // Spins briefly if every rank can have a core, because waking a sleeper takes
  // longer.
  void spin_while(const ThreadOp& op, ThreadOp::State state);
  // Runs tasks of the operations that the member dropped, before it adds one.
  void reap(std::size_t index);
  void sweep();
  // Fails the hub with the names of the members that have not arrived in time.
  void give_up(ThreadOp& op, std::size_t index,
               std::chrono::milliseconds timeout);
  std::string describe(const ThreadOp& op, std::size_t index) const;
  // Returns the members that have not arrived. Precondition: the mutex is held.
  std::vector<std::int64_t> missing_from(const ThreadOp& op) const;
  // Precondition: the mutex is not held.
  Error late(std::span<const std::int64_t> missing, const std::string& call,
             std::chrono::milliseconds timeout) const;

  ThreadHub& hub_;
  const Group::Ranks ranks_;
  mutable std::mutex mutex_;
  std::deque<std::shared_ptr<ThreadOp>> ops_;  // in order of their numbers
  std::int64_t swept_ = 0;                     // number of the first of ops_
  std::vector<std::int64_t> next_;             // by member
};

}  // namespace shardprop::collective
