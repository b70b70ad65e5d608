#include <shardprop/collective/kernel_view.h>
#include <shardprop/collective/local_tensor.h>

#include "collective/values.h"
#include "support/result_checks.h"

#include <cstdint>
#include <memory>

namespace shardprop {
namespace {

using testing::Numbers;
using testing::numbers_of;
using testing::tensor_of;
using testing::value_of;

TEST_CASE("views see the same memory") {
  const LocalTensor whole = tensor_of({0, 1, 2, 3, 4, 5}, {2, 3}, DType::kI32);
  CHECK(to_string(whole) == "i32[2,3]");
  CHECK(whole.bytes() == 24);
  const LocalTensor column = whole.narrow(1, 1, 1);
  CHECK(to_string(column) == "i32[2,1]{3,1}");
  CHECK(numbers_of(column) == Numbers{1, 4});
  CHECK_FALSE(column.is_contiguous());
  const LocalTensor turned = whole.transpose(0, 1);
  CHECK(to_string(turned) == "i32[3,2]{1,3}");
  CHECK(numbers_of(turned) == Numbers{0, 3, 1, 4, 2, 5});
  CHECK(numbers_of(whole.reshaped({3, 2}).narrow(0, 2, 1)) == Numbers{4, 5});
  column.data_as<std::int32_t>()[0] = 9;
  CHECK(numbers_of(whole)[1] == 9);
  CHECK(whole.narrow(0, 0, 2).same_view(whole));
  CHECK_FALSE(whole.narrow(0, 0, 1).same_view(whole));
}

TEST_CASE("the owner lives as long as a view") {
  auto memory = std::make_shared<std::int32_t>(7);
  const std::weak_ptr<std::int32_t> watch = memory;
  LocalTensor view;
  {
    const LocalTensor whole =
        LocalTensor::wrap(memory.get(), {1}, DType::kI32, memory);
    memory.reset();
    view = whole.narrow(0, 0, 1);
  }
  CHECK_FALSE(watch.expired());
  view = {};
  CHECK(watch.expired());
}

TEST_CASE("tensors without elements or dims") {
  const LocalTensor none = value_of(LocalTensor::empty({0, 3}, DType::kF32));
  CHECK(none.is_contiguous());
  CHECK(none.bytes() == 0);
  CHECK(none.narrow(0, 0, 0).numel() == 0);
  const LocalTensor scalar = value_of(LocalTensor::zeros({}, DType::kF64));
  CHECK(scalar.numel() == 1);
  CHECK(numbers_of(scalar) == Numbers{0});
  CHECK(to_string(LocalTensor()) == "f32[0]");
}

TEST_CASE("views outside a tensor are bugs, sizes outside memory errors") {
  const LocalTensor whole = value_of(LocalTensor::empty({2, 3}, DType::kF32));
  CHECK_THROWS_AS(whole.narrow(2, 0, 1), InternalError);
  CHECK_THROWS_AS(whole.narrow(0, 1, 2), InternalError);
  CHECK_THROWS_AS(whole.transpose(0, 2), InternalError);
  CHECK_THROWS_AS(whole.reshaped({4}), InternalError);
  CHECK_THROWS_AS(whole.transpose(0, 1).reshaped({6}), InternalError);
  CHECK_CODE(LocalTensor::empty({-1}, DType::kF32), ErrorCode::kTensorMeta);
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
  // Sanitizers end the program instead.
  CHECK_CODE(LocalTensor::empty({std::int64_t{1} << 55}, DType::kU8),
             ErrorCode::kOutOfMemory);
#endif
}

TEST_CASE("every dtype is copied bit for bit") {
  for (const DType dtype : all_dtypes()) {
    CAPTURE(to_string(dtype));
    const std::int64_t bytes = 6 * item_size(dtype);
    const LocalTensor raw = value_of(LocalTensor::empty({bytes}, DType::kU8));
    for (std::int64_t i = 0; i < bytes; ++i) {
      raw.data_as<std::uint8_t>()[i] = static_cast<std::uint8_t>(37 * i + 11);
    }
    const LocalTensor from =
        LocalTensor::wrap(raw.data(), {2, 3}, dtype, raw.owner());
    const LocalTensor to = value_of(LocalTensor::empty({3, 2}, dtype));
    CHECK(copy(from.transpose(0, 1), to).has_value());
    for (std::int64_t i = 0; i < 6; ++i) {
      const auto* a = from.data_as<std::uint8_t>() + i * item_size(dtype);
      const auto* b =
          to.data_as<std::uint8_t>() + (i % 3 * 2 + i / 3) * item_size(dtype);
      CHECK(std::memcmp(a, b, static_cast<std::size_t>(item_size(dtype))) == 0);
    }
  }
}

TEST_CASE("what cannot be copied is said") {
  const LocalTensor a = value_of(LocalTensor::empty({4}, DType::kF32));
  CHECK_CODE(copy(a, value_of(LocalTensor::empty({5}, DType::kF32))),
             ErrorCode::kCollectiveCall);
  CHECK_CODE(copy(a, value_of(LocalTensor::empty({4}, DType::kI32))),
             ErrorCode::kCollectiveCall);
  CHECK_CODE(copy(a.narrow(0, 0, 3), a.narrow(0, 1, 3)),
             ErrorCode::kCollectiveOverlap);
  const LocalTensor there = LocalTensor::wrap(a.data(), {4}, DType::kF32,
                                              nullptr, {DeviceType::kCuda, 1});
  CHECK_CODE(copy(a, there), ErrorCode::kCollectiveDevice);
  CHECK(to_string(there.device()) == "cuda:1");
}

}  // namespace
}  // namespace shardprop
