// `StateWord<E>` is an enumerator; threads can sleep until it changes.
//
// A thread that wakes needs no lock to read the new value. With a condition
// variable, all threads would queue for its mutex.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <thread>

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>
#endif

namespace shardprop::collective {

template <class E>
class StateWord {
 public:
  using Clock = std::chrono::steady_clock;

  explicit StateWord(E first) : word_(static_cast<std::uint32_t>(first)) {}

  E load() const { return static_cast<E>(word_.load()); }

  void store(E value) {
    word_.store(static_cast<std::uint32_t>(value));
    // Sleepers increase the count before they check the word a last time.
    if (sleepers_.load() == 0) return;
#if defined(__linux__)
    syscall(SYS_futex, &word_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr,
            0);
#endif
  }

  // Stores an intermediate value: sleepers continue to sleep until the next
  // store().
  void store_quietly(E value) {
    word_.store(static_cast<std::uint32_t>(value));
  }

  // Sleeps until the value differs from `old`. Returns false at the deadline,
  // if there is one.
  bool sleep_while(E old, std::optional<Clock::time_point> deadline) {
    sleepers_.fetch_add(1);
    bool changed = false;
    for (;;) {
      changed = load() != old;
      if (changed) break;
      if (deadline && Clock::now() >= *deadline) break;
      nap(static_cast<std::uint32_t>(old), deadline);
    }
    sleepers_.fetch_sub(1);
    return changed;
  }

 private:
#if defined(__linux__)
  static_assert(std::atomic<std::uint32_t>::is_always_lock_free);
  void nap(std::uint32_t old, std::optional<Clock::time_point> deadline) {
    timespec until{};
    if (deadline) {
      // This futex wait measures its deadline by the steady clock.
      const auto since = deadline->time_since_epoch();
      const auto seconds =
          std::chrono::duration_cast<std::chrono::seconds>(since);
      until.tv_sec = static_cast<std::time_t>(seconds.count());
      until.tv_nsec =
          static_cast<long>(std::chrono::nanoseconds(since - seconds).count());
    }
    syscall(SYS_futex, &word_, FUTEX_WAIT_BITSET_PRIVATE, old,
            deadline ? &until : nullptr, nullptr, FUTEX_BITSET_MATCH_ANY);
  }
#else
  void nap(std::uint32_t, std::optional<Clock::time_point>) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
#endif

  std::atomic<std::uint32_t> word_;
  std::atomic<std::uint32_t> sleepers_{0};
};

}  // namespace shardprop::collective
