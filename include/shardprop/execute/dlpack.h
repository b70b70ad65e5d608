// This header imports and exports tensors by DLPack, the exchange format of
// array libraries.
//
// The structs below have DLPack's ABI, version 1.1, under names of this
// library. A program may thus include DLPack's header too and cast pointers
// between the two. Source: https://dmlc.github.io/dlpack (Apache-2.0).
//
//   // a capsule's pointer from PyTorch, NumPy, JAX or CuPy in ...
//   MemoryOps& memory = communicator.memory_ops();
//   LocalTensor held =
//       import_dlpack(managed, DlpackStreams::into(memory)).value();
//   LocalTensor out = run(program, communicator, held).value();
//   // ... and one out
//   managed =
//       export_dlpack(out, DlpackStreams::out_of(memory)).value().release();
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/collective/local_tensor.h>
#include <shardprop/collective/memory_ops.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace shardprop {

namespace dlpack {

inline constexpr std::uint32_t kMajorVersion = 1;
inline constexpr std::uint32_t kMinorVersion = 1;

struct Version {
  std::uint32_t major;
  std::uint32_t minor;
};

enum class DeviceKind : std::int32_t {
  kCpu = 1,
  kCuda = 2,
  kCudaHost = 3,      // page-locked memory of the host
  kCudaManaged = 13,  // accessible from both
};

struct Device {
  DeviceKind kind;
  std::int32_t index;
};

enum class TypeCode : std::uint8_t {
  kInt = 0,
  kUInt = 1,
  kFloat = 2,
  kBFloat = 4,
  kComplex = 5,
  kBool = 6,
  kFloat8E4M3FN = 10,
  kFloat8E4M3FNUZ = 11,
  kFloat8E5M2 = 12,
  kFloat8E5M2FNUZ = 13,
  kFloat8E8M0FNU = 14,
};

struct DataType {
  TypeCode code;
  std::uint8_t bits;
  std::uint16_t lanes;
};

struct Tensor {
  void* data;
  Device device;
  std::int32_t ndim;
  DataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements; null: row-major
  std::uint64_t byte_offset;
};

// `ManagedTensor` is the struct that libraries exchanged before version 1.
struct ManagedTensor {
  Tensor tensor;
  void* context;
  void (*deleter)(ManagedTensor*);  // may be null
};

inline constexpr std::uint64_t kReadOnly = 1;
inline constexpr std::uint64_t kIsCopied = 2;

struct ManagedTensorVersioned {
  Version version;
  void* context;
  void (*deleter)(ManagedTensorVersioned*);  // may be null
  std::uint64_t flags;
  Tensor tensor;
};

// `Deleter` calls the tensor's own deleter, for std::unique_ptr.
struct Deleter {
  void operator()(ManagedTensor* managed) const {
    if (managed->deleter != nullptr) managed->deleter(managed);
  }
  void operator()(ManagedTensorVersioned* managed) const {
    if (managed->deleter != nullptr) managed->deleter(managed);
  }
};
using Owned = std::unique_ptr<ManagedTensorVersioned, Deleter>;
using OwnedLegacy = std::unique_ptr<ManagedTensor, Deleter>;

}  // namespace dlpack

// `DlpackStreams` are queues of work on a device (cudaStream_t; null is CUDA's
// legacy default stream). DLPack requires producer and consumer to order their
// work on the tensor. A tensor on a device needs both streams; a tensor on the
// host needs none.
struct DlpackStreams {
  std::optional<void*> producer;  // has the work that wrote the tensor
  std::optional<void*> consumer;  // will have the work that reads it
  // Makes `waiting` wait for the work that `awaited` has now, for example by
  // cudaEventRecord and cudaStreamWaitEvent. If the streams differ, the
  // consumer waits for the producer immediately. The producer waits for the
  // consumer when the tensor is dropped, before its memory is reused. If this
  // second order fails, the memory is never freed.
  MemoryOps::StreamOrder order;

  // These return the streams from the producer's to the queue of a
  // communicator's MemoryOps, or from that queue to the consumer's. On the host
  // both are empty.
  static DlpackStreams into(const MemoryOps& memory, void* producer = nullptr);
  static DlpackStreams out_of(const MemoryOps& memory,
                              void* consumer = nullptr);
};

// Takes ownership of `managed` without a copy. Its deleter is called once: when
// the last LocalTensor on its memory is destroyed, or before an error is
// returned. `read_only` may be null.
//
// Errors, in addition to those of `order`: kDlpack, for one of
//
//   * null, or another major version;
//   * a device that is neither the host nor CUDA;
//   * an unsupported dtype, lanes, or a malformed shape;
//   * a tensor on a device without streams, or with different streams and no
//     `order`.
Result<LocalTensor> import_dlpack(dlpack::ManagedTensorVersioned* managed,
                                  const DlpackStreams& streams = {},
                                  bool* read_only = nullptr);
Result<LocalTensor> import_dlpack(dlpack::ManagedTensor* managed,
                                  const DlpackStreams& streams = {});

// Returns a view of the tensor's memory that keeps the memory alive until its
// deleter is called. Memory without an owner must outlive it.
// Errors: kDlpack (as for streams above), and those of `order`.
Result<dlpack::Owned> export_dlpack(const LocalTensor& tensor,
                                    const DlpackStreams& streams = {},
                                    bool read_only = false);
Result<dlpack::OwnedLegacy> export_dlpack_legacy(
    const LocalTensor& tensor, const DlpackStreams& streams = {});

}  // namespace shardprop
