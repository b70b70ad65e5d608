#include <shardprop/kernels/thread_pool.h>

#include <atomic>
#include <thread>
#include <vector>

#include "check.h"

namespace shardprop::kernels {
namespace {

struct Counts {
  std::vector<std::atomic<int>> of;
};

void count(void* context, std::int64_t index) {
  ++static_cast<Counts*>(context)->of[static_cast<std::size_t>(index)];
}

void expect_once(ThreadPool& pool, std::size_t tasks) {
  Counts counts{std::vector<std::atomic<int>>(tasks)};
  pool.run(static_cast<std::int64_t>(tasks), &count, &counts);
  for (const std::atomic<int>& each : counts.of) CHECK(each == 1);
}

TEST("a pool runs each task once, call after call") {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    CHECK(pool.threads() == threads);
    for (std::size_t tasks : {0, 1, 2, 7, 1000}) {
      for (int call = 0; call < 50; ++call) expect_once(pool, tasks);
    }
  }
}

TEST("callers on several threads take turns") {
  ThreadPool pool(3);
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&pool] {
      for (int call = 0; call < 100; ++call) expect_once(pool, 20);
    });
  }
  for (std::thread& caller : callers) caller.join();
}

TEST("a pool of no count has a thread for each of the hardware's") {
  CHECK(ThreadPool().threads() ==
        std::max(1, static_cast<int>(std::thread::hardware_concurrency())));
}

}  // namespace
}  // namespace shardprop::kernels
