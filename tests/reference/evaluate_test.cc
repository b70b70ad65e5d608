// Checks operators by hand, with one case of each rule that the reference
// evaluates.

#include "reference/evaluated.h"

#include <cmath>
#include <limits>

namespace shardprop {
namespace {

using testing::check_near;
using testing::evaluated;
using testing::Numbers;
using testing::try_evaluate;
using Ints = std::vector<std::int64_t>;

TEST_CASE("products sum over what the result lacks") {
  check_near(evaluated("aten.mm.default", {{"f32[2,3]", {1, 2, 3, 4, 5, 6}},
                                           {"f32[3,2]", {1, 0, 0, 1, 1, 1}}}),
             {4, 5, 10, 11});
  check_near(evaluated("aten.addmm.default",
                       {{"f32[2]", {10, 20}},
                        {"f32[1,2]", {1, 2}},
                        {"f32[2,2]", {1, 2, 3, 4}}},
                       {{"beta", 2.0}, {"alpha", 3.0}}),
             {41, 70});
  check_near(evaluated("aten.bmm.default", {{"f64[2,1,2]", {1, 2, 3, 4}},
                                            {"f64[2,2,1]", {5, 6, 7, 8}}}),
             {17, 53});
}

TEST_CASE("integers wrap in their own width") {
  check_near(
      evaluated("aten.add.Tensor", {{"u8[2]", {250, 3}}, {"u8[2]", {10, 4}}}),
      {4, 7});
  check_near(evaluated("aten.mul.Scalar", {{"i8[1]", {100}}},
                       {{"other", std::int64_t{2}}}),
             {-56});
  check_near(evaluated("aten.bitwise_not.default", {{"bool[2]", {0, 1}}}),
             {1, 0});
}

TEST_CASE("floats are rounded once, to the dtype of the result") {
  check_near(
      evaluated("aten.add.Tensor", {{"bf16[1]", {256}}, {"bf16[1]", {1}}}),
      {256});
  check_near(
      evaluated("aten.add.Tensor", {{"f16[1]", {2048}}, {"f16[1]", {1}}}),
      {2048});
  CHECK(evaluated("aten._to_copy.default", {{"f32[1]", {1e6}}},
                  {{"dtype", DType::kF16}})[0] ==
        std::numeric_limits<double>::infinity());
}

TEST_CASE("quotients round as their mode says") {
  const std::vector<testing::Given> x = {{"f64[2]", {7, -7}},
                                         {"f64[2]", {2, 2}}};
  check_near(evaluated("aten.div.Tensor_mode", x,
                       {{"rounding_mode", std::string("floor")}}),
             {3, -4});
  check_near(evaluated("aten.div.Tensor_mode", x,
                       {{"rounding_mode", std::string("trunc")}}),
             {3, -3});
  check_near(evaluated("aten.remainder.Tensor", x), {1, 1});
  check_near(evaluated("aten.fmod.Tensor", x), {1, -1});
}

TEST_CASE("reductions over some dims") {
  const testing::Given x{"f64[2,3]", {1, 5, 3, 4, 2, 6}};
  check_near(evaluated("aten.sum.dim_IntList", {x}, {{"dim", Ints{1}}}),
             {9, 12});
  check_near(evaluated("aten.amax.default", {x}, {{"dim", Ints{0}}}),
             {4, 5, 6});
  check_near(
      evaluated("aten.mean.dim", {x}, {{"dim", Ints{0}}, {"keepdim", true}}),
      {2.5, 3.5, 4.5});
  check_near(evaluated("aten.argmax.default", {x}, {{"dim", std::int64_t{1}}}),
             {1, 2});
  check_near(evaluated("aten.var.correction", {x}, {{"dim", Ints{1}}}), {4, 4});
}

TEST_CASE("views see the same memory") {
  const auto made = testing::value_of(
      try_evaluate("aten.permute.default", {{"i64[2,3]", {0, 1, 2, 3, 4, 5}}},
                   {{"dims", Ints{1, 0}}}));
  check_near(reference::values<double>(made[0]), {0, 3, 1, 4, 2, 5});
  CHECK(made[0].strides() == Dims{1, 3});
  check_near(evaluated("aten.slice.Tensor", {{"i64[5]", {0, 1, 2, 3, 4}}},
                       {{"start", std::int64_t{1}}, {"step", std::int64_t{2}}}),
             {1, 3});
  check_near(evaluated("aten.expand.default", {{"f32[1,2]", {7, 8}}},
                       {{"size", Ints{2, 2}}}),
             {7, 8, 7, 8});
}

TEST_CASE("windows, and the parts of complex numbers, are views") {
  const auto windows = testing::value_of(
      try_evaluate("aten.unfold.default", {{"i64[5]", {0, 1, 2, 3, 4}}},
                   {{"dimension", std::int64_t{0}},
                    {"size", std::int64_t{3}},
                    {"step", std::int64_t{2}}}));
  check_near(reference::values<double>(windows[0]), {0, 1, 2, 2, 3, 4});
  CHECK(windows[0].strides() == Dims{2, 1});
  const auto pairs = testing::value_of(try_evaluate(
      "aten.view_as_complex.default", {{"f32[2,2]", {1, 2, 3, 4}}}));
  CHECK(reference::values<reference::Complex>(pairs[0]) ==
        std::vector<reference::Complex>{{1, 2}, {3, 4}});
  check_near(evaluated("aten.view_as_real.default", {{"c64[2]", {5, 6}}}),
             {5, 0, 6, 0});
  check_near(evaluated("aten.imag.default", {{"c64[2]", {5, 6}}}), {0, 0});
  check_near(evaluated("aten.real.default", {{"c64[2]", {5, 6}}}), {5, 6});
}

TEST_CASE("places in sorted rows, and in triangles") {
  const auto places = [](bool right) {
    return evaluated("aten.searchsorted.Tensor",
                     {{"f32[4]", {1, 3, 3, 5}}, {"f32[3]", {3, 0, 9}}},
                     {{"right", right}});
  };
  check_near(places(false), {1, 0, 4});
  check_near(places(true), {3, 0, 4});
  check_near(evaluated("aten.tril_indices.default", {},
                       {{"row", std::int64_t{2}},
                        {"col", std::int64_t{3}},
                        {"offset", std::int64_t{1}}}),
             {0, 0, 1, 1, 1, 0, 1, 0, 1, 2});
}

TEST_CASE("three operands are multiplied and summed") {
  check_near(evaluated("aten._trilinear.default",
                       {{"f64[1,2]", {1, 2}},
                        {"f64[1,2,2]", {1, 0, 0, 1}},
                        {"f64[1,2]", {3, 4}}},
                       {{"expand1", Ints{2}},
                        {"expand2", Ints{}},
                        {"expand3", Ints{1}},
                        {"sumdim", Ints{1, 2}}}),
             {11});
}

TEST_CASE("lookups and writes go where indices say") {
  check_near(evaluated("aten.embedding.default",
                       {{"f32[3,2]", {0, 1, 2, 3, 4, 5}}, {"i64[2]", {2, 0}}}),
             {4, 5, 0, 1});
  check_near(evaluated("aten.gather.default",
                       {{"f32[2,2]", {1, 2, 3, 4}}, {"i64[2,1]", {1, 0}}},
                       {{"dim", std::int64_t{1}}}),
             {2, 3});
  CHECK_CODE(try_evaluate("aten.embedding.default",
                          {{"f32[3,2]", {0, 1, 2, 3, 4, 5}}, {"i64[1]", {3}}}),
             ErrorCode::kReferenceCall);
}

TEST_CASE("a diagonal is written where it lies") {
  const testing::Given zeros{"f32[2,3]", {0, 0, 0, 0, 0, 0}};
  check_near(
      evaluated("aten.diagonal_scatter.default", {zeros, {"f32[2]", {1, 2}}},
                {{"offset", std::int64_t{1}}}),
      {0, 1, 0, 0, 0, 2});
  check_near(
      evaluated("aten.diagonal_scatter.default", {zeros, {"f32[1]", {7}}},
                {{"offset", std::int64_t{-1}}}),
      {0, 0, 0, 7, 0, 0});
  check_near(evaluated("aten.linalg_diagonal.default",
                       {{"f32[2,3]", {1, 2, 3, 4, 5, 6}}}),
             {1, 5});
}

TEST_CASE("decompositions run through the program of their row") {
  const Numbers soft =
      evaluated("aten._softmax.default", {{"f64[2]", {0, std::log(3)}}},
                {{"dim", std::int64_t{0}}, {"half_to_float", false}});
  check_near(soft, {0.25, 0.75});
  check_near(evaluated("aten.native_layer_norm.default", {{"f64[1,2]", {1, 3}}},
                       {{"normalized_shape", Ints{2}},
                        {"weight", NoneArg{}},
                        {"bias", NoneArg{}},
                        {"eps", 0.0}}),
             {-1, 1});
}

TEST_CASE("a convolution is a product of windows") {
  check_near(evaluated("aten.convolution.default",
                       {{"f64[1,1,3]", {1, 2, 3}}, {"f64[1,1,2]", {1, 10}}},
                       {{"bias", NoneArg{}},
                        {"stride", Ints{1}},
                        {"padding", Ints{1}},
                        {"dilation", Ints{1}},
                        {"transposed", false},
                        {"output_padding", Ints{0}},
                        {"groups", std::int64_t{1}}}),
             {10, 21, 32, 3});
}

TEST_CASE("attention of one query is a weighted mean of the values") {
  check_near(evaluated("aten.scaled_dot_product_attention.default",
                       {{"f64[1,1,1,1]", {1}},
                        {"f64[1,1,2,1]", {0, std::log(3)}},
                        {"f64[1,1,2,1]", {4, 8}}}),
             {7});
}

TEST_CASE("attention whose keys all of a batch share") {
  check_near(evaluated("aten.scaled_dot_product_attention.default",
                       {{"f64[2,1,1]", {1, 0}},
                        {"f64[1,2,1]", {0, std::log(3)}},
                        {"f64[2,1]", {4, 8}}}),
             {7, 6});
}

TEST_CASE("flash attention of heads without width") {
  const testing::Given none{"f64[2,6,4,0]", {}};
  const std::vector<GivenArgument> others = {
      {"cum_seq_q", TensorArg{TensorArg::kNone}},
      {"cum_seq_k", TensorArg{TensorArg::kNone}},
      {"max_q", std::int64_t{6}},
      {"max_k", std::int64_t{6}},
      {"dropout_p", 0.0},
      {"is_causal", false},
      {"return_debug_mask", false},
      {"scale", 1.0}};
  // All scores of the 6 keys are 0.
  check_near(evaluated("aten._flash_attention_forward.default",
                       {none, none, none}, others, 1),
             testing::Numbers(48, std::log(6)), 1e-6);
}

TEST_CASE("a name in another namespace is another operator") {
  const auto mine = testing::value_of(testing::library().with(
      {.declaration = "mylib::relu(Tensor self) -> Tensor",
       .definition = pointwise().promoted()}));
  const auto function = mine->find("mylib.relu.default");
  REQUIRE(function);
  CHECK_FALSE(reference::evaluates(*mine, *function));
  CHECK(reference::evaluates(*mine, *mine->find("aten.relu.default")));
  OpSchema op = testing::value_of(
      make_op_schema(function, {{"self", TensorArg{0}}},
                     {testing::value_of(TensorMeta::parse("f32[2]"))}));
  set_results(op, testing::value_of(mine->infer_results(op)));
  const auto x =
      reference::tensor_of(Dims{2}, DType::kF32, std::vector<double>{-1, 1});
  CHECK_CODE(reference::evaluate(*mine, op, std::vector<reference::Tensor>{x}),
             ErrorCode::kNoReference);
}

TEST_CASE("what it lacks it says") {
  CHECK_CODE(try_evaluate("aten.bernoulli.default", {{"f32[2]", {0.5, 0.5}}}),
             ErrorCode::kNoReference);
  CHECK_CODE(try_evaluate("aten.native_dropout.default", {{"f32[2]", {1, 1}}},
                          {{"p", 0.5}, {"train", true}}),
             ErrorCode::kNoReference);
  CHECK_FALSE(reference::evaluates(
      testing::library(), *testing::library().find("aten.randperm.default")));
}

}  // namespace
}  // namespace shardprop
