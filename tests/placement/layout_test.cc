#include <shardprop/placement/layout.h>

#include "support/placement_gen.h"
#include "support/property.h"
#include "support/result_checks.h"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace shardprop {
namespace {

using testing::property;
using testing::some_layout;
using testing::value_of;

Layout layout_of(std::string_view text) {
  return value_of(Layout::parse(text));
}

TEST_CASE("layouts as they are written") {
  for (const char* text :
       {"R", "S(0)", "S(0),R,P(sum)", "S(0)@1,S(0)@0", "SS(1,4),S(1)",
        "S(0)@2,S(0)@0,R,S(0)@1", "P(sum),P(avg)", "P(sum,f32),R",
        "S(1)@1,S(0),S(1)@0"}) {
    CAPTURE(text);
    CHECK(to_string(layout_of(text)) == text);
  }
  CHECK(to_string(layout_of("S(0)@0,S(0)@1")) == "S(0),S(0)");
  CHECK(to_string(layout_of("S(0)@0,R")) == "S(0),R");
}

TEST_CASE("what a layout says of itself") {
  const Layout layout = layout_of("S(0)@1,SS(2,2),S(0)@0,P(max)");
  CHECK(layout.mesh_ndim() == 4);
  CHECK(layout.cuts(0) == DimIndices{2, 0});
  CHECK(layout.cuts(1).empty());
  CHECK(layout.cuts(2) == DimIndices{1});
  CHECK(layout.min_tensor_rank() == 3);
  CHECK(layout.has_partial());
  CHECK(layout.has_strided());
  CHECK_FALSE(layout.has_default_order());
  CHECK_FALSE(layout.is_replicated());
  CHECK(Layout::replicated(3).is_replicated());
  CHECK(Layout::replicated(3) == layout_of("R,R,R"));
  CHECK(Layout::replicated(3).min_tensor_rank() == 0);
  CHECK(layout_of("S(0),S(0)").has_default_order());
}

TEST_CASE("texts that are no placement") {
  for (const char* text :
       {"",       ",",     "S",         "S()",  "S(0),",   "S(a)",    "S(-1)",
        "S(0,1)", "SS(0)", "SS(0,1,2)", "P",    "P()",     "P(mean)", "P(sum,)",
        "r",      "R()",   "(0)",       "S(0",  "S0)",     "S(0))",   "S(0) ,R",
        " R",     "R;R",   "S(0)S(1)",  "X(1)", "SS(0,x)", "S(1.5)"}) {
    CAPTURE(text);
    const auto result = Layout::parse(text);
    REQUIRE_FALSE(result.has_value());
    const ErrorCode code = result.error().code;
    const bool dtype = code == ErrorCode::kDTypeSyntax;
    CHECK((code == ErrorCode::kPlacementSyntax || dtype));
  }
  CHECK_CODE(Layout::parse("P(sum,f31)"), ErrorCode::kDTypeSyntax);
  CHECK_CODE(Layout::parse("S(40000)"), ErrorCode::kShardDimOutOfRange);
}

TEST_CASE("split factors that split nothing, or into too many pieces") {
  for (const char* text : {"SS(0,0)", "SS(0,-2)", "SS(0,16777217)",
                           "SS(0,2000000000)", "SS(0,2147483648)"}) {
    CAPTURE(text);
    CHECK_CODE(Layout::parse(text), ErrorCode::kSplitFactor);
  }
}

TEST_CASE("shard orders that are no permutation") {
  for (const char* text :
       {"S(0)@1", "S(0)@1,S(0)@1", "S(0)@0,S(0)@0", "S(0)@2,S(0)@0",
        "S(0)@1,S(0)", "R@0", "P(sum)@0", "S(0)@", "S(0)@x", "S(0)@-1",
        "S(0)@128", "S(0)@1,S(1)@0", "S(0)@0@1"}) {
    CAPTURE(text);
    CHECK_CODE(Layout::parse(text), ErrorCode::kShardOrder);
  }
  CHECK_CODE(
      Layout::create({Placement::shard(0), Placement()}, ShardOrder{0, 1}),
      ErrorCode::kShardOrder);
  CHECK_CODE(Layout::create({Placement::shard(0), Placement::shard(0)},
                            ShardOrder{-1, 0}),
             ErrorCode::kShardOrder);
}

TEST_CASE("as many places as placements, and no more than a mesh has dims") {
  CHECK_CODE(Layout::create({Placement::shard(0)}, ShardOrder{}),
             ErrorCode::kPlacementCount);
  std::string many = "S(0)";
  for (int i = 0; i < 100'000; ++i) many += ",S(0)";
  CHECK_CODE(Layout::parse(many), ErrorCode::kPlacementCount);
  CHECK_CODE(Layout::parse("R,R,R,R,R,R,R,R,R"), ErrorCode::kPlacementCount);
  CHECK(Layout::parse("R,R,R,R,R,R,R,R").has_value());
  CHECK_CODE(Layout::create(Placements(9)), ErrorCode::kPlacementCount);
  CHECK_CODE(Layout::create(Placements(9), ShardOrder(9)),
             ErrorCode::kPlacementCount);
}

TEST_CASE("partials of different kinds do not mix, sum with avg excepted") {
  for (const char* text : {"P(sum),P(max)", "P(min),P(max)", "P(avg),R,P(bor)",
                           "P(sum),P(sum,f32)", "P(sum,f32),P(avg,f64)"}) {
    CAPTURE(text);
    CHECK_CODE(Layout::parse(text), ErrorCode::kMixedPartials);
  }
  CHECK(Layout::parse("P(sum),P(avg),P(sum)").has_value());
  CHECK_CODE(Layout::create({Placement::partial(ReduceOp::kSum),
                             Placement::partial(ReduceOp::kBxor)}),
             ErrorCode::kMixedPartials);
  CHECK_CODE(layout_of("P(sum),R").with(1, Placement::partial(ReduceOp::kMax)),
             ErrorCode::kMixedPartials);
}

TEST_CASE("a layout reads back what it prints") {
  property(40000, [] {
    const int ndim = *rc::gen::inRange(1, 6);
    const Layout layout = some_layout(ndim, *rc::gen::inRange(0, 4));
    const auto read = Layout::parse(to_string(layout));
    RC_ASSERT(read.has_value());
    RC_ASSERT(*read == layout);
    RC_ASSERT(parse_layout(to_strings(layout)) == layout);
    RC_ASSERT(std::hash<Layout>{}(*read) == std::hash<Layout>{}(layout));
  });
}

TEST_CASE("cuts hold every mesh dim that shards, in order") {
  property(20000, [] {
    const int ndim = *rc::gen::inRange(1, 6);
    const Layout layout = some_layout(ndim, 3);
    std::size_t shards = 0;
    for (int dim = 0; dim < 3; ++dim) {
      const DimIndices cuts = layout.cuts(dim);
      for (std::size_t i = 0; i < cuts.size(); ++i) {
        RC_ASSERT(layout[cuts[i]].shards(dim));
        RC_ASSERT(layout.shard_order()[static_cast<std::size_t>(cuts[i])] ==
                  static_cast<std::int8_t>(i));
      }
      shards += cuts.size();
    }
    std::size_t expected = 0;
    for (int i = 0; i < ndim; ++i) expected += layout[i].is_shard() ? 1U : 0U;
    RC_ASSERT(shards == expected);
  });
}

TEST_CASE("changing one mesh dim keeps the order of the other cuts") {
  property(30000, [] {
    const int ndim = *rc::gen::inRange(1, 6);
    const Layout layout = some_layout(ndim, 3, {.partial = false});
    const int at = *rc::gen::inRange(0, ndim);
    const Placement placement = *rc::gen::elementOf(std::vector<Placement>{
        Placement(), Placement::shard(0), Placement::shard(1),
        Placement::strided_shard(2, 3), Placement::partial(ReduceOp::kMin)});
    const auto changed = layout.with(at, placement);
    RC_ASSERT(changed.has_value());
    RC_ASSERT((*changed)[at] == placement);
    // The result is a layout that create() would accept.
    RC_ASSERT(Layout::create(changed->placements(), changed->shard_order()) ==
              *changed);
    if (placement == layout[at]) {
      RC_ASSERT(*changed == layout);
      return;
    }
    for (int dim = 0; dim < 3; ++dim) {
      DimIndices expected;
      for (const std::int32_t cut : layout.cuts(dim)) {
        if (cut != at) expected.push_back(cut);
      }
      if (placement.shards(dim)) expected.push_back(at);
      RC_ASSERT(changed->cuts(dim) == expected);
    }
  });
}

TEST_CASE("layouts that differ are not equal") {
  const std::unordered_set<Layout> seen{
      layout_of("S(0),S(0)"),   layout_of("S(0)@1,S(0)@0"),
      layout_of("S(0),R"),      layout_of("SS(0,2),S(0)"),
      layout_of("P(sum),R"),    layout_of("P(avg),R"),
      layout_of("P(sum,f32),R")};
  CHECK(seen.size() == 7);
}

}  // namespace
}  // namespace shardprop
