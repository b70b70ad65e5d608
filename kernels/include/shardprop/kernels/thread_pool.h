#pragma once

#include <cstdint>
#include <memory>

namespace shardprop::kernels {

// Threads that wait for work. One pool serves any number of calls; calls from
// several threads at once take turns. The destructor joins.
class ThreadPool {
 public:
  // `threads` counts the calling thread, which works too: ThreadPool(1) starts
  // none. Less than 1 means one per hardware thread. Where a thread cannot be
  // started the pool has fewer, which do the same work.
  explicit ThreadPool(int threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;

  // Calls task(context, i) once for each i in [0, count), spread over the
  // threads, and returns when all are done. The task must not throw.
  void run(std::int64_t count, void (*task)(void* context, std::int64_t index),
           void* context);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shardprop::kernels
