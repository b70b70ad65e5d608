#pragma once

#include <cstdint>
#include <memory>

namespace shardprop::kernels {

// `ThreadPool` is a set of threads that wait for work. One pool serves any
// number of calls; concurrent calls run one after another. The destructor joins
// the threads.
class ThreadPool {
 public:
  // `threads` counts the calling thread, which works too: ThreadPool(1) starts
  // no thread. Less than 1 means one thread per hardware thread. If a thread
  // cannot be started, the pool has fewer threads, which do the same work.
  explicit ThreadPool(int threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;

  // Calls task(context, i) once for each i in [0, count), distributed over the
  // threads. Returns when all calls are done. The task must not throw.
  void run(std::int64_t count, void (*task)(void* context, std::int64_t index),
           void* context);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shardprop::kernels
