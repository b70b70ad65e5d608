#include <shardprop/placement/tensor_meta.h>

#include "support/placement_gen.h"
#include "support/property.h"
#include "support/result_checks.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace shardprop {
namespace {

using testing::property;
using testing::some_shape;
using testing::value_of;

constexpr std::int64_t kHuge = INT64_MAX;

TEST_CASE("tensors as they are written") {
  for (const char* text : {"f32[]", "bf16[8,2048]", "i64[0]", "c64[1,0,3]",
                           "bf16[8,2048]{1,8}", "f8e4m3fn[2,2]{0,0}"}) {
    CAPTURE(text);
    CHECK(to_string(value_of(TensorMeta::parse(text))) == text);
  }
  CHECK(to_string(value_of(TensorMeta::parse("f32[2,3]{3,1}"))) == "f32[2,3]");
  CHECK(TensorMeta() == value_of(TensorMeta::parse("f32[]")));
}

TEST_CASE("sizes, strides and bytes") {
  const TensorMeta meta = value_of(TensorMeta::parse("bf16[8,2048]"));
  CHECK(meta.rank() == 2);
  CHECK(meta.size(1) == 2048);
  CHECK(meta.numel() == 16384);
  CHECK(meta.bytes() == 32768);
  CHECK(meta.strides() == Dims{2048, 1});
  CHECK(meta.is_contiguous());
  CHECK(TensorMeta().numel() == 1);
  CHECK(value_of(TensorMeta::parse("f32[4,0]")).bytes() == 0);
  // As in PyTorch: a size of 0 counts as 1.
  const Dims with_empty{2, 0, 3};
  CHECK(contiguous_strides(with_empty) == Dims{3, 3, 1});
}

TEST_CASE("contiguous is a matter of where elements lie") {
  const auto contiguous = [](const char* text) {
    return value_of(TensorMeta::parse(text)).is_contiguous();
  };
  CHECK_FALSE(contiguous("f32[2,3]{1,2}"));
  CHECK_FALSE(contiguous("f32[2,3]{0,1}"));
  // The stride of a dim of size 1 is never used, and an empty tensor has no
  // element.
  CHECK(contiguous("f32[1,8]{1,1}"));
  CHECK(contiguous("f32[4,1]{1,7}"));
  CHECK(contiguous("f32[0,8]{3,3}"));
}

TEST_CASE("a tensor reads back what it prints") {
  property(30000, [] {
    const int rank = *rc::gen::inRange(0, 6);
    const Dims shape = some_shape(rank, 40);
    Dims strides = some_shape(rank, 40);
    if (*rc::gen::arbitrary<bool>()) strides = contiguous_strides(shape);
    const DType dtype =
        all_dtypes()[*rc::gen::inRange<std::size_t>(0, all_dtypes().size())];
    const auto meta = TensorMeta::create(shape, strides, dtype);
    RC_ASSERT(meta.has_value());
    RC_ASSERT(TensorMeta::parse(to_string(*meta)) == *meta);
    RC_ASSERT(std::hash<TensorMeta>{}(*meta) ==
              std::hash<TensorMeta>{}(*TensorMeta::parse(to_string(*meta))));
    std::int64_t bytes = item_size(dtype);
    for (const std::int64_t size : shape) bytes *= size;
    RC_ASSERT(meta->bytes() == bytes);
  });
}

TEST_CASE("what describes no tensor") {
  for (const char* text : {"",
                           "f32",
                           "f32[",
                           "f32]",
                           "f32][",
                           "f32[2,]",
                           "f32[,2]",
                           "f32[a]",
                           "f32[2]x",
                           "f32[2]{",
                           "f32[2]{}",
                           "f32[2]{1,1}",
                           "f32[2]{a}",
                           "f32[-1]",
                           "f32[2]{-1}",
                           "f32[2 ,3]",
                           "f32[[2]]",
                           "f32[9223372036854775807]",
                           "f32[4294967296,4294967296]",
                           "f32[99999999999999999999]",
                           "f32[0,9223372036854775807,4]"}) {
    CAPTURE(text);
    const auto result = TensorMeta::parse(text);
    CHECK_CODE(result, ErrorCode::kTensorMeta);
  }
  CHECK_CODE(TensorMeta::parse("[2]"), ErrorCode::kDTypeSyntax);
  CHECK_CODE(TensorMeta::parse("F32[2]"), ErrorCode::kDTypeSyntax);
  CHECK_CODE(TensorMeta::contiguous(Dims(65, 1), DType::kF32),
             ErrorCode::kTensorMeta);
  CHECK(TensorMeta::contiguous(Dims(64, 1), DType::kF32).has_value());
  CHECK_CODE(TensorMeta::create({2, 2}, {1}, DType::kF32),
             ErrorCode::kTensorMeta);
}

TEST_CASE("strides reach no further than bytes can be counted") {
  CHECK_CODE(TensorMeta::create({2}, {kHuge}, DType::kF32),
             ErrorCode::kTensorMeta);
  CHECK_CODE(TensorMeta::create({kHuge / 1024, 2}, {0, kHuge}, DType::kF32),
             ErrorCode::kTensorMeta);
  const std::int64_t half = std::int64_t{1} << 54;
  CHECK(TensorMeta::create({3, 3}, {half, half}, DType::kU8).has_value());
  CHECK(TensorMeta::create({2}, {half}, DType::kU8).has_value());
  CHECK_CODE(TensorMeta::create({3, 4}, {half, half}, DType::kU8),
             ErrorCode::kTensorMeta);
  // Never taken, so free to be anything.
  CHECK(TensorMeta::create({1}, {kHuge}, DType::kF32).has_value());
  CHECK(TensorMeta::create({0, 2}, {1, kHuge}, DType::kF32).has_value());
}

}  // namespace
}  // namespace shardprop
