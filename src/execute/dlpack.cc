#include <shardprop/execute/dlpack.h>

#include "base/try.h"
#include "collective/never_free.h"

#include <shardprop/placement/tensor_meta.h>

#include <cstddef>
#include <functional>
#include <limits>
#include <new>
#include <optional>
#include <string>
#include <utility>

namespace shardprop {
namespace {

using dlpack::DataType;
using dlpack::DeviceKind;
using dlpack::ManagedTensor;
using dlpack::ManagedTensorVersioned;
using dlpack::TypeCode;

// The ABI has 64-bit pointers and no padding.
static_assert(sizeof(dlpack::Tensor) == 48);
static_assert(offsetof(dlpack::Tensor, dtype) == 20);
static_assert(offsetof(dlpack::Tensor, byte_offset) == 40);
static_assert(sizeof(ManagedTensor) == 64);
static_assert(sizeof(ManagedTensorVersioned) == 80);
static_assert(offsetof(ManagedTensorVersioned, tensor) == 32);

struct Row {
  DType dtype;
  TypeCode code;
};

constexpr Row kTypes[] = {
    {DType::kBool, TypeCode::kBool},
    {DType::kU8, TypeCode::kUInt},
    {DType::kU16, TypeCode::kUInt},
    {DType::kU32, TypeCode::kUInt},
    {DType::kU64, TypeCode::kUInt},
    {DType::kI8, TypeCode::kInt},
    {DType::kI16, TypeCode::kInt},
    {DType::kI32, TypeCode::kInt},
    {DType::kI64, TypeCode::kInt},
    {DType::kF8E4M3FN, TypeCode::kFloat8E4M3FN},
    {DType::kF8E4M3FNUZ, TypeCode::kFloat8E4M3FNUZ},
    {DType::kF8E5M2, TypeCode::kFloat8E5M2},
    {DType::kF8E5M2FNUZ, TypeCode::kFloat8E5M2FNUZ},
    {DType::kF8E8M0FNU, TypeCode::kFloat8E8M0FNU},
    {DType::kF16, TypeCode::kFloat},
    {DType::kBF16, TypeCode::kBFloat},
    {DType::kF32, TypeCode::kFloat},
    {DType::kF64, TypeCode::kFloat},
    {DType::kC32, TypeCode::kComplex},
    {DType::kC64, TypeCode::kComplex},
    {DType::kC128, TypeCode::kComplex},
};

DataType to_dlpack(DType dtype) {
  for (const Row& row : kTypes) {
    if (row.dtype == dtype) {
      return {row.code, static_cast<std::uint8_t>(8 * item_size(dtype)), 1};
    }
  }
  throw InternalError("a dtype outside its enumeration");
}

std::optional<DType> from_dlpack(DataType type) {
  for (const Row& row : kTypes) {
    if (row.code == type.code && 8 * item_size(row.dtype) == type.bits) {
      return row.dtype;
    }
  }
  return std::nullopt;
}

auto refused(std::string what, std::string help = {}) {
  return fail(ErrorCode::kDlpack, std::move(what), std::move(help));
}

Result<Device> device_of(const dlpack::Device& device) {
  switch (device.kind) {
    case DeviceKind::kCpu:
    case DeviceKind::kCudaHost:
      return Device{DeviceType::kHost, 0};
    case DeviceKind::kCuda:
    case DeviceKind::kCudaManaged:
      return Device{DeviceType::kCuda, device.index};
  }
  return refused("a DLPack tensor is on a device of kind " +
                     std::to_string(static_cast<std::int32_t>(device.kind)),
                 "bring it to the host or to a CUDA device");
}

// Makes the producer wait for the consumer when the tensor is dropped. It
// returns false if it cannot; a deleter cannot report an error. It is empty if
// the order exists already.
using OrderBack = std::function<bool()>;

// Makes the consumer wait for the producer.
Result<OrderBack> order(const Device& device, const DlpackStreams& streams) {
  if (device.type == DeviceType::kHost) return OrderBack();
  if (!streams.producer || !streams.consumer) {
    return refused(
        "the streams of a tensor on " + to_string(device) + " are not known",
        "give DlpackStreams::into(communicator.memory_ops()) or "
        "out_of(), or both streams");
  }
  if (*streams.producer == *streams.consumer) return OrderBack();
  if (!streams.order) {
    return refused("a tensor on " + to_string(device) +
                       " passes between two streams that nothing orders",
                   "give DlpackStreams::order, or one stream");
  }
  SP_CHECK(streams.order(*streams.consumer, *streams.producer));
  return OrderBack([streams] {
    try {
      return streams.order(*streams.producer, *streams.consumer).has_value();
    } catch (const std::bad_alloc&) {
      return false;
    }
  });
}

// Describes the tensor of `managed`, without an owner.
Result<LocalTensor> described(const dlpack::Tensor& tensor) {
  SP_ASSIGN(const Device device, device_of(tensor.device));
  const auto dtype = from_dlpack(tensor.dtype);
  if (!dtype || tensor.dtype.lanes != 1) {
    return refused(
        "a DLPack tensor of type code " +
            std::to_string(static_cast<int>(tensor.dtype.code)) + ", " +
            std::to_string(tensor.dtype.bits) + " bits and " +
            std::to_string(tensor.dtype.lanes) + " lanes",
        "give elements of a dtype that shardprop has, one lane each");
  }
  if (tensor.ndim < 0 || tensor.ndim > kMaxTensorRank ||
      (tensor.ndim > 0 && tensor.shape == nullptr)) {
    return refused(
        "a DLPack tensor of " + std::to_string(tensor.ndim) +
        (tensor.shape == nullptr ? " dims without a shape" : " dims"));
  }
  Dims sizes;
  std::int64_t elements = 1;
  for (std::int32_t d = 0; d < tensor.ndim; ++d) {
    const std::int64_t size = tensor.shape[d];
    if (size < 0 ||
        (size > 0 &&
         elements > std::numeric_limits<std::int64_t>::max() / 16 / size)) {
      return refused("dim " + std::to_string(d) + " of a DLPack tensor is " +
                     std::to_string(size));
    }
    elements *= size;
    sizes.push_back(size);
  }
  if (elements > 0 && tensor.data == nullptr) {
    return refused("a DLPack tensor with elements and no memory");
  }
  Dims strides = contiguous_strides(sizes);
  if (tensor.strides != nullptr) {
    strides.assign(tensor.strides, tensor.strides + tensor.ndim);
  }
  auto* data = static_cast<std::byte*>(tensor.data);
  if (data != nullptr) data += tensor.byte_offset;
  return LocalTensor::wrap(data, std::move(sizes), std::move(strides), *dtype,
                           nullptr, device);
}

// Owns `managed` from here on, also on errors and exceptions.
template <class Managed>
Result<LocalTensor> imported(Managed* managed, const DlpackStreams& streams) {
  std::unique_ptr<Managed, dlpack::Deleter> whole(managed);
  const auto before_drop = std::make_shared<OrderBack>();
  const std::shared_ptr<void> owner(whole.release(), [before_drop](void* held) {
    // The consumer may still access memory of a producer that does not wait for
    // it, so the producer never gets this memory back.
    if (*before_drop && !(*before_drop)()) return;
    dlpack::Deleter()(static_cast<Managed*>(held));
  });
  SP_ASSIGN(const LocalTensor bare, described(managed->tensor));
  SP_ASSIGN(*before_drop, order(bare.device(), streams));
  return LocalTensor::wrap(bare.data(), bare.sizes(), bare.strides(),
                           bare.dtype(), owner, bare.device());
}

// The memory that an export's deleter frees.
template <class Managed>
struct Exported {
  Managed managed{};
  LocalTensor held;
  OrderBack before_drop;
  Dims sizes;
  Dims strides;
};

template <class Managed>
Result<std::unique_ptr<Managed, dlpack::Deleter>> exported(
    const LocalTensor& tensor, const DlpackStreams& streams) {
  auto body = std::make_unique<Exported<Managed>>();
  SP_ASSIGN(body->before_drop, order(tensor.device(), streams));
  body->held = tensor;
  body->sizes = tensor.sizes();
  body->strides = tensor.strides();
  const bool host = tensor.device().type == DeviceType::kHost;
  body->managed.tensor = {
      .data = tensor.data(),
      .device = {host ? DeviceKind::kCpu : DeviceKind::kCuda,
                 tensor.device().index},
      .ndim = tensor.rank(),
      .dtype = to_dlpack(tensor.dtype()),
      .shape = body->sizes.data(),
      .strides = body->strides.data(),
      .byte_offset = 0};
  body->managed.context = body.get();
  body->managed.deleter = [](Managed* managed) {
    std::unique_ptr<Exported<Managed>> dropped(
        static_cast<Exported<Managed>*>(managed->context));
    if (dropped->before_drop && !dropped->before_drop()) {
      collective::never_free(std::move(dropped));
    }
  };
  return std::unique_ptr<Managed, dlpack::Deleter>(&body.release()->managed);
}

}  // namespace

DlpackStreams DlpackStreams::into(const MemoryOps& memory, void* producer) {
  if (memory.device().type == DeviceType::kHost) return {};
  return {producer, memory.stream(), memory.stream_order()};
}

DlpackStreams DlpackStreams::out_of(const MemoryOps& memory, void* consumer) {
  if (memory.device().type == DeviceType::kHost) return {};
  return {memory.stream(), consumer, memory.stream_order()};
}

Result<LocalTensor> import_dlpack(ManagedTensorVersioned* managed,
                                  const DlpackStreams& streams,
                                  bool* read_only) {
  if (managed == nullptr) return refused("no DLPack tensor was given");
  if (managed->version.major != dlpack::kMajorVersion) {
    // In another major version, only `version` and `deleter` are at known
    // offsets.
    const dlpack::Owned drop(managed);
    return refused("a DLPack tensor of version " +
                       std::to_string(managed->version.major) + "." +
                       std::to_string(managed->version.minor),
                   "ask its producer for version 1");
  }
  const bool locked = (managed->flags & dlpack::kReadOnly) != 0;
  SP_ASSIGN(LocalTensor tensor, imported(managed, streams));
  if (read_only != nullptr) *read_only = locked;
  return tensor;
}

Result<LocalTensor> import_dlpack(ManagedTensor* managed,
                                  const DlpackStreams& streams) {
  if (managed == nullptr) return refused("no DLPack tensor was given");
  return imported(managed, streams);
}

Result<dlpack::Owned> export_dlpack(const LocalTensor& tensor,
                                    const DlpackStreams& streams,
                                    bool read_only) {
  SP_ASSIGN(dlpack::Owned out,
            exported<ManagedTensorVersioned>(tensor, streams));
  out->version = {dlpack::kMajorVersion, dlpack::kMinorVersion};
  out->flags = read_only ? dlpack::kReadOnly : 0;
  return out;
}

Result<dlpack::OwnedLegacy> export_dlpack_legacy(const LocalTensor& tensor,
                                                 const DlpackStreams& streams) {
  return exported<ManagedTensor>(tensor, streams);
}

}  // namespace shardprop
