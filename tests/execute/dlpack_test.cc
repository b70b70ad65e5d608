#include <shardprop/execute/dlpack.h>

#include "support/result_checks.h"

#include <cstring>
#include <memory>
#include <new>
#include <vector>

namespace shardprop {
namespace {

using dlpack::DeviceKind;
using dlpack::ManagedTensor;
using dlpack::ManagedTensorVersioned;
using dlpack::TypeCode;
using testing::value_of;

// A producer that counts how often its deleter is called.
struct Producer {
  std::vector<float> memory = std::vector<float>(24);
  std::vector<std::int64_t> shape{4, 3};
  std::vector<std::int64_t> strides{6, 2};
  int deleted = 0;
  ManagedTensorVersioned versioned{};
  ManagedTensor legacy{};

  Producer() {
    const dlpack::Tensor tensor{.data = memory.data(),
                                .device = {DeviceKind::kCpu, 0},
                                .ndim = 2,
                                .dtype = {TypeCode::kFloat, 32, 1},
                                .shape = shape.data(),
                                .strides = strides.data(),
                                .byte_offset = 4};
    versioned = {{1, 1},
                 this,
                 [](ManagedTensorVersioned* managed) {
                   ++static_cast<Producer*>(managed->context)->deleted;
                 },
                 0,
                 tensor};
    legacy = {tensor, this, [](ManagedTensor* managed) {
                ++static_cast<Producer*>(managed->context)->deleted;
              }};
  }
  Producer(const Producer&) = delete;
  Producer& operator=(const Producer&) = delete;
};

TEST_CASE("an import sees the producer's memory and lets it go once") {
  Producer producer;
  {
    const LocalTensor tensor = value_of(import_dlpack(&producer.versioned));
    CHECK(tensor.data() == producer.memory.data() + 1);
    CHECK(tensor.sizes() == Dims{4, 3});
    CHECK(tensor.strides() == Dims{6, 2});
    CHECK(tensor.dtype() == DType::kF32);
    const LocalTensor part = tensor.narrow(0, 1, 2);
    CHECK(producer.deleted == 0);
  }
  CHECK(producer.deleted == 1);
}

TEST_CASE("views keep what was imported alive") {
  Producer producer;
  LocalTensor part;
  {
    const LocalTensor tensor = value_of(import_dlpack(&producer.legacy));
    part = tensor.narrow(1, 2, 1);
  }
  CHECK(producer.deleted == 0);
  part = LocalTensor();
  CHECK(producer.deleted == 1);
}

TEST_CASE("without strides a tensor is row-major; flags come along") {
  Producer producer;
  producer.versioned.tensor.strides = nullptr;
  producer.versioned.flags = dlpack::kReadOnly | dlpack::kIsCopied;
  bool read_only = false;
  const LocalTensor tensor =
      value_of(import_dlpack(&producer.versioned, {}, &read_only));
  CHECK(tensor.strides() == Dims{3, 1});
  CHECK(read_only);
}

TEST_CASE("a tensor that cannot be imported is released once too") {
  const auto refused = [](void (*spoil)(ManagedTensorVersioned&)) {
    Producer producer;
    spoil(producer.versioned);
    CHECK_CODE(import_dlpack(&producer.versioned), ErrorCode::kDlpack);
    CHECK(producer.deleted == 1);
  };
  refused([](ManagedTensorVersioned& m) { m.version.major = 2; });
  refused([](ManagedTensorVersioned& m) {
    m.tensor.device.kind = static_cast<DeviceKind>(10);  // ROCm
  });
  refused([](ManagedTensorVersioned& m) { m.tensor.dtype.lanes = 4; });
  refused([](ManagedTensorVersioned& m) { m.tensor.dtype.bits = 24; });
  refused([](ManagedTensorVersioned& m) {
    m.tensor.dtype = {static_cast<TypeCode>(17), 4, 1};  // f4
  });
  refused([](ManagedTensorVersioned& m) { m.tensor.ndim = -1; });
  refused([](ManagedTensorVersioned& m) { m.tensor.ndim = 1000; });
  refused([](ManagedTensorVersioned& m) { m.tensor.shape = nullptr; });
  refused([](ManagedTensorVersioned& m) { m.tensor.shape[1] = -3; });
  refused([](ManagedTensorVersioned& m) {
    m.tensor.shape[0] = std::int64_t{1} << 40;
    m.tensor.shape[1] = std::int64_t{1} << 40;
  });
  refused([](ManagedTensorVersioned& m) { m.tensor.data = nullptr; });
  CHECK_CODE(import_dlpack(static_cast<ManagedTensor*>(nullptr)),
             ErrorCode::kDlpack);
  CHECK_CODE(import_dlpack(static_cast<ManagedTensorVersioned*>(nullptr)),
             ErrorCode::kDlpack);
}

TEST_CASE("a producer may have no deleter") {
  Producer producer;
  producer.versioned.deleter = nullptr;
  CHECK(import_dlpack(&producer.versioned).has_value());
  producer.versioned.tensor.dtype.lanes = 2;
  CHECK_CODE(import_dlpack(&producer.versioned), ErrorCode::kDlpack);
}

TEST_CASE("an export keeps a reference of its own") {
  auto owner = std::make_shared<std::vector<std::int16_t>>(6);
  std::weak_ptr<std::vector<std::int16_t>> alive = owner;
  LocalTensor tensor =
      LocalTensor::wrap(owner->data(), {2, 3}, {1, 2}, DType::kI16, owner);
  owner.reset();
  dlpack::Owned out = value_of(export_dlpack(tensor, {}, true));
  tensor = LocalTensor();
  REQUIRE_FALSE(alive.expired());
  CHECK(out->version.major == 1);
  CHECK(out->flags == dlpack::kReadOnly);
  CHECK(out->tensor.data == alive.lock()->data());
  CHECK(out->tensor.ndim == 2);
  CHECK(out->tensor.shape[1] == 3);
  CHECK(out->tensor.strides[1] == 2);
  CHECK(out->tensor.dtype.code == TypeCode::kInt);
  CHECK(out->tensor.dtype.bits == 16);
  out.reset();
  CHECK(alive.expired());
}

TEST_CASE("every dtype comes back, by either form") {
  for (const DType dtype : all_dtypes()) {
    CAPTURE(to_string(dtype));
    const LocalTensor tensor = value_of(LocalTensor::zeros({2, 2}, dtype));
    dlpack::Owned out = value_of(export_dlpack(tensor));
    CHECK(out->tensor.dtype.bits == 8 * item_size(dtype));
    CHECK(value_of(import_dlpack(out.release())).same_view(tensor));
    dlpack::OwnedLegacy old = value_of(export_dlpack_legacy(tensor));
    CHECK(value_of(import_dlpack(old.release())).same_view(tensor));
  }
}

TEST_CASE("the codes of the 8-bit floats are those of version 1.1") {
  const auto code = [](DType dtype) {
    const LocalTensor tensor = value_of(LocalTensor::zeros({1}, dtype));
    return static_cast<int>(value_of(export_dlpack(tensor))->tensor.dtype.code);
  };
  CHECK(code(DType::kF8E4M3FN) == 10);
  CHECK(code(DType::kF8E4M3FNUZ) == 11);
  CHECK(code(DType::kF8E5M2) == 12);
  CHECK(code(DType::kF8E5M2FNUZ) == 13);
  CHECK(code(DType::kF8E8M0FNU) == 14);
  CHECK(code(DType::kBF16) == 4);
  CHECK(code(DType::kBool) == 6);
}

TEST_CASE("a tensor on a device is refused without streams") {
  for (const DlpackStreams& streams :
       {DlpackStreams{}, DlpackStreams{.producer = nullptr},
        DlpackStreams{.consumer = nullptr},
        DlpackStreams::into(host_memory_ops())}) {
    Producer producer;
    producer.versioned.tensor.device = {DeviceKind::kCuda, 0};
    CHECK_CODE(import_dlpack(&producer.versioned, streams), ErrorCode::kDlpack);
    CHECK(producer.deleted == 1);
  }
  // One stream, also the legacy default one, orders its work itself.
  Producer producer;
  producer.versioned.tensor.device = {DeviceKind::kCuda, 0};
  const DlpackStreams one{.producer = nullptr, .consumer = nullptr};
  const LocalTensor tensor = value_of(import_dlpack(&producer.versioned, one));
  CHECK_CODE(export_dlpack(tensor), ErrorCode::kDlpack);
  CHECK_CODE(export_dlpack_legacy(tensor), ErrorCode::kDlpack);
  CHECK(export_dlpack(tensor, one).has_value());
}

TEST_CASE("streams of a device are ordered at both ends, or refused") {
  int first = 0;
  int second = 0;
  std::vector<std::pair<void*, void*>> calls;
  DlpackStreams streams{.producer = &first, .consumer = &second};
  const auto on_device = [&](Producer& producer) {
    producer.versioned.tensor.device = {DeviceKind::kCuda, 3};
    return import_dlpack(&producer.versioned, streams);
  };
  {
    Producer producer;
    CHECK_CODE(on_device(producer), ErrorCode::kDlpack);
    CHECK(producer.deleted == 1);
  }
  streams.order = [&](void* waiting, void* awaited) -> Result<void> {
    calls.emplace_back(waiting, awaited);
    return {};
  };
  using Calls = std::vector<std::pair<void*, void*>>;
  Producer producer;
  LocalTensor tensor = value_of(on_device(producer));
  CHECK(calls == Calls{{&second, &first}});
  CHECK(tensor.device() == Device{DeviceType::kCuda, 3});
  dlpack::Owned out = value_of(export_dlpack(tensor, streams));
  CHECK(calls == Calls{{&second, &first}, {&second, &first}});
  CHECK(out->tensor.device.kind == DeviceKind::kCuda);
  CHECK(out->tensor.device.index == 3);
  // Before memory is used again, its producer waits for the consumer.
  calls.clear();
  out.reset();
  CHECK(calls == Calls{{&first, &second}});
  CHECK(producer.deleted == 0);
  calls.clear();
  tensor = LocalTensor();
  CHECK(calls == Calls{{&first, &second}});
  CHECK(producer.deleted == 1);
  streams.order = [](void*, void*) -> Result<void> {
    return fail(ErrorCode::kEngine, "an event cannot be recorded");
  };
  Producer other;
  CHECK_CODE(on_device(other), ErrorCode::kEngine);
  CHECK(other.deleted == 1);
}

TEST_CASE("memory that its producer cannot order is never freed") {
  int first = 0;
  int second = 0;
  const auto streams_that = [&](MemoryOps::StreamOrder order_back) {
    return DlpackStreams{
        .producer = &first,
        .consumer = &second,
        .order = [&, order_back](void* waiting, void* awaited) -> Result<void> {
          if (waiting == &second) return {};
          return order_back(waiting, awaited);
        }};
  };
  const MemoryOps::StreamOrder refusals[] = {
      [](void*, void*) -> Result<void> { throw std::bad_alloc(); },
      [](void*, void*) -> Result<void> {
        return fail(ErrorCode::kEngine, "an event cannot be recorded");
      }};
  for (const MemoryOps::StreamOrder& refusal : refusals) {
    const DlpackStreams streams = streams_that(refusal);
    Producer producer;
    producer.versioned.tensor.device = {DeviceKind::kCuda, 0};
    value_of(import_dlpack(&producer.versioned, streams));
    CHECK(producer.deleted == 0);

    bool freed = false;
    LocalTensor tensor = LocalTensor::wrap(
        producer.memory.data(), {24}, DType::kF32,
        std::shared_ptr<void>(producer.memory.data(),
                              [&freed](void*) { freed = true; }),
        {DeviceType::kCuda, 0});
    dlpack::Owned out = value_of(export_dlpack(tensor, streams));
    tensor = LocalTensor();
    out.reset();
    CHECK_FALSE(freed);
  }
}

}  // namespace
}  // namespace shardprop
