#include <shardprop/request/plan_request.h>

#include "plan/small_graphs.h"
#include "request/refused.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/plan/make_plan.h>

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace shardprop {
namespace {

using testing::refused;
using testing::value_of;

PlanRequest mlp_request() {
  PlanRequest request;
  request.library = OpLibrary::standard();
  request.graph = std::make_shared<const Graph>(test::mlp(*request.library));
  request.mesh = value_of(planned_mesh("dp=2,tp=2"));
  request.topology = default_topology();
  request.options = value_of(plan_options({}, request.topology));
  return request;
}

TEST_CASE("the default limit is what a process can allocate on the device") {
  const Topology& topology = default_topology();
  const PlanOptions options = value_of(plan_options({}, topology));
  CHECK(options.memory_limit == topology.allocatable_bytes());
  CHECK(options.overlap == topology.overlap_discount.value);
  CHECK(options.time_limit_seconds == 30);
  CHECK(!options.work_limit);
  CHECK(options.gap == kDefaultGap);
  CHECK(!options.optimizer);
}

TEST_CASE("given options replace the defaults, and lists grow") {
  const std::vector<GivenOption> given = {
      {"memory", "none", {}}, {"overlap", "0.5", {}}, {"pin", "x=R,R", {}},
      {"pin", "w=R,R", {}},   {"seed", "1", {}},      {"seed", "2", {}}};
  const PlanOptions options = value_of(plan_options(given, default_topology()));
  CHECK(!options.memory_limit);
  CHECK(options.overlap == 0.5);
  CHECK(options.pins.size() == 2);
  CHECK(options.seed == 2);
}

TEST_CASE("a work limit alone is the only limit") {
  const auto seconds = [](const std::vector<GivenOption>& given) {
    return value_of(plan_options(given, default_topology())).time_limit_seconds;
  };
  CHECK(seconds({{"work_limit", "1", {}}}) == 1e12);
  CHECK(seconds({{"time_limit", "5", {}}, {"work_limit", "1", {}}}) == 5);
  const auto start = std::chrono::steady_clock::now();
  const auto end = [&](const std::vector<GivenOption>& given) {
    return end_of_time_limit(given, start);
  };
  CHECK(end({{"work_limit", "1", {}}}) == std::nullopt);
  CHECK(end({{"work_limit", "1", {}}, {"time_limit", "5", {}}}) ==
        start + std::chrono::seconds(5));
  CHECK(end({{"time_limit", "soon", {}}}) == start);
  CHECK(end({}) > start);
}

TEST_CASE("a search by work has a work limit if no limit is given") {
  const auto by_work = [](const std::vector<GivenOption>& given) {
    return value_of(
        plan_options(given, default_topology(), SearchLimit::kWork));
  };
  CHECK(by_work({}).work_limit == kDefaultWork);
  CHECK(by_work({}).time_limit_seconds == 1e12);
  CHECK(by_work({{"work_limit", "7", {}}}).work_limit == 7U);
  CHECK(!by_work({{"time_limit", "5", {}}}).work_limit);
  CHECK(by_work({{"time_limit", "5", {}}}).time_limit_seconds == 5);
  CHECK(end_of_time_limit({}, std::chrono::steady_clock::now(),
                          SearchLimit::kWork) == std::nullopt);
}

TEST_CASE("a request starts from the answer to an earlier one") {
  PlanRequest request = mlp_request();
  const Plan first = value_of(plan(request));
  request.options.start_from = std::make_shared<const Plan>(first);
  request.options.pins = {value_of(Pin::parse("w1=R,R"))};
  const Plan second = value_of(plan(request));
  REQUIRE(second.has_plan());
  REQUIRE(!second.notes.empty());
  const auto* start = std::get_if<EarlierPlanNote>(&second.notes.back());
  REQUIRE(start != nullptr);
  CHECK(start->led_to_plan);
}

TEST_CASE("an error about an option has its place") {
  const auto place_of = [](const GivenOption& option) {
    const std::vector<GivenOption> given = {option};
    return refused(plan_options(given, default_topology()),
                   ErrorCode::kInvalidArgument)
        .location;
  };
  CHECK(place_of({"overlap", "2", "--overlap 2"}) == "--overlap 2");
  CHECK(place_of({"overlap", "2", {}}) == "overlap");
  CHECK(place_of({"speed", "2", {}}) == "speed");
}

TEST_CASE("options of training are refused for a graph that does not train") {
  const std::vector<std::vector<GivenOption>> options = {
      {{"optimizer", "adamw", {}}},
      {{"optimizer", "sgd", {}}},
      {{"accumulate", "8", {}}}};
  for (const std::vector<GivenOption>& given : options) {
    CAPTURE(given[0].text);
    PlanRequest request = mlp_request();
    request.options = value_of(plan_options(given, request.topology));
    CHECK(refused(plan(request), ErrorCode::kInvalidArgument)
              .message.find("`mlp` does not train") != std::string::npos);
    CHECK(refused(weigh_strategies(request, request.graph->nodes().front().id),
                  ErrorCode::kInvalidArgument)
              .message.find("`mlp` does not train") != std::string::npos);
  }
}

TEST_CASE("a mesh has at most as many dims as the planner takes") {
  CHECK(value_of(planned_mesh("2,1,2,2,2,2")).dims().size() == 6);
  CHECK(refused(planned_mesh("2,2,2,2,2,2"), ErrorCode::kMeshTooManyDims)
            .message == "the mesh has 6 dims larger than 1");
}

TEST_CASE("the answer is the plan of the parts, with the reading recorded") {
  PlanRequest request = mlp_request();
  Plan made = value_of(make_plan(*request.graph, request.mesh, request.topology,
                                 *request.library, request.options));
  Plan answer = value_of(plan(request));
  made.solve_seconds = answer.solve_seconds;
  CHECK(answer == made);

  // The request owns or shares its parts, so it can be copied and moved.
  PlanRequest copy = request;
  PlanRequest moved = std::move(request);
  copy.options.pins.push_back(value_of(Pin::parse("x=R,R")));
  CHECK(value_of(plan(copy)).pins.size() == 1);
  Plan again = value_of(plan(moved));
  again.solve_seconds = answer.solve_seconds;
  CHECK(again == answer);

  moved.reading.sizes = {{"batch=8", "--size batch=8"}};
  moved.reading.program = {"second", "--program second"};
  const Plan recorded = value_of(plan(moved));
  made.options.emplace_back("size", "batch=8");
  made.options.emplace_back("program", "second");
  CHECK(recorded.options == made.options);
}

TEST_CASE("a request weighs the strategies of one operator") {
  const PlanRequest request = mlp_request();
  const NodeId node = request.graph->nodes().front().id;
  const WeighedNode why = value_of(weigh_strategies(request, node));
  CHECK(why.objective_nanoseconds ==
        value_of(plan(request)).objective_nanoseconds);
}

}  // namespace
}  // namespace shardprop
