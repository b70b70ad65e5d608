// MemoryOps is a rank's packing, casting and reducing of its own memory around
// collectives.
//
// Operations of the host are done when the call returns. Operations of a device
// are queued in order, on the queue that the collectives of the same
// communicator use too. A rank may pack the inputs of a collective just before
// it and unpack its outputs just after it without a wait in between; finish()
// waits.
//
//   MemoryOps& memory = communicator.memory_ops();
//   memory.copy(x, wide);             // bf16 to f32, say, wherever x is
//   communicator.run(group, call);    // of `wide`
//   memory.copy(wide, out, 0.5);      // the mean of two
//   memory.finish();                  // `out` is there
//
// Errors of all: kCollectiveDevice (memory of another device), kEngine (the
// device failed), kOutOfMemory. Preconditions are those of the kernels; what
// breaks them throws InternalError.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/collective/local_tensor.h>
#include <shardprop/placement/placement.h>

#include <functional>
#include <span>

namespace shardprop {

// Whether copies may change elements of one dtype into another: between floats
// of 8 to 32 bits.
bool is_cast(DType from, DType to);
// Whether they may multiply them: those, f64 and complex numbers.
bool is_scalable(DType dtype);

class MemoryOps {
 public:
  MemoryOps() = default;
  MemoryOps(const MemoryOps&) = delete;
  MemoryOps& operator=(const MemoryOps&) = delete;
  virtual ~MemoryOps() = default;

  virtual Device device() const = 0;
  // Row-major, uninitialised, and empty without any memory.
  virtual Result<LocalTensor> allocate(const Dims& sizes, DType dtype) = 0;

  // to = from * scale, cast to the dtype of `to`. Precondition: one shape
  // and nothing shared; is_cast() where dtypes differ, is_scalable() where the
  // scale is not 1. Without either, `to` may be the very view `from`.
  virtual Result<void> copy(const LocalTensor& from, const LocalTensor& to,
                            double scale = 1) = 0;
  // out = (op over terms, in their order) * scale. Precondition: one shape and
  // dtype; `out` apart from the terms or the very view of one of them.
  virtual Result<void> reduce(ReduceOp op, std::span<const LocalTensor> terms,
                              const LocalTensor& out, double scale = 1) = 0;
  // Every element becomes `value`, of one item, which is read at once.
  virtual Result<void> fill(const LocalTensor& tensor, const void* value) = 0;
  // Copies between this memory and the host's, either way, after the work
  // queued before. It is done on return. Precondition: contiguous tensors of as
  // many bytes.
  virtual Result<void> transfer(const LocalTensor& from,
                                const LocalTensor& to) = 0;
  // Waits until all that was asked for is done.
  virtual Result<void> finish() = 0;

  // The stream that the work is queued on, a cudaStream_t; null on the host.
  // CUDA's legacy default stream does not wait for it, nor does it for that.
  virtual void* stream() const { return nullptr; }
  // A function that makes the work queued on `waiting` from now on run after
  // the work that `awaited` holds by now. Null is CUDA's legacy default stream.
  // It may be called after this MemoryOps is gone. Empty on the host. Error of
  // its calls: kEngine.
  using StreamOrder = std::function<Result<void>(void* waiting, void* awaited)>;
  virtual StreamOrder stream_order() const { return {}; }
};

// The operations of the host are stateless: any number of threads may use them
// at once.
MemoryOps& host_memory_ops();

}  // namespace shardprop
