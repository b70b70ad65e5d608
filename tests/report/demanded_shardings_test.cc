#include "plan/small_graphs.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/plan/make_plan.h>
#include <shardprop/report/plan_json.h>
#include <shardprop/report/plan_text.h>

#include <nlohmann/json.hpp>

#include <string>

namespace shardprop {
namespace {

using nlohmann::ordered_json;
using testing::value_of;

Plan strided_plan() {
  const OpLibrary& library = testing::standard_library();
  const Graph graph = test::mlp(library);
  PlanOptions options;
  options.pins.push_back(value_of(Pin::parse("act=SS(0,2)")));
  return value_of(make_plan(graph, value_of(DeviceMesh::parse("4")),
                            default_topology(), library, options));
}

TEST_CASE("the demanded shardings of a plan read back") {
  const Plan plan = strided_plan();
  REQUIRE_FALSE(plan.demanded_shardings.empty());
  const std::string text = plan_to_json(plan);
  const auto json = ordered_json::parse(text)["demanded_shardings"];
  CHECK(json["most_of_factor"] == 8);
  CHECK(json["demanded"][0]["sharding"] == ordered_json({"SS(0,2)"}));
  CHECK(value_of(parse_plan_json(text)) == plan);
}

TEST_CASE("a demanded sharding is a layout of one dim") {
  for (const char* wrong : {"S(1)", "P(sum)"}) {
    auto json = ordered_json::parse(plan_to_json(strided_plan()));
    json["demanded_shardings"]["demanded"][0]["sharding"][0] = wrong;
    const auto read = parse_plan_json(json.dump());
    CHECK_CODE(read, ErrorCode::kPlanFile);
  }
}

TEST_CASE("statistics list the demanded shardings and their cap") {
  Plan plan = strided_plan();
  plan.demanded_shardings.left_out_of_factors = 1200;
  plan.demanded_shardings.left_out_of_values = 1;
  plan.demanded_shardings.split_operators = 2;
  const std::string text = plan_to_text(plan, {.statistics = true});
  for (const char* part :
       {"at most 8 of a factor of an operator", "SS(0,2)",
        "2 operators (split, slice, cat) may shard each of their equal pieces",
        "1,200 more of factors are left out",
        "1 more of values are left out"}) {
    CAPTURE(part);
    CHECK(text.find(part) != std::string::npos);
  }
  CHECK(plan_to_text(plan).find("left out") == std::string::npos);
}

}  // namespace
}  // namespace shardprop
