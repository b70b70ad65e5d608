// Calls that PyTorch refuses too have messages that name the argument, the value found
// and the value expected.
#include <doctest/doctest.h>

#include "ops/call_text.h"
#include "support/standard_library.h"

#include <string>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

using testing::parse_call;
using testing::standard_library;

// Returns the reason behind "...does not take these operands: ".
std::string refused(const char* text) {
  CAPTURE(std::string(text));
  auto op = parse_call(text, standard_library());
  REQUIRE(op.has_value());
  const auto results = standard_library().infer_results(*op);
  REQUIRE_FALSE(results.has_value());
  const std::string message = results.error().message;
  constexpr std::string_view kBefore = "these operands: ";
  const std::size_t at = message.find(kBefore);
  return at == std::string::npos ? message
                                 : message.substr(at + kBefore.size());
}

TEST_CASE("a wrong dtype names argument, dtype and expectation") {
  CHECK(refused("aten.var.correction(i64[4])") ==
        "`self` is i64, expected a floating or complex dtype");
  CHECK(refused("aten.mean.default(i64[4])") ==
        "`self` is i64, expected a floating or complex dtype, or one as "
        "argument `dtype`");
  CHECK(refused("aten.heaviside.default(f32[4], f64[4])") ==
        "`values` is f64, expected f32, as `self`");
  CHECK(refused("aten.add.Tensor(i64[4], i64[4], alpha=0.5)") ==
        "`alpha` is a float, expected an integer, because the result is i64");
  CHECK(refused("aten.add.Tensor(i64[4], i64[4], alpha=True)") ==
        "`alpha` is a bool, expected a number");
  CHECK(refused("aten.addmm.default(f64[3], f32[2,4], f32[4,3])") ==
        "`self` is f64, expected f32, as the other operands");
}

TEST_CASE("weight and bias of a norm have the dtype of the input, or f32") {
  CHECK(refused("aten.native_layer_norm.default(f32[2,4], [4], bf16[4], None, "
                "1e-05)") == "`weight` is bf16, expected f32, as `input`");
  CHECK(refused("aten.layer_norm.default(bf16[2,4], [4], f64[4])") ==
        "`weight` is f64, expected bf16, as `input`, or f32");
  CHECK(
      refused("aten.native_group_norm.default(f64[2,4,3], None, f32[4], 2, 4, "
              "3, 2, 1e-05)") == "`bias` is f32, expected f64, as `input`");
  CHECK(refused("aten.native_batch_norm.default(f16[2,4,3], f16[4], f32[4], "
                "None, None, True, 0.1, 1e-05)") ==
        "`bias` is f32, expected f16, as `weight`");
  CHECK(refused("aten.instance_norm.default(f32[2,4,3], f64[4], None, None, "
                "None, True, 0.1, 1e-05, False)") ==
        "`weight` is f64, expected f32, as `input`");
  const auto accepted = parse_call(
      "aten.native_layer_norm.default(bf16[2,4], [4], f32[4], "
      "f32[4], 1e-05)",
      standard_library());
  REQUIRE(accepted.has_value());
  CHECK(standard_library().infer_results(*accepted).has_value());
}

TEST_CASE("a wrong word or number names argument, value and expectation") {
  CHECK(refused("aten.linalg_qr.default(f32[4,4], 'x')") ==
        "`mode` is `x`, expected `reduced`, `complete` or `r`");
  CHECK(refused("aten.clamp.default(f32[4])") ==
        "`min` and `max` are None, expected at least one");
  CHECK(refused("aten.amax.default(f32[4,0], [1])") ==
        "dim 1 of `self` has 0 elements and is reduced, expected at least 1");
}

}  // namespace
}  // namespace shardprop
