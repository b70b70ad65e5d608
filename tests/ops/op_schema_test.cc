#include <doctest/doctest.h>
#include <shardprop/ops/op_library.h>
#include <shardprop/ops/op_schema.h>

#include "support/standard_library.h"

#include <string>
#include <vector>

using namespace shardprop;  // NOLINT(google-build-using-namespace)

namespace {

TensorMeta meta(const char* text) { return TensorMeta::parse(text).value(); }

ErrorCode code_of(const char* name, std::vector<GivenArgument> given,
                  std::vector<TensorMeta> inputs) {
  const auto op = make_op_schema(testing::standard_library().find(name),
                                 std::move(given), std::move(inputs));
  REQUIRE_FALSE(op);
  return op.error().code;
}

}  // namespace

TEST_CASE("positions, names and defaults find their places") {
  const auto op = make_op_schema(
      testing::standard_library().find("aten.sum.dim_IntList"),
      {{"", TensorArg{0}}, {"dim", std::int64_t{1}}, {"dtype", DType::kF32}},
      {meta("bf16[4,8]")});
  REQUIRE(op);
  CHECK(op->ints_arg("dim") == std::vector<std::int64_t>{1});
  CHECK(op->bool_arg("keepdim") == false);
  CHECK(op->dtype_arg("dtype") == DType::kF32);
  CHECK(op->tensor_arg("self") == 0);
  CHECK_FALSE(op->has_arg("axis"));
  CHECK_THROWS_AS(op->arg("axis"), InternalError);
}

TEST_CASE("operands stand in declared order, however they are given") {
  const auto op = make_op_schema(
      testing::standard_library().find("aten.addmm.default"),
      {{"mat2", TensorArg{0}}, {"self", TensorArg{2}}, {"mat1", TensorArg{1}}},
      {meta("f32[8,4]"), meta("f32[2,8]"), meta("f32[4]")});
  REQUIRE(op);
  CHECK(op->inputs == std::vector<TensorMeta>{meta("f32[4]"), meta("f32[2,8]"),
                                              meta("f32[8,4]")});
  CHECK(op->tensor_arg("self") == 0);
  CHECK(op->tensor_arg("mat1") == 1);
  CHECK(op->tensor_arg("mat2") == 2);
  CHECK(op->float_arg("beta") == 1.0);
}

TEST_CASE("defaults take the form their declaration asks for") {
  const auto pool = make_op_schema(
      testing::standard_library().find("aten.max_pool2d.default"),
      {{"", TensorArg{0}}, {"", std::int64_t{3}}}, {meta("f32[1,3,8,8]")});
  REQUIRE(pool);
  CHECK(pool->arg("padding") == Argument(std::vector<std::int64_t>{0, 0}));
  CHECK(pool->arg("stride") == Argument(std::vector<std::int64_t>{}));
  const auto var =
      make_op_schema(testing::standard_library().find("prims.var.default"),
                     {{"", TensorArg{0}}, {"", NoneArg{}}}, {meta("f32[4]")});
  REQUIRE(var);
  CHECK(var->arg("correction") == Argument(1.0));
}

TEST_CASE("a tensor used twice is two operands") {
  const auto op = make_op_schema(
      testing::standard_library().find("aten.mul.Tensor"),
      {{"", TensorArg{0}}, {"", TensorArg{0}}}, {meta("f32[4]")});
  REQUIRE(op);
  CHECK(op->inputs.size() == 2);
}

TEST_CASE("optional tensors and list elements may be absent") {
  const auto conv = make_op_schema(
      testing::standard_library().find("aten.convolution.default"),
      {{"", TensorArg{0}},
       {"", TensorArg{1}},
       {"", NoneArg{}},
       {"", std::vector<std::int64_t>{1, 1}},
       {"", std::vector<std::int64_t>{0, 0}},
       {"", std::vector<std::int64_t>{1, 1}},
       {"", false},
       {"", std::vector<std::int64_t>{0, 0}},
       {"", std::int64_t{1}}},
      {meta("f32[1,3,8,8]"), meta("f32[4,3,3,3]")});
  REQUIRE(conv);
  CHECK_FALSE(conv->tensor_arg("bias"));
  const auto index =
      make_op_schema(testing::standard_library().find("aten.index.Tensor"),
                     {{"", TensorArg{0}},
                      {"", std::vector<TensorArg>{{TensorArg::kNone}, {1}}}},
                     {meta("f32[4,8]"), meta("i64[3]")});
  REQUIRE(index);
  CHECK(index->tensor_list_arg("indices") == std::vector<std::size_t>{1});
}

TEST_CASE("a number may stand for a tensor, an int for a float or a list") {
  const auto mul =
      make_op_schema(testing::standard_library().find("aten.mul.Tensor"),
                     {{"", TensorArg{0}}, {"", 2.5}}, {meta("f32[4]")});
  REQUIRE(mul);
  CHECK_FALSE(mul->tensor_arg("other"));
  CHECK(mul->float_arg("other") == 2.5);
  const auto pool = make_op_schema(
      testing::standard_library().find("aten.avg_pool2d.default"),
      {{"", TensorArg{0}}, {"", std::int64_t{3}}}, {meta("f32[1,3,8,8]")});
  REQUIRE(pool);
  CHECK(pool->ints_arg("kernel_size") == std::vector<std::int64_t>{3, 3});
}

TEST_CASE("arguments that do not fit say so") {
  const std::vector<TensorMeta> one = {meta("f32[4]")};
  CHECK(code_of("aten.relu.default", {{"", TensorArg{0}}, {"inplace", false}},
                one) == ErrorCode::kUnknownArgument);
  CHECK(code_of("aten.relu.default", {{"", TensorArg{0}}, {"", false}}, one) ==
        ErrorCode::kUnknownArgument);
  CHECK(code_of("aten.relu.default",
                {{"", TensorArg{0}}, {"self", TensorArg{0}}},
                one) == ErrorCode::kUnknownArgument);
  CHECK(code_of("aten.mm.default", {{"", TensorArg{0}}}, one) ==
        ErrorCode::kMissingArgument);
  CHECK(code_of("aten.add.Tensor",
                {{"", TensorArg{0}}, {"", TensorArg{0}}, {"", 1.0}},
                one) == ErrorCode::kUnknownArgument);
  CHECK(code_of("aten.relu.default", {{"", std::string("x")}}, {}) ==
        ErrorCode::kArgumentType);
  CHECK(code_of("aten.relu.default", {{"", TensorArg{1}}}, one) ==
        ErrorCode::kArgumentType);
  CHECK(code_of("aten.relu.default", {{"", TensorArg{-2}}}, one) ==
        ErrorCode::kArgumentType);
  CHECK(code_of("aten.sum.default", {{"", std::vector<TensorArg>{}}}, {}) ==
        ErrorCode::kArgumentType);
  CHECK(code_of("aten.cat.default", {{"", NoneArg{}}}, {}) ==
        ErrorCode::kArgumentType);
  CHECK(code_of("aten.view.default",
                {{"", TensorArg{0}}, {"", std::vector<double>{1.0}}},
                one) == ErrorCode::kArgumentType);
  CHECK(code_of("aten.relu.default", {{"", TensorArg{0}}},
                {meta("f32[4]"), meta("f32[4]")}) == ErrorCode::kArgumentType);
}
