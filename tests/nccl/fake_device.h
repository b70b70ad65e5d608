// A fake device: one thread of its own works on all queues, one step after
// another of each, as a GPU does without anyone asking.
//
// Its memory is the host's, or memory that the host cannot touch
// (fake_memory.h). It keeps nothing alive that its queues refer to: memory of
// the host that is freed too early is read after free. Memory of allocate() may
// be dropped earlier: a queue frees it behind the work that it holds by then.
//
// A step of a queue starts late now and then, at random. SHARDPROP_FAKE_SEED
// and SHARDPROP_FAKE_DELAY_US set the random numbers and the longest delay.
#pragma once

#include "collective/block_cache.h"
#include "collective/device_queue.h"

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <utility>

namespace shardprop::testing {

// Work on a queue: whether it is done; else it is asked again.
using FakeStep = std::function<bool()>;

class FakeQueue final : public collective::DeviceQueue {
 public:
  // On the host's memory, to be used with any tensor, or on a device's. At most
  // `capacity` bytes of the device's memory are there at a time.
  explicit FakeQueue(Device device,
                     std::size_t capacity = std::size_t{1} << 40);
  ~FakeQueue() override;

  void push(FakeStep step);
  // Is called before memory is allocated, which fails with its error.
  void set_fault(std::function<Result<void>()> fault) {
    fault_ = std::move(fault);
  }
  // No mark is reached any more.
  void set_hangs(bool hangs) { state_->hangs = hangs; }
  // Whether all that was pushed is done.
  bool idle() const { return state_->ran == state_->pushed; }

  void* stream() const override { return const_cast<FakeQueue*>(this); }
  // Streams are FakeQueues; null is one that is always idle.
  StreamOrder stream_order() const override;
  Result<void> on_device(const std::function<Result<void>()>& work) override;
  Device device() const override { return device_; }
  Result<LocalTensor> allocate(const Dims& sizes, DType dtype) override;
  Result<void> copy(const LocalTensor& from, const LocalTensor& to,
                    double scale) override;
  Result<void> reduce(ReduceOp op, std::span<const LocalTensor> terms,
                      const LocalTensor& out, double scale) override;
  Result<void> fill(const LocalTensor& tensor, const void* value) override;
  Result<void> transfer(const LocalTensor& from,
                        const LocalTensor& to) override;
  Result<void> finish() override;
  Result<std::unique_ptr<Mark>> mark() override;
  Result<void> follow(const Mark& mark) override;

  struct Queued {
    FakeStep step;
    std::chrono::steady_clock::time_point earliest;
  };
  // The part that the device thread works on.
  struct State {
    std::mutex mutex;
    std::deque<Queued> steps;
    std::minstd_rand random;
    std::atomic<long> pushed{0};
    std::atomic<long> ran{0};
    std::atomic<bool> hangs{false};
    std::atomic<std::size_t> bytes{0};  // of blocks that are there
  };

  std::size_t cached_bytes() const { return blocks_->cached_bytes(); }

 private:
  const Device device_;
  std::shared_ptr<State> state_;
  std::shared_ptr<collective::BlockCache> blocks_;
  std::function<Result<void>()> fault_;
};

// Returns when no step runs that was running before.
void wait_for_fake_device();

// Get and set the current device of the calling thread.
int fake_current_device();
void set_fake_current_device(int device);

// As CUDA does before it frees memory: waits until no queue holds any work.
// Counted as stuck if that takes too long.
void free_as_cuda(void* block);
int stuck_frees();

}  // namespace shardprop::testing
