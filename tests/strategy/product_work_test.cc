// product_work: the matmuls of one operator on the busiest rank.
#include "strategy/product_work.h"

#include "strategy/applied.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

using testing::applied;
using testing::Strategies;

// The work of a single matmul of f32 on the default topology.
ProductCost matmul(double batch, double rows, double depth, double columns) {
  return product_cost(
      default_topology(), MathClass::kF32,
      {.batch = batch, .rows = rows, .columns = columns, .depth = depth});
}

void check_work(const Strategies& strategies, std::string_view strategy,
                const ProductCost& expected) {
  CAPTURE(strategy);
  const ProductCost found =
      product_work(strategies.context(strategy), default_topology());
  CHECK(found.flops == doctest::Approx(expected.flops));
  CHECK(found.bytes == doctest::Approx(expected.bytes));
}

TEST_CASE("a matmul costs the tiles of the busiest rank's shards") {
  const Strategies mm(
      applied("aten.mm.default", {"f32[3000,1000]", "f32[1000,700]"}), "4");
  check_work(mm, "R,R->R", matmul(1, 3000, 1000, 700));
  check_work(mm, "S(0),R->S(0)", matmul(1, 750, 1000, 700));
  check_work(mm, "S(1),S(0)->P(sum)", matmul(1, 3000, 250, 700));
  check_work(mm, "R,S(1)->S(1)", matmul(1, 3000, 1000, 175));
  check_work(mm, "P(sum),R->P(sum)", matmul(1, 3000, 1000, 700));
  // 3001 rows over 4 ranks: the busiest rank has 751.
  const Strategies uneven(
      applied("aten.mm.default", {"f32[3001,1000]", "f32[1000,700]"}), "4");
  check_work(uneven, "S(0),R->S(0)", matmul(1, 751, 1000, 700));
}

TEST_CASE("a factor of both operands and the result is a batch") {
  const Strategies bmm(
      applied("aten.bmm.default", {"f32[8,300,100]", "f32[8,100,70]"}), "2");
  check_work(bmm, "R,R->R", matmul(8, 300, 100, 70));
  check_work(bmm, "S(0),S(0)->S(0)", matmul(4, 300, 100, 70));
  check_work(bmm, "S(1),R->S(1)", matmul(8, 150, 100, 70));
}

TEST_CASE("an operator without matmuls has no work of matmuls") {
  const Strategies exp(applied("aten.exp.default", {"f32[64,64]"}), "2");
  check_work(exp, "R->R", {0, 0});
  check_work(exp, "S(0)->S(0)", {0, 0});
}

TEST_CASE("matmuls run in the class of the dtype that they multiply") {
  const auto of = [](std::string_view dtype, ProductKind kind) {
    const std::string tensor = std::string(dtype) + "[8,8]";
    return math_class(applied("aten.mm.default", {tensor, tensor}), kind);
  };
  CHECK(of("f64", ProductKind::kPlain) == MathClass::kF64);
  CHECK(of("f32", ProductKind::kPlain) == MathClass::kF32);
  // cuDNN may run convolutions of f32 in TF32.
  CHECK(of("f32", ProductKind::kConvolution) == MathClass::kTf32);
  CHECK(of("bf16", ProductKind::kPlain) == MathClass::kF16);
  CHECK(of("f16", ProductKind::kConvolution) == MathClass::kF16);
}

}  // namespace
}  // namespace shardprop
