// DeviceQueue: a stream of one device and what runs on it beside NCCL's work:
// memory, packing and reduction. CUDA's, or a test's.
#pragma once

#include <shardprop/collective/local_tensor.h>
#include <shardprop/placement/placement.h>

#include <cstdint>
#include <memory>
#include <span>

namespace shardprop::nccl {

class DeviceQueue {
 public:
  DeviceQueue() = default;
  DeviceQueue(const DeviceQueue&) = delete;
  DeviceQueue& operator=(const DeviceQueue&) = delete;
  virtual ~DeviceQueue() = default;

  virtual void* stream() const = 0;
  virtual Device device() const = 0;
  virtual Result<LocalTensor> allocate(const Dims& sizes, DType dtype) = 0;
  // Queued, in order.
  virtual Result<void> copy(const LocalTensor& from, const LocalTensor& to) = 0;
  virtual Result<void> reduce(ReduceOp op, std::span<const LocalTensor> terms,
                              const LocalTensor& out) = 0;
  // Behind all that is queued so far, and whether that is done.
  class Mark {
   public:
    Mark() = default;
    Mark(const Mark&) = delete;
    Mark& operator=(const Mark&) = delete;
    virtual ~Mark() = default;
    virtual Result<bool> reached() = 0;
  };
  virtual Result<std::unique_ptr<Mark>> mark() = 0;
};

// Error: kEngineMissing.
Result<std::unique_ptr<DeviceQueue>> cuda_queue(int device);

}  // namespace shardprop::nccl
