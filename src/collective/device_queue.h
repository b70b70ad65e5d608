// `DeviceQueue` is a MemoryOps that queues its operations on a stream of a
// device. Marks order the queues of several ranks. CUDA and a test implement
// it.
//
// Memory of allocate() may be dropped while work on it is queued, because later
// users of the memory wait for that work. All other memory must exist until the
// work is done.
#pragma once

#include <shardprop/collective/memory_ops.h>

#include <chrono>
#include <functional>
#include <memory>

namespace shardprop::collective {

class DeviceQueue : public MemoryOps {
 public:
  // Runs `work` with this queue's device as the current device of the calling
  // thread, and restores the previous one.
  virtual Result<void> on_device(const std::function<Result<void>()>& work) = 0;

  // A mark is a point in the queue: after everything that is queued when it is
  // created.
  class Mark {
   public:
    Mark() = default;
    Mark(const Mark&) = delete;
    Mark& operator=(const Mark&) = delete;
    virtual ~Mark() = default;
    // True if the queue has got there.
    virtual Result<bool> reached() = 0;
  };
  virtual Result<std::unique_ptr<Mark>> mark() = 0;
  // Makes all later work wait until `mark`, of any queue of the same kind, is
  // reached. The mark was created earlier, so queues never wait in a circle.
  virtual Result<void> follow(const Mark& mark) = 0;
};

// Waits until all work that is queued now is done, a DeviceQueue's at most so
// long. Returns whether it is done. If it is not, memory that it uses must not
// be freed.
bool drains(MemoryOps& memory, std::chrono::milliseconds patience);

}  // namespace shardprop::collective
