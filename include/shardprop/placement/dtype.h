// `DType` is the element type of a tensor, named as in `bf16[8,2048]`.
#pragma once

#include <shardprop/base/result.h>

#include <cstdint>
#include <span>
#include <string_view>

namespace shardprop {

enum class DType : std::uint8_t {
  kBool,
  kU8,
  kU16,
  kU32,
  kU64,
  kI8,
  kI16,
  kI32,
  kI64,
  kF8E4M3FN,
  kF8E4M3FNUZ,
  kF8E5M2,
  kF8E5M2FNUZ,
  kF8E8M0FNU,
  kF16,
  kBF16,
  kF32,
  kF64,
  kC32,
  kC64,
  kC128,
};

std::span<const DType> all_dtypes();

// Returns the bytes of one element.
std::int64_t item_size(DType dtype);

bool is_floating(DType dtype);  // f8 to f64
bool is_complex(DType dtype);
bool is_integral(DType dtype);  // u8 to i64, bool excluded

// Returns the printed name: "bf16", "f8e4m3fn", "i64", "bool", "c64".
std::string_view to_string(DType dtype);

// Parses the printed name. Error: kDTypeSyntax. Example: parse_dtype("bf16") ==
// DType::kBF16.
Result<DType> parse_dtype(std::string_view text);

}  // namespace shardprop
