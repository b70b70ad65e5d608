// `MemoryOps` packs, casts and reduces a rank's own memory before and after
// collectives.
//
// Operations of the host are complete when the call returns. Operations of a
// device are queued in order, on the queue that the collectives of the same
// communicator use too. A rank may therefore pack the inputs of a collective
// before it and unpack its outputs after it without a wait. finish() waits.
//
//   MemoryOps& memory = communicator.memory_ops();
//   memory.copy(x, wide);             // for example bf16 to f32
//   communicator.run(group, call);    // of `wide`
//   memory.copy(wide, out, 0.5);      // the mean of two
//   memory.finish();                  // `out` is complete
//
// All operations return these errors: kCollectiveDevice (memory of another
// device), kEngine (the device failed), kOutOfMemory. Preconditions are those
// of the kernels; a violation throws InternalError.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/collective/local_tensor.h>
#include <shardprop/placement/placement.h>

#include <functional>
#include <span>

namespace shardprop {

// Returns whether copies may convert elements of one dtype to another: between
// floats of 8 to 32 bits.
bool is_cast(DType from, DType to);
// Returns whether copies may scale elements: those of is_cast(), f64 and
// complex numbers.
bool is_scalable(DType dtype);

class MemoryOps {
 public:
  MemoryOps() = default;
  MemoryOps(const MemoryOps&) = delete;
  MemoryOps& operator=(const MemoryOps&) = delete;
  virtual ~MemoryOps() = default;

  virtual Device device() const = 0;
  // Allocates uninitialised row-major memory; an empty tensor has no memory.
  virtual Result<LocalTensor> allocate(const Dims& sizes, DType dtype) = 0;

  // Computes to = from * scale, cast to the dtype of `to`. Precondition: one
  // shape and no overlap; is_cast() if the dtypes differ, is_scalable() if the
  // scale is not 1. Without a cast or scale, `to` may be the same view as
  // `from`.
  virtual Result<void> copy(const LocalTensor& from, const LocalTensor& to,
                            double scale = 1) = 0;
  // Computes out = (op over terms, in their order) * scale. Precondition: one
  // shape and dtype; `out` does not overlap the terms, or is the same view as
  // one of them.
  virtual Result<void> reduce(ReduceOp op, std::span<const LocalTensor> terms,
                              const LocalTensor& out, double scale = 1) = 0;
  // Sets every element to `value`, which points to one item and is read
  // immediately.
  virtual Result<void> fill(const LocalTensor& tensor, const void* value) = 0;
  // Copies between this memory and the host's, in either direction, after the
  // work that was queued before. The copy is complete on return. Precondition:
  // contiguous tensors with the same number of bytes.
  virtual Result<void> transfer(const LocalTensor& from,
                                const LocalTensor& to) = 0;
  // Waits until all queued work is complete.
  virtual Result<void> finish() = 0;

  // Returns the stream on which the work is queued, a cudaStream_t; null on the
  // host. It and CUDA's legacy default stream do not wait for each other.
  virtual void* stream() const { return nullptr; }
  // `StreamOrder` orders two streams: work queued on `waiting` from now on runs
  // after the work that `awaited` has now. Null is CUDA's legacy default
  // stream. It may be called after this MemoryOps is destroyed, and is empty on
  // the host. Error of its calls: kEngine.
  using StreamOrder = std::function<Result<void>(void* waiting, void* awaited)>;
  virtual StreamOrder stream_order() const { return {}; }
};

// Returns the operations of the host. They are stateless: several threads may
// use them at once.
MemoryOps& host_memory_ops();

}  // namespace shardprop
