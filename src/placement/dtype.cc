#include <shardprop/placement/dtype.h>

#include "base/edit_distance.h"

#include <array>
#include <string>
#include <vector>

namespace shardprop {
namespace {

enum class Class : std::uint8_t { kBool, kIntegral, kFloating, kComplex };

struct Row {
  DType dtype;
  std::string_view name;
  std::int64_t bytes;
  Class kind;
};

constexpr Row kRows[] = {
    {DType::kBool, "bool", 1, Class::kBool},
    {DType::kU8, "u8", 1, Class::kIntegral},
    {DType::kU16, "u16", 2, Class::kIntegral},
    {DType::kU32, "u32", 4, Class::kIntegral},
    {DType::kU64, "u64", 8, Class::kIntegral},
    {DType::kI8, "i8", 1, Class::kIntegral},
    {DType::kI16, "i16", 2, Class::kIntegral},
    {DType::kI32, "i32", 4, Class::kIntegral},
    {DType::kI64, "i64", 8, Class::kIntegral},
    {DType::kF8E4M3FN, "f8e4m3fn", 1, Class::kFloating},
    {DType::kF8E4M3FNUZ, "f8e4m3fnuz", 1, Class::kFloating},
    {DType::kF8E5M2, "f8e5m2", 1, Class::kFloating},
    {DType::kF8E5M2FNUZ, "f8e5m2fnuz", 1, Class::kFloating},
    {DType::kF8E8M0FNU, "f8e8m0fnu", 1, Class::kFloating},
    {DType::kF16, "f16", 2, Class::kFloating},
    {DType::kBF16, "bf16", 2, Class::kFloating},
    {DType::kF32, "f32", 4, Class::kFloating},
    {DType::kF64, "f64", 8, Class::kFloating},
    {DType::kC32, "c32", 4, Class::kComplex},
    {DType::kC64, "c64", 8, Class::kComplex},
    {DType::kC128, "c128", 16, Class::kComplex},
};

constexpr auto kAll = [] {
  std::array<DType, std::size(kRows)> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = kRows[i].dtype;
  return all;
}();

constexpr bool rows_follow_the_enum() {
  for (std::size_t i = 0; i < std::size(kRows); ++i) {
    if (static_cast<std::size_t>(kRows[i].dtype) != i) return false;
  }
  return true;
}
static_assert(rows_follow_the_enum());

const Row& row(DType dtype) { return kRows[static_cast<std::size_t>(dtype)]; }

}  // namespace

std::span<const DType> all_dtypes() { return kAll; }
std::int64_t item_size(DType dtype) { return row(dtype).bytes; }
bool is_floating(DType dtype) { return row(dtype).kind == Class::kFloating; }
bool is_complex(DType dtype) { return row(dtype).kind == Class::kComplex; }
bool is_integral(DType dtype) { return row(dtype).kind == Class::kIntegral; }
std::string_view to_string(DType dtype) { return row(dtype).name; }

Result<DType> parse_dtype(std::string_view text) {
  std::vector<std::string_view> names;
  for (const Row& known : kRows) {
    if (known.name == text) return known.dtype;
    names.push_back(known.name);
  }
  return fail(ErrorCode::kDTypeSyntax,
              "`" + std::string(text) + "` is no dtype",
              did_you_mean(text, names));
}

}  // namespace shardprop
