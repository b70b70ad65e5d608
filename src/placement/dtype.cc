#include <shardprop/placement/dtype.h>

#include "base/edit_distance.h"

#include <array>
#include <string>
#include <vector>

#include "base/index.h"

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

const Row& row(DType dtype) { return kRows[index(dtype)]; }

}  // namespace

std::span<const DType> all_dtypes() { return kAll; }
std::int64_t item_size(DType dtype) { return row(dtype).bytes; }
bool is_floating(DType dtype) { return row(dtype).kind == Class::kFloating; }
bool is_complex(DType dtype) { return row(dtype).kind == Class::kComplex; }
bool is_integral(DType dtype) { return row(dtype).kind == Class::kIntegral; }
std::string_view to_string(DType dtype) { return row(dtype).name; }

namespace {

// The names of dtypes in other programs, mainly torch and NumPy.
struct OtherName {
  std::string_view other;
  DType dtype;
};
constexpr OtherName kOtherNames[] = {
    {"float32", DType::kF32},       {"float", DType::kF32},
    {"bfloat16", DType::kBF16},     {"float16", DType::kF16},
    {"half", DType::kF16},          {"float64", DType::kF64},
    {"double", DType::kF64},        {"int64", DType::kI64},
    {"long", DType::kI64},          {"int32", DType::kI32},
    {"int", DType::kI32},           {"int16", DType::kI16},
    {"short", DType::kI16},         {"int8", DType::kI8},
    {"uint8", DType::kU8},          {"byte", DType::kU8},
    {"uint16", DType::kU16},        {"uint32", DType::kU32},
    {"uint64", DType::kU64},        {"complex64", DType::kC64},
    {"complex128", DType::kC128},   {"float8_e4m3fn", DType::kF8E4M3FN},
    {"float8_e5m2", DType::kF8E5M2}};

std::string nearest_dtype(std::string_view text) {
  constexpr std::string_view kTorch = "torch.";
  if (text.starts_with(kTorch)) text.remove_prefix(kTorch.size());
  for (const auto& [other, dtype] : kOtherNames) {
    if (other == text) {
      return "did you mean `" + std::string(to_string(dtype)) + "`?";
    }
  }
  // Common names come first, because did_you_mean() may shorten a list of
  // names.
  std::vector<std::string_view> names = {"f32", "bf16", "f16",  "f64",
                                         "i64", "i32",  "bool", "u8"};
  for (const Row& known : kRows) names.push_back(known.name);
  return did_you_mean(text, names);
}

}  // namespace

Result<DType> parse_dtype(std::string_view text) {
  for (const Row& known : kRows) {
    if (known.name == text) return known.dtype;
  }
  return fail(ErrorCode::kDTypeSyntax,
              "`" + std::string(text.substr(0, 80)) + "` is not a dtype",
              nearest_dtype(text));
}

}  // namespace shardprop
