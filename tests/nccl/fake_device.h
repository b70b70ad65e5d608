// A device whose memory is the host's: one thread of its own works on all
// queues, one step after another of each, as a GPU does without anyone asking.
//
// It keeps nothing alive that its queues refer to: memory that is freed too
// early is read after free.
#pragma once

#include "collective/device_queue.h"

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

namespace shardprop::testing {

// Work on a queue: whether it is done; else it is asked again.
using FakeStep = std::function<bool()>;

class FakeQueue final : public collective::DeviceQueue {
 public:
  // Whose memory it says it is: the host's, to be used with any tensor, or a
  // device's.
  explicit FakeQueue(Device device);
  ~FakeQueue() override;

  void push(FakeStep step);
  // Whether all that was pushed is done.
  bool idle() const { return state_->ran == state_->pushed; }

  void* stream() const override { return const_cast<FakeQueue*>(this); }
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

  // What the device thread works on.
  struct State {
    std::mutex mutex;
    std::deque<FakeStep> steps;
    std::atomic<long> pushed{0};
    std::atomic<long> ran{0};
  };

 private:
  const Device device_;
  std::shared_ptr<State> state_;
};

// Returns when no step runs that was running before.
void wait_for_fake_device();

}  // namespace shardprop::testing
