// Dims followed through operators, as worked out by hand.
#include "graph/analysis/dim_trace.h"

#include "support/result_checks.h"

#include <string_view>

namespace shardprop {
namespace {

using testing::value_of;

IndexSpace space(std::string_view text) {
  return value_of(parse_index_space(text));
}

TEST_CASE("a dim is traced to the dim of its factor") {
  const IndexSpace mm = space("ab,bc->ac {a=16,b=8,c=4} b:.,.->sum");
  const auto rows = factor_at(mm, mm.inputs[0], {0, 1});
  REQUIRE(rows.has_value());
  CHECK(*rows == FactorTrace{0, 1});
  CHECK(dim_at(mm, mm.outputs[0], *rows) == DimTrace{0, 1});
  const auto inner = factor_at(mm, mm.inputs[1], {0, 1});
  REQUIRE(inner.has_value());
  CHECK_FALSE(dim_at(mm, mm.outputs[0], *inner).has_value());
}

TEST_CASE("what a view flattens is found behind what stands before it") {
  const IndexSpace view = space("abc->(ab)c {a=4,b=6,c=8}");
  const auto tokens = factor_at(view, view.inputs[0], {1, 1});
  REQUIRE(tokens.has_value());
  CHECK(dim_at(view, view.outputs[0], *tokens) == DimTrace{0, 4});
  // And back.
  const IndexSpace split = space("(ab)c->abc {a=4,b=6,c=8}");
  const auto again = factor_at(split, split.inputs[0], {0, 4});
  REQUIRE(again.has_value());
  CHECK(again->is_outermost());
  CHECK(dim_at(split, split.outputs[0], *again) == DimTrace{1, 1});
}

TEST_CASE("a factor that holds more is followed with what lies before") {
  const IndexSpace relu = space("a->a {a=24}");
  const auto inside = factor_at(relu, relu.inputs[0], {0, 4});
  REQUIRE(inside.has_value());
  CHECK_FALSE(inside->is_outermost());
  CHECK(dim_at(relu, relu.outputs[0], *inside) == DimTrace{0, 4});
}

TEST_CASE("a dim that begins no factor is not traced") {
  const IndexSpace split = space("(ab)->ab {a=4,b=6}");
  // Within the second factor, not where it begins.
  const auto within = factor_at(split, split.inputs[0], {0, 8});
  REQUIRE(within.has_value());
  CHECK(*within == FactorTrace{1, 2});
  CHECK_FALSE(factor_at(split, split.inputs[0], {0, 24}).has_value());
  CHECK_FALSE(factor_at(split, split.inputs[0], {1, 1}).has_value());
}

}  // namespace
}  // namespace shardprop
