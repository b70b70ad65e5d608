#include "collective/thread_channel.h"

#include <shardprop/base/error.h>
#include <shardprop/kernels/cpu.h>

#include "base/guard.h"
#include "base/index.h"
#include "base/try.h"
#include "collective/call_check.h"
#include "collective/thread_hub.h"
#include "collective/thread_tasks.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <new>
#include <utility>

namespace shardprop::collective {
namespace {

// Up to this many bytes, the last member to arrive runs all tasks, because
// waking other threads takes longer.
constexpr std::int64_t kInlineBytes = 64 << 10;

// The time that a wait spins before it sleeps.
constexpr std::chrono::microseconds kSpin{30};

// Tells the core that this is a spin loop. A yield would cost a time slice if
// other threads want the core; a sleep does not.
void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// "rank 3", "ranks 1, 3".
std::string rank_names(std::span<const std::int64_t> ranks) {
  std::string names = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    names += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  }
  return names;
}

// Returns the error of a task that threw on `rank`. Memory may be exhausted.
Error task_error(ThreadHub& hub, std::int64_t rank,
                 const std::exception_ptr& thrown) noexcept {
  for (int attempt = 0; attempt < 2; ++attempt) {
    try {
      const std::string name = "rank " + std::to_string(rank);
      if (auto error = refusal(thrown)) return (*std::move(error)).at(name);
      std::string what = name + " threw in a collective";
      try {
        std::rethrow_exception(thrown);
      } catch (const std::exception& known) {
        what += std::string(": ") + known.what();
      } catch (...) {
        // The exception has no message.
      }
      return {ErrorCode::kRankFailed, std::move(what)};
    } catch (...) {
      hub.open_reserve();
    }
  }
  // The text is short enough for the string's internal buffer, so it needs no
  // memory.
  return {ErrorCode::kOutOfMemory, "no memory left"};
}

}  // namespace

ThreadChannel::ThreadChannel(ThreadHub& hub, Group::Ranks ranks)
    : hub_(hub), ranks_(std::move(ranks)), next_(ranks_.size()) {}

std::shared_ptr<ThreadOp> ThreadChannel::find_or_add(std::int64_t number) {
  while (swept_ + static_cast<std::int64_t>(ops_.size()) <= number) {
    ops_.push_back(std::make_shared<ThreadOp>(
        swept_ + static_cast<std::int64_t>(ops_.size()), ranks_.size()));
  }
  return ops_[index(number - swept_)];
}

Result<std::shared_ptr<ThreadOp>> ThreadChannel::publish(std::size_t index,
                                                         CollectiveCall call,
                                                         MemberQueue queue) {
  reap(index);
  std::optional<Error> failure;
  std::shared_ptr<ThreadOp> op;
  {
    Lock lock(mutex_);
    if (!hub_.failed()) {
      op = find_or_add(next_[index]);
      ++next_[index];
      op->calls[index] = std::move(call);
      op->queues[index] = std::move(queue);
      op->came[index] = true;
      if (++op->arrived == ranks_.size()) {
        if (Result<void> done = complete(lock, *op, index); !done) {
          failure = std::move(done).error();
        }
      } else {
        // A member that has left will never arrive.
        for (std::size_t i = 0; i < ranks_.size() && !failure; ++i) {
          if (op->came[i]) continue;
          if (const auto how = hub_.left(ranks_[i])) {
            failure = Error{ErrorCode::kRankFailed,
                            "rank " + std::to_string(ranks_[i]) + " " + *how +
                                " before " + describe(*op, index)};
          }
        }
      }
    }
  }
  if (failure) hub_.fail(*std::move(failure));
  if (op == nullptr) return shardprop::fail(hub_.failure());
  // Another thread may be withdrawing the operation.
  op->state.sleep_while(ThreadOp::State::kWithdrawn, std::nullopt);
  if (op->state.load() == ThreadOp::State::kFailed) {
    // Other members may have run its tasks without reporting to the hub yet.
    report(*op);
    return shardprop::fail(hub_.failure());
  }
  return op;
}

Result<void> ThreadChannel::complete(Lock& lock, ThreadOp& op,
                                     std::size_t index) {
  // A call that nobody completes would leave the other members waiting, so an
  // exception fails the world.
  try {
    SP_CHECK(check_match(ranks_, op.calls));
    const std::int64_t bytes = task_bytes(op.calls);
    // One member reads and writes this much. A copy of this size by one rank
    // alone is classified the same.
    op.bulk = kernels::cpu::exceeds_caches(
        2 * bytes / static_cast<std::int64_t>(op.calls.size()));
    if (bytes <= kInlineBytes) {
      run_at_once(lock, op, index);
    } else {
      op.state.store(ThreadOp::State::kReady);
    }
    return {};
  } catch (...) {
    return shardprop::fail(
        task_error(hub_, ranks_[index], std::current_exception()));
  }
}

void ThreadChannel::reap(std::size_t index) {
  std::vector<std::shared_ptr<ThreadOp>> parked;
  {
    Lock lock(mutex_);
    for (const std::shared_ptr<ThreadOp>& op : ops_) {
      if (op->dropped[index] && !op->over()) parked.push_back(op);
    }
    for (const auto& op : parked) run_tasks(lock, *op, index);
    sweep();
  }
  for (const auto& op : parked) report(*op);
}

void ThreadChannel::report(const ThreadOp& op) {
  if (op.state.load() == ThreadOp::State::kFailed) hub_.fail(*op.error);
}

Result<void> ThreadChannel::run(const ThreadOp& op, std::size_t task,
                                std::size_t index) const noexcept {
  try {
    DeviceQueue* const queue = op.queues[index].queue.get();
    if (queue == nullptr) {
      return run_task(op.calls, task, host_memory_ops(), op.bulk);
    }
    for (const MemberQueue& member : op.queues) {
      SP_CHECK(queue->follow(*member.ready));
    }
    Result<void> queued;
    try {
      queued = run_task(op.calls, task, *queue, op.bulk);
    } catch (...) {
      queued = shardprop::fail(
          task_error(hub_, ranks_[index], std::current_exception()));
    }
    // Work that was queued before an error also reads memory that its owner may
    // free.
    const Result<void> finished = queue->finish();
    return queued ? finished : queued;
  } catch (...) {
    return shardprop::fail(
        task_error(hub_, ranks_[index], std::current_exception()));
  }
}

void ThreadChannel::run_tasks(Lock& lock, ThreadOp& op, std::size_t index) {
  const std::size_t count = ranks_.size();
  for (std::size_t k = 0; k < count; ++k) {
    const std::size_t task = (index + k) % count;
    if (op.state.load() != ThreadOp::State::kReady) return;
    if (op.taken[task]) continue;
    op.taken[task] = true;
    lock.unlock();
    Result<void> done = run(op, task, index);
    lock.lock();
    if (!done && !op.error) op.error = std::move(done).error();
    if (++op.finished == count) finish(lock, op);
  }
}

void ThreadChannel::run_at_once(Lock& lock, ThreadOp& op, std::size_t index) {
  for (std::size_t task = 0; task < ranks_.size(); ++task) {
    Result<void> done = run(op, task, index);
    if (!done && !op.error) op.error = std::move(done).error();
    op.taken[task] = true;
  }
  op.state.store_quietly(ThreadOp::State::kReady);
  finish(lock, op);
}

void ThreadChannel::finish(Lock& lock, ThreadOp& op) {
  std::vector<CollectiveCall> calls = std::move(op.calls);
  std::vector<MemberQueue> queues = std::move(op.queues);
  op.calls.clear();
  op.queues.clear();
  // Owners may run arbitrary code when their last view is released, so the
  // mutex is unlocked. A wait that returns must also find every reference of
  // its call released.
  lock.unlock();
  calls.clear();
  queues.clear();
  lock.lock();
  op.state.store(op.error ? ThreadOp::State::kFailed : ThreadOp::State::kDone);
}

void ThreadChannel::sweep() {
  while (!ops_.empty() && ops_.front()->over()) {
    ops_.pop_front();
    ++swept_;
  }
}

Result<void> ThreadChannel::wait(ThreadOp& op, std::size_t index,
                                 std::chrono::milliseconds timeout) {
  using State = ThreadOp::State;
  const auto begin = std::chrono::steady_clock::now();
  spin_while(op, State::kCollecting);
  while (!op.over()) {
    if (op.state.load() == State::kReady) {
      {
        Lock lock(mutex_);
        run_tasks(lock, op, index);
      }
      // Other threads run the remaining tasks, and they wait for no other
      // thread.
      spin_while(op, State::kReady);
      op.state.sleep_while(State::kReady, std::nullopt);
    } else if (op.state.load() == State::kWithdrawn) {
      op.state.sleep_while(State::kWithdrawn, std::nullopt);
    } else if (!op.state.sleep_while(State::kCollecting, begin + timeout)) {
      give_up(op, index, timeout);
    }
  }
  if (op.state.load() == State::kDone) return {};
  report(op);
  return shardprop::fail(Error(*op.error).with_note(
      "rank " + std::to_string(ranks_[index]) + " waited in call " +
      std::to_string(op.number) + " of group " + to_string(ranks_)));
}

void ThreadChannel::spin_while(const ThreadOp& op, ThreadOp::State state) {
  if (!hub_.may_spin()) return;
  const auto begin = std::chrono::steady_clock::now();
  while (op.state.load() == state &&
         std::chrono::steady_clock::now() < begin + kSpin) {
    pause();
  }
}

void ThreadChannel::give_up(ThreadOp& op, std::size_t index,
                            std::chrono::milliseconds timeout) {
  std::vector<std::int64_t> missing;
  std::string call;
  {
    const Lock lock(mutex_);
    if (op.state.load() != ThreadOp::State::kCollecting) return;
    missing = missing_from(op);
    call = describe(op, index);
  }
  hub_.fail(late(missing, call, timeout));
}

std::vector<std::int64_t> ThreadChannel::missing_from(
    const ThreadOp& op) const {
  std::vector<std::int64_t> missing;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (!op.came[i]) missing.push_back(ranks_[i]);
  }
  return missing;
}

Error ThreadChannel::late(std::span<const std::int64_t> missing,
                          const std::string& call,
                          std::chrono::milliseconds timeout) const {
  Error error{ErrorCode::kTimeout, rank_names(missing) + " did not come to " +
                                       call + " within " +
                                       std::to_string(timeout.count()) + " ms"};
  for (const std::int64_t rank : missing) {
    error.notes.push_back(hub_.activity(rank));
  }
  return error;
}

bool ThreadChannel::advance(ThreadOp& op, std::size_t index) {
  if (op.over()) return true;
  {
    Lock lock(mutex_);
    run_tasks(lock, op, index);
  }
  report(op);
  return op.over();
}

void ThreadChannel::drop(ThreadOp& op, std::size_t index) {
  const Lock lock(mutex_);
  op.dropped[index] = true;
}

std::int64_t ThreadChannel::parked(std::size_t index) const {
  const Lock lock(mutex_);
  return std::count_if(ops_.begin(), ops_.end(), [index](const auto& op) {
    return op->dropped[index] && !op->over();
  });
}

void ThreadChannel::withdraw(const Error& failure) {
  std::vector<std::shared_ptr<ThreadOp>> withdrawn;
  Lock lock(mutex_);
  for (const std::shared_ptr<ThreadOp>& op : ops_) {
    if (op->state.load() != ThreadOp::State::kCollecting) continue;
    withdrawn.push_back(op);
    op->error = failure;
  }
  // Members sleep while an operation is withdrawn, so no exception may leave it
  // in this state.
  for (const std::shared_ptr<ThreadOp>& op : withdrawn) {
    op->state.store(ThreadOp::State::kWithdrawn);
  }
  // finish() states why the mutex is unlocked.
  lock.unlock();
  for (const std::shared_ptr<ThreadOp>& op : withdrawn) {
    op->calls.clear();
    op->queues.clear();
    op->state.store(ThreadOp::State::kFailed);
  }
}

std::optional<std::string> ThreadChannel::missed(std::size_t index) const {
  const Lock lock(mutex_);
  for (const std::shared_ptr<ThreadOp>& op : ops_) {
    if (op->state.load() != ThreadOp::State::kCollecting || op->came[index])
      continue;
    const auto waiting = std::find(op->came.begin(), op->came.end(), true);
    if (waiting == op->came.end()) continue;
    return describe(*op, static_cast<std::size_t>(waiting - op->came.begin()));
  }
  return std::nullopt;
}

std::optional<std::string> ThreadChannel::activity(std::size_t index) const {
  const Lock lock(mutex_);
  for (auto op = ops_.rbegin(); op != ops_.rend(); ++op) {
    if ((*op)->state.load() == ThreadOp::State::kCollecting &&
        (*op)->came[index] && !(*op)->dropped[index]) {
      return describe(**op, index) + ", waiting for " +
             rank_names(missing_from(**op));
    }
  }
  return std::nullopt;
}

std::string ThreadChannel::describe(const ThreadOp& op,
                                    std::size_t index) const {
  return "call " + std::to_string(op.number) + " of group " +
         to_string(ranks_) + ", " + to_string(op.calls[index]);
}

}  // namespace shardprop::collective
