// OperandMoves prices the moves of one operand as the planner does.
#include "propagate/operand_moves.h"

#include "propagate/bounded_call.h"
#include "propagate/fixtures.h"
#include "redistribute/reference_search.h"

#include <shardprop/base/result.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

namespace shardprop {
namespace {

using redistribute::Reach;
using testing::BoundedCall;
using testing::call;
using testing::layouts;
using testing::value_of;

constexpr auto kAllOrders = Reach::Orders::kAll;
const Placement kTermOfSum = Placement::partial(ReduceOp::kSum);
const Placement kTermOfMean = Placement::partial(ReduceOp::kAvg);

// A call with one operand; tests choose its layout.
BoundedCall operand_on(std::string_view mesh, std::string_view layout,
                       const std::string& tensor = "bf16[64,48]") {
  return {mesh, call("aten.relu.default", {tensor}), layouts({layout})};
}

TEST_CASE("a listed move is known once the limit reaches its cost") {
  BoundedCall c = operand_on("2,4", "S(0),S(1)");
  const auto& meta = c.bound_op.op->inputs[0];
  const auto all = testing::all_layouts(
      c.mesh,
      {Placement::replicate(), Placement::shard(0), Placement::shard(1)});
  std::int64_t dearest = 0;
  for (const Layout& to : all) {
    dearest = std::max(dearest, value_of(c.planner.cost(c.given[0], to, meta)));
  }
  REQUIRE(dearest > 0);
  OperandMoves moves = c.moves(0, {}, kAllOrders);
  REQUIRE(moves.is_listed());
  int unknown = 0;
  for (const std::int64_t limit :
       {std::int64_t{0}, dearest / 3, dearest - 1, dearest}) {
    moves.extend(limit);
    for (const Layout& to : all) {
      CAPTURE(limit);
      CAPTURE(to_string(to));
      std::uint64_t code = 0;
      for (int m = 0; m < c.mesh.ndim(); ++m) {
        const auto place = static_cast<std::uint64_t>(to.shard_order()[m]);
        code += moves.code(m, moves.symbol(to[m]), place);
      }
      const std::int64_t cost = value_of(c.planner.cost(c.given[0], to, meta));
      const std::int64_t known = moves.nanoseconds(code);
      if (cost <= limit) {
        CHECK(known == cost);
      } else if (known == OperandMoves::kImpossible) {
        CHECK(moves.beyond() <= cost);
        ++unknown;
      } else {
        CHECK(known == cost);
      }
    }
  }
  CHECK(unknown > 0);
  CHECK(moves.symbol(Placement::replicate()) == 0);
}

TEST_CASE("cost() and plan() are the planner's, however far the search went") {
  for (const std::string_view given : {"S(0),S(1)", "P(sum),R", "SS(0,4),R"}) {
    BoundedCall c = operand_on("2,4", given);
    const auto& meta = c.bound_op.op->inputs[0];
    const std::vector<Placement> partials = {kTermOfSum};
    for (const std::int64_t limit : {0, 9'000, 1'000'000}) {
      OperandMoves moves = c.moves(0, partials, kAllOrders);
      moves.extend(limit);
      for (const Layout& to : testing::all_layouts(
               c.mesh, {Placement::replicate(), Placement::shard(0),
                        Placement::shard(1), kTermOfSum})) {
        CAPTURE(given);
        CAPTURE(limit);
        CAPTURE(to_string(to));
        const auto expected = c.planner.plan(c.given[0], to, meta);
        const auto cost = moves.cost(to);
        const auto plan = moves.plan(to);
        REQUIRE(cost.has_value() == expected.has_value());
        REQUIRE(plan.has_value() == expected.has_value());
        if (!expected) {
          CHECK(cost.error().code == expected.error().code);
          CHECK(plan.error().code == expected.error().code);
          continue;
        }
        CHECK(*cost == (*expected)->nanoseconds);
        CHECK((*plan)->nanoseconds == (*expected)->nanoseconds);
      }
    }
  }
}

TEST_CASE("a move to the given layout is free") {
  BoundedCall c = operand_on("2,4", "SS(0,4),R");
  OperandMoves moves = c.moves(0, {}, kAllOrders);
  CHECK(value_of(moves.cost(c.given[0])) == 0);
}

TEST_CASE("partials that could make a move cheaper are not listed") {
  const auto is_listed = [](std::string_view given, Placement asked) {
    BoundedCall c = operand_on("2,2", given);
    return c.moves(0, {&asked, 1}, kAllOrders).is_listed();
  };
  CHECK(is_listed("P(sum),R", kTermOfSum));
  CHECK(is_listed("P(sum),R", kTermOfMean));
  CHECK(is_listed("S(0),R", kTermOfMean));
  // An average may become a sum, which is cheaper to reduce.
  CHECK(!is_listed("P(avg),R", kTermOfSum));
  // Without a list, the planner prices each pair.
  BoundedCall c = operand_on("2,2", "P(avg),R");
  OperandMoves moves = c.moves(0, {&kTermOfSum, 1}, kAllOrders);
  moves.extend(1'000'000);
  for (const std::string_view text : {"P(sum),R", "R,R", "S(0),S(0)"}) {
    const Layout to = value_of(Layout::parse(text));
    CHECK(value_of(moves.cost(to)) ==
          value_of(c.planner.cost(c.given[0], to, c.bound_op.op->inputs[0])));
  }
}

TEST_CASE("strided shards are not listed on up to three mesh dims") {
  BoundedCall c = operand_on("2,2", "SS(0,4),R");
  CHECK(!c.moves(0, {}, kAllOrders).is_listed());
}

TEST_CASE("strided shards on four mesh dims are gathered before the search") {
  BoundedCall c = operand_on("2,2,2,2", "SS(0,4),R,S(1),R");
  const auto& meta = c.bound_op.op->inputs[0];
  const Layout gathered = value_of(Layout::parse("R,R,S(1),R"));
  const Layout to = value_of(Layout::parse("R,S(0),S(0),R"));
  const std::int64_t first =
      value_of(c.planner.cost(c.given[0], gathered, meta));
  const std::int64_t rest = value_of(c.planner.cost(gathered, to, meta));
  OperandMoves moves = c.moves(0, {}, kAllOrders);
  REQUIRE(moves.is_listed());
  moves.extend(0);
  CHECK(moves.beyond() >= first);
  CHECK(value_of(moves.cost(to)) == first + rest);
  CHECK(value_of(moves.plan(to))->nanoseconds <= first + rest);
  // A strided target is sliced at the end.
  const Layout strided = value_of(Layout::parse("SS(0,4),R,R,S(1)"));
  const Layout before = value_of(Layout::parse("R,R,R,S(1)"));
  CHECK(value_of(moves.cost(strided)) ==
        first + value_of(c.planner.cost(gathered, before, meta)));
  // The order in which costs are asked for does not change them.
  OperandMoves again = c.moves(0, {}, kAllOrders);
  again.extend(10'000'000);
  CHECK(value_of(again.cost(to)) == first + rest);
}

TEST_CASE("a partial that was not announced has no symbol") {
  BoundedCall c = operand_on("2,2", "S(0),R");
  OperandMoves moves = c.moves(0, {}, kAllOrders);
  REQUIRE(moves.is_listed());
  CHECK_THROWS_AS(moves.symbol(kTermOfSum), InternalError);
}

}  // namespace
}  // namespace shardprop
