#include <shardprop/kernels/thread_pool.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace shardprop::kernels {

struct ThreadPool::State {
  std::mutex turn;  // held by the caller that the pool works for

  std::mutex mutex;  // of what follows
  std::condition_variable work;
  std::condition_variable done;
  std::int64_t generation = 0;  // counts calls of run()
  int busy = 0;                 // workers that have not finished this call
  bool stopping = false;

  // Set before the workers wake.
  void (*task)(void*, std::int64_t) = nullptr;
  void* context = nullptr;
  std::int64_t count = 0;
  std::atomic<std::int64_t> next{0};

  std::vector<std::thread> workers;

  void drain() {
    for (;;) {
      const std::int64_t index = next.fetch_add(1, std::memory_order_relaxed);
      if (index >= count) return;
      task(context, index);
    }
  }

  void worker() {
    std::int64_t seen = 0;
    std::unique_lock lock(mutex);
    for (;;) {
      work.wait(lock, [&] { return stopping || generation != seen; });
      if (stopping) return;
      seen = generation;
      lock.unlock();
      drain();
      lock.lock();
      if (--busy == 0) done.notify_one();
    }
  }

  void stop() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    work.notify_all();
    for (std::thread& thread : workers) thread.join();
  }
};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>()) {
  if (threads < 1) {
    threads = static_cast<int>(std::thread::hardware_concurrency());
  }
  try {
    for (int i = 1; i < threads; ++i) {
      state_->workers.emplace_back([state = state_.get()] { state->worker(); });
    }
  } catch (const std::system_error&) {
    // Fewer workers do the same work.
  } catch (...) {
    state_->stop();
    throw;
  }
}

ThreadPool::~ThreadPool() { state_->stop(); }

int ThreadPool::threads() const {
  return static_cast<int>(state_->workers.size()) + 1;
}

void ThreadPool::run(std::int64_t count, void (*task)(void*, std::int64_t),
                     void* context) {
  if (count <= 0) return;
  const std::lock_guard turn(state_->turn);
  {
    const std::lock_guard lock(state_->mutex);
    state_->task = task;
    state_->context = context;
    state_->count = count;
    state_->next.store(0, std::memory_order_relaxed);
    state_->busy = static_cast<int>(state_->workers.size());
    ++state_->generation;
  }
  state_->work.notify_all();
  state_->drain();
  std::unique_lock lock(state_->mutex);
  state_->done.wait(lock, [&] { return state_->busy == 0; });
}

}  // namespace shardprop::kernels
