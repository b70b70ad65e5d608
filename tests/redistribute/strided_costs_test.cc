#include "redistribute/strided_costs.h"

#include "redistribute/redistribute_rows.h"
#include "support/result_checks.h"

#include <shardprop/redistribute/planner.h>

#include <set>

namespace shardprop {
namespace {

using testing::value_of;

std::set<Placement> strided_of(const Layout& src, const Layout& dst) {
  std::set<Placement> found;
  for (const Layout* layout : {&src, &dst}) {
    for (const Placement& placement : layout->placements()) {
      if (placement.is_strided()) found.insert(placement);
    }
  }
  return found;
}

TEST_CASE("pairs with strided shards cost what the planner asks") {
  struct Case {
    const char* mesh;
    const char* tensor;
    const char* src;
    const char* dst;
  };
  const Case cases[] = {{"2,4", "f32[48,16]", "SS(0,3),R", "R,R"},
                        {"2,4", "bf16[48,16,8]", "R,SS(0,3)", "SS(0,2),R"},
                        {"3,2", "f32[30,7]", "S(1),SS(0,5)", "R,SS(0,5)"},
                        {"2,4", "f32[0,16]", "SS(1,2),R", "R,R"},
                        {"2,1,4", "i64[16,10]", "SS(1,2),R,R", "R,R,S(0)"},
                        {"8", "f32[48,24]", "SS(0,3)", "SS(1,3)"}};
  for (const Case& c : cases) {
    CAPTURE(c.mesh);
    CAPTURE(c.tensor);
    const auto mesh = value_of(DeviceMesh::parse(c.mesh));
    const auto meta = value_of(TensorMeta::parse(c.tensor));
    const auto planner =
        value_of(RedistributePlanner::create(mesh, default_topology()));
    const Layout endpoints[] = {value_of(Layout::parse(c.src)),
                                value_of(Layout::parse(c.dst))};
    const auto costs = StridedCosts::create(planner, meta, endpoints);
    REQUIRE(costs != nullptr);
    const auto rows =
        value_of(RedistributeRows::create(planner, meta, endpoints));
    const std::set<Placement> strided = strided_of(endpoints[0], endpoints[1]);
    const std::vector<Layout>& layouts = rows.layouts();
    std::vector<std::uint32_t> numbers;
    for (const Layout& layout : layouts) {
      const auto number = costs->number(layout);
      REQUIRE(number.has_value());
      numbers.push_back(*number);
    }
    int compared = 0;
    for (std::size_t a = 0; a < layouts.size(); ++a) {
      for (std::size_t b = 0; b < layouts.size(); ++b) {
        // Other pairs have other split factors.
        if (strided_of(layouts[a], layouts[b]) != strided) continue;
        CAPTURE(to_string(layouts[a]));
        CAPTURE(to_string(layouts[b]));
        const auto expected = planner.cost(layouts[a], layouts[b], meta);
        const auto cost = costs->nanoseconds(numbers[a], numbers[b]);
        REQUIRE(cost.has_value() == expected.has_value());
        if (cost) CHECK(*cost == *expected);
        ++compared;
      }
    }
    CHECK((compared > 0 || meta.numel() == 0));
  }
}

TEST_CASE("costs with strided shards are shared only if the path decides") {
  const auto meta = value_of(TensorMeta::parse("f32[48,16]"));
  const auto created = [&](const char* sizes, const char* src,
                           const RedistributeOptions& options) {
    const auto mesh = value_of(DeviceMesh::parse(sizes));
    const auto planner = value_of(
        RedistributePlanner::create(mesh, default_topology(), options));
    const Layout endpoints[] = {value_of(Layout::parse(src))};
    return StridedCosts::create(planner, meta, endpoints) != nullptr;
  };
  CHECK(created("2,4", "SS(0,3),R", {}));
  CHECK_FALSE(created("2,4", "SS(0,3),R", {.memory_limit = 9000}));
  CHECK_FALSE(created("2,4", "SS(0,3),R", {.allow_empty_shards = false}));
  CHECK_FALSE(created("2,2,2", "SS(0,3),R,R", {}));
}

TEST_CASE("only canonical layouts of the alphabet have a number") {
  const auto mesh = value_of(DeviceMesh::parse("2,4"));
  const auto meta = value_of(TensorMeta::parse("f32[48,16]"));
  const auto planner =
      value_of(RedistributePlanner::create(mesh, default_topology()));
  const Layout endpoints[] = {value_of(Layout::parse("SS(0,3),R"))};
  const auto costs = StridedCosts::create(planner, meta, endpoints);
  const auto number = [&](const char* layout) {
    return costs->number(value_of(Layout::parse(layout)));
  };
  CHECK(number("R,SS(0,3)").has_value());
  CHECK(number("P(sum),S(1)").has_value());
  CHECK_FALSE(number("P(max),R").has_value());
  CHECK_FALSE(number("SS(0,6),R").has_value());
  CHECK_FALSE(number("SS(0,48),R").has_value());
  CHECK_FALSE(
      costs->nanoseconds(*number("S(0),R"), *number("P(sum),R")).has_value());
}

}  // namespace
}  // namespace shardprop
