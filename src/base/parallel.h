// parallel(): n shares of work, the first on the calling thread, the others on
// threads of their own.
//
//   parallel(threads, [&](std::size_t i) { sort(part[i]); });
//
// A share whose thread cannot be started runs on the calling thread, later:
// shares must not wait for each other. Returns when all have ended; the
// exception of the first share that threw reaches the caller then.
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
    } catch (const std::exception&) {
      // Neither thread nor the memory for one: the rest runs here.
    }
    if (n > 0) caught(0);
    for (std::size_t i = started; i < n; ++i) caught(i);
  }
  for (const std::exception_ptr& exception : thrown) {
    if (exception) std::rethrow_exception(exception);
  }
}

// The same for tasks that are more than the threads to run them: each thread
// takes every threads-th task, in order.
template <class F>
void run_tasks(std::size_t tasks, std::size_t threads, const F& task) {
  const std::size_t shares = std::min(tasks, std::max<std::size_t>(1, threads));
  parallel(shares, [&](std::size_t share) {
    for (std::size_t i = share; i < tasks; i += shares) task(i);
  });
}

}  // namespace shardprop
