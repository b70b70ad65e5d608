// parallel() runs n shares of work: the first on the calling thread, each other
// share on its own thread.
//
//   parallel(threads, [&](std::size_t i) { sort(part[i]); });
//
// If a thread cannot be started, its share runs on the calling thread later, so
// shares must not wait for each other. parallel() returns when all shares have
// ended. It then rethrows the exception of the first share that threw. If
// memory for a thread is missing, it throws std::bad_alloc once the started
// shares have ended.
#pragma once

#include <algorithm>
#include <cstddef>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

namespace shardprop {

template <class F>
void parallel(std::size_t n, const F& share) {
  std::vector<std::exception_ptr> thrown(n);
  const auto caught = [&](std::size_t i) noexcept {
    try {
      share(i);
    } catch (...) {
      thrown[i] = std::current_exception();
    }
  };
  std::size_t started = 1;
  {
    std::vector<std::jthread> threads;
    threads.reserve(n);
    try {
      for (; started < n; ++started) threads.emplace_back(caught, started);
    } catch (const std::system_error&) {
      // A thread is missing: the remaining shares run here.
    }
    if (n > 0) caught(0);
    for (std::size_t i = started; i < n; ++i) caught(i);
  }
  for (const std::exception_ptr& exception : thrown) {
    if (exception) std::rethrow_exception(exception);
  }
}

// run_tasks() does the same for more tasks than threads. Each thread runs every
// threads-th task, in order.
template <class F>
void run_tasks(std::size_t tasks, std::size_t threads, const F& task) {
  const std::size_t shares = std::min(tasks, std::max<std::size_t>(1, threads));
  parallel(shares, [&](std::size_t share) {
    for (std::size_t i = share; i < tasks; i += shares) task(i);
  });
}

}  // namespace shardprop
