#include <shardprop/placement/dtype.h>

#include <doctest/doctest.h>

#include "support/result_checks.h"

#include <set>
#include <string>
#include <string_view>

namespace shardprop {
namespace {

TEST_CASE("every dtype reads back what it prints and is of one class") {
  std::set<std::string_view> names;
  for (const DType dtype : all_dtypes()) {
    CHECK(parse_dtype(to_string(dtype)) == dtype);
    CHECK(names.insert(to_string(dtype)).second);
    const int classes = (is_floating(dtype) ? 1 : 0) +
                        (is_complex(dtype) ? 1 : 0) +
                        (is_integral(dtype) ? 1 : 0);
    CHECK(classes == (dtype == DType::kBool ? 0 : 1));
    // The number in the name is the width in bits, but for bool.
    std::string_view bits = to_string(dtype);
    bits.remove_prefix(bits.find_first_of("123468") == std::string_view::npos
                           ? bits.size()
                           : bits.find_first_of("123468"));
    if (dtype != DType::kBool) {
      CHECK(std::stoi(std::string(bits)) == 8 * item_size(dtype));
    }
  }
  CHECK(names.size() == 21);
  CHECK(item_size(DType::kBool) == 1);
}

TEST_CASE("an unknown dtype, with the nearest one") {
  const auto wrong = parse_dtype("bf6");
  CHECK_CODE(wrong, ErrorCode::kDTypeSyntax);
  CHECK(wrong.error().help == "did you mean `bf16`?");
  CHECK(parse_dtype("F32").error().help == "did you mean `f32`?");
  CHECK(parse_dtype("float32").error().help == "did you mean `f32`?");
  CHECK(parse_dtype("torch.bfloat16").error().help == "did you mean `bf16`?");
  CHECK(parse_dtype("quaternion").error().help ==
        "known: f32, bf16, f16, f64, i64, i32, bool, u8, …");
  for (const char* text : {"", "float32", "F32", "f32 ", "complex"}) {
    CAPTURE(text);
    CHECK_CODE(parse_dtype(text), ErrorCode::kDTypeSyntax);
  }
}

}  // namespace
}  // namespace shardprop
