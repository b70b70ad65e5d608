#include <shardprop/report/plan_json.h>

#include "plan/invariants.h"
#include "plan/small_graphs.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/plan/make_plan.h>
#include <shardprop/report/plan_text.h>

#include <nlohmann/json.hpp>

#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

namespace shardprop {
namespace {

using nlohmann::ordered_json;
using testing::value_of;

Plan training_plan(std::optional<std::int64_t> limit = {}) {
  const OpLibrary& library = testing::standard_library();
  const Graph graph = test::linear_training(library);
  PlanOptions options;
  options.optimizer = Optimizer::kAdamW;
  options.overlap = 0.3;
  options.memory_limit = limit;
  options.pins.push_back(value_of(Pin::parse("net.w=S(0),R")));
  return value_of(make_plan(graph, value_of(DeviceMesh::parse("dp=2,tp=2")),
                            default_topology(), library, options));
}

TEST_CASE("a plan reads back as it was written") {
  const Plan plan = training_plan();
  REQUIRE(plan.has_plan());
  REQUIRE_FALSE(plan.copies.empty());
  const Plan back = value_of(parse_plan_json(plan_to_json(plan)));
  test::check_plan(back);
  CHECK(back == plan);
  CHECK(plan_to_json(back) == plan_to_json(plan));
}

TEST_CASE("shardings of factors that are not in mesh order read back") {
  Plan plan = training_plan();
  const std::vector<std::string> entries = {"SS(2,4)@1", "S(2)@0"};
  plan.nodes[0].shardings = FactorShardings(value_of(parse_layout(entries)));
  const std::string text = plan_to_json(plan);
  const auto json = ordered_json::parse(text);
  CHECK(json["nodes"][0]["factor_shardings"] == ordered_json(entries));
  CHECK_FALSE(json["nodes"][1].contains("factor_shardings"));
  CHECK(value_of(parse_plan_json(text)) == plan);
}

TEST_CASE("rules and bounds that a graph was read with are lists") {
  Plan plan = training_plan();
  for (const char* bound : {"u0=4", "u1=8"}) {
    plan.options.emplace_back("bound", bound);
  }
  plan.options.emplace_back("rule", "mylib.swiglu=pointwise()");
  const auto json = ordered_json::parse(plan_to_json(plan));
  CHECK(json["options"]["bound"] == ordered_json{"u0=4", "u1=8"});
  CHECK(json["options"]["rule"] == ordered_json{"mylib.swiglu=pointwise()"});
  CHECK(value_of(parse_plan_json(plan_to_json(plan))) == plan);
}

TEST_CASE("the search procedures are in the file, without their clocks") {
  Plan plan = training_plan();
  REQUIRE_FALSE(plan.procedures.empty());
  CHECK(plan.procedures[0].seconds > 0);
  plan.procedures.push_back(
      {"front-elimination", true, 2, 0.5, 1'000'000'000'000, 1, 1'234'567});
  plan.procedures.push_back({.name = "probing", .enabled = false});
  const std::string text = plan_to_json(plan);
  const auto json = ordered_json::parse(text);
  const auto& last = json["procedures"].back();
  CHECK(last["name"] == "probing");
  CHECK(last["enabled"] == false);
  const auto& front = json["procedures"][json["procedures"].size() - 2];
  CHECK_FALSE(front.contains("enabled"));
  CHECK_FALSE(front.contains("seconds"));
  CHECK(front["gap_closed_us"] == 1234.567);
  const Plan back = value_of(parse_plan_json(text));
  CHECK(back.procedures == plan.procedures);
  CHECK(back.procedures[0].seconds == 0);

  // The text has a table of them if it is asked for.
  plan.procedures.erase(plan.procedures.begin(), plan.procedures.end() - 2);
  const std::string table = plan_to_text(plan, {.statistics = true});
  CHECK(
      table.find("front-elimination         2     0.500 s      1e+12         1"
                 "       1.23 ms\n") != std::string::npos);
  CHECK(table.find("probing                 off\n") != std::string::npos);
  CHECK(plan_to_text(plan).find("front-elimination") == std::string::npos);
}

TEST_CASE("what found no plan reads back too") {
  const Plan none = training_plan(1024);
  REQUIRE_FALSE(none.has_plan());
  CHECK(value_of(parse_plan_json(plan_to_json(none))) == none);
  const auto json = ordered_json::parse(plan_to_json(none));
  CHECK(json["status"] == "infeasible");
  CHECK(json["clash"]["irreducible"] == true);
  REQUIRE(json["clash"]["memory"].size() == 1);
  CHECK(json["clash"]["memory"][0]["bytes_short"] > 0);
  CHECK(json["objective_us"].is_null());
  CHECK(json["gap"].is_null());
}

TEST_CASE("the bound of plans with free layers is kept") {
  Plan plan = training_plan();
  plan.free_lower_bound_nanoseconds = 1'500;
  const auto json = ordered_json::parse(plan_to_json(plan));
  CHECK(json["free_lower_bound_us"] == 1.5);
  CHECK(value_of(parse_plan_json(plan_to_json(plan)))
            .free_lower_bound_nanoseconds == 1'500);
  plan.free_lower_bound_nanoseconds.reset();
  CHECK_FALSE(
      ordered_json::parse(plan_to_json(plan)).contains("free_lower_bound_us"));
}

TEST_CASE("the keys of the contract are there") {
  const auto json = ordered_json::parse(plan_to_json(training_plan()));
  CHECK(json["schema"] == "shardprop.plan/3");
  for (const char* key :
       {"graph", "mesh", "topology", "options", "status", "objective_us",
        "step_us", "lower_bound_us", "gap", "solve_seconds", "unsupported",
        "guards", "memory", "summary", "values", "copies", "nodes"}) {
    CAPTURE(key);
    CHECK(json.contains(key));
  }
  CHECK(json["step_us"] == json["objective_us"]);
  Plan accumulated = training_plan();
  for (auto& [name, value] : accumulated.options) {
    if (name == "accumulate") value = "8";
  }
  accumulated.objective_nanoseconds = 1'500;
  CHECK(ordered_json::parse(plan_to_json(accumulated))["step_us"] == 12);
  CHECK(json["mesh"]["dims"][0] == ordered_json{{"name", "dp"}, {"size", 2}});
  CHECK(json["memory"]["limit_bytes"].is_null());
  CHECK(json["summary"]["collectives"].size() == 8);
  CHECK(json["values"]["net.w"]["role"] == "parameter");
  CHECK(json["values"]["net.w"]["shape"] == ordered_json{1024, 1024});
  CHECK(json["values"]["net.w"]["placements"] == ordered_json{"S(0)", "R"});
  const auto& step = json["copies"][0]["steps"][0];
  for (const char* key : {"collective", "mesh_dims", "bytes_per_rank", "us"}) {
    CAPTURE(key);
    CHECK(step.contains(key));
  }
  const auto& node = json["nodes"][0];
  for (const char* key : {"id", "op", "module", "phase", "compute_us", "inside",
                          "outputs", "inputs"}) {
    CAPTURE(key);
    CHECK(node.contains(key));
  }
  CHECK(node["op"] == "aten.mm.default");
}

// Returns the plan's JSON after `spoil` has changed it.
std::string spoilt(const std::function<void(ordered_json&)>& spoil) {
  auto json = ordered_json::parse(plan_to_json(training_plan()));
  spoil(json);
  return json.dump();
}

TEST_CASE("numbers of ranks stand by rank or by mesh coordinate") {
  Plan plan = training_plan();
  const DeviceMesh& mesh = plan.mesh;
  plan.nodes[0].local.arguments = {
      {"size", RankValues(mesh, {0}, true, {{8, 4}, {7, 4}})},
      {"dim", RankValues(mesh, {}, false, {{3}})}};
  const auto args_of = [&](RankForm form) {
    const std::string text = plan_to_json(plan, form);
    CHECK(value_of(parse_plan_json(text)) == plan);
    return ordered_json::parse(text)["nodes"][0]["local_args"];
  };
  const auto by_dim = args_of(RankForm::kByDim);
  CHECK(by_dim["size"]["mesh_dims"] == ordered_json{mesh.name(0)});
  CHECK(by_dim["size"]["values"] == ordered_json{{8, 4}, {7, 4}});
  CHECK(by_dim["dim"]["mesh_dims"] == ordered_json::array());
  CHECK(by_dim["dim"]["values"] == ordered_json{3});
  const auto each = args_of(RankForm::kEachRank);
  const auto half = static_cast<std::size_t>(mesh.size() / 2);
  REQUIRE(each["size"].size() == 2 * half);
  CHECK(each["size"][half - 1] == ordered_json{8, 4});
  CHECK(each["size"][half] == ordered_json{7, 4});
  CHECK(each["dim"].size() == 2 * half);
}

TEST_CASE("plans that are malformed say where") {
  CHECK_CODE(parse_plan_json(""), ErrorCode::kPlanFile);
  CHECK_CODE(parse_plan_json("{"), ErrorCode::kPlanFile);
  CHECK_CODE(parse_plan_json("[]"), ErrorCode::kPlanFile);
  CHECK_CODE(parse_plan_json("{}"), ErrorCode::kPlanFile);
  const auto located = [](const std::function<void(ordered_json&)>& spoil) {
    const auto plan = parse_plan_json(spoilt(spoil));
    CHECK_CODE(plan, ErrorCode::kPlanFile);
    return plan.error().location;
  };
  CHECK(located([](auto& j) { j.erase("mesh"); }) == "$");
  CHECK(located([](auto& j) { j["nodes"][1]["phase"] = "sideways"; }) ==
        "$.nodes[1].phase");
  CHECK(located([](auto& j) { j["copies"][0]["dst"] = {"S(9)"}; }) ==
        "$.copies[0].dst");
  CHECK(located([](auto& j) { j["copies"][0]["made_at"] = 99; }) ==
        "$.copies[0].made_at");
  CHECK(located([](auto& j) { j["nodes"][0]["inputs"][0]["copy"] = 1000; }) ==
        "$.nodes[0].inputs[0].copy");
  CHECK(located([](auto& j) { j["values"]["net.w"]["dtype"] = "f33"; }) ==
        "$.values.net.w.dtype");
  CHECK(located([](auto& j) { j["mesh"]["dims"][0]["size"] = -1; }) ==
        "$.mesh.dims[0].size");
  CHECK(located([](auto& j) { j["summary"]["bytes_per_rank"] = 1; }) ==
        "$.summary");
  CHECK(located([](auto& j) {
          j["nodes"][0]["local_args"]["size"] = {{1}, {2}, {3}};
        }) == "$.nodes[0].local_args.size");
  CHECK(located([](auto& j) {
          j["nodes"][0]["local_args"]["size"] = {
              {"mesh_dims", {"tp", "dp"}},
              {"values", {{1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}}}};
        }) == "$.nodes[0].local_args.size.mesh_dims");
  CHECK(located([](auto& j) {
          j["nodes"][0]["local_args"]["size"] = {{"mesh_dims", {"dp"}},
                                                 {"values", {{1}, {2}, {3}}}};
        }) == "$.nodes[0].local_args.size.values");
  CHECK(located([](auto& j) { j["objective_us"] = 1; }) == "$.objective_us");
  CHECK(located([](auto& j) { j["objective_us"] = nullptr; }) ==
        "$.objective_us");
  CHECK(located([](auto& j) { j["step_us"] = "long"; }) == "$.step_us");
}

TEST_CASE("the micro-batches of a window are first, between or last") {
  for (const char* set : {"all", "none"}) {
    const auto plan = parse_plan_json(spoilt([&](auto& j) {
      ordered_json window{{"begins_at", 0},
                          {"compute_us", 1},
                          {"overlappable_us", 1},
                          {"micro_batches", set}};
      j["overlap_windows"] = ordered_json::array();
      j["overlap_windows"].push_back(std::move(window));
    }));
    CHECK_CODE(plan, ErrorCode::kPlanFile);
    CHECK(plan.error().location == "$.overlap_windows[0].micro_batches");
    CHECK(plan.error().message == "the plan is malformed: found `" +
                                      std::string(set) +
                                      "`, expected first, between or last");
  }
}

TEST_CASE("what hangs together wrongly says where") {
  const auto located = [](const std::function<void(ordered_json&)>& spoil) {
    const auto plan = parse_plan_json(spoilt(spoil));
    CHECK_CODE(plan, ErrorCode::kPlanFile);
    return plan.error().location;
  };
  CHECK(located([](auto& j) { j["copies"][0]["of"] = 0; }) == "$.copies[0].of");
  CHECK(located([](auto& j) { j["copies"][0]["bucket"] = 1; }) ==
        "$.copies[0].bucket");
  CHECK(located([](auto& j) {
          j["copies"][0]["steps"][0]["src"] = {"R", "R"};
        }) == "$.copies[0].steps");
  CHECK(located([](auto& j) { j["copies"][0]["steps"].clear(); }) ==
        "$.copies[0].steps");
  CHECK(located([](auto& j) {
          j["nodes"][0]["local_args"]["size"] = {1, 2, 3};
        }) == "$.nodes[0].local_args.size");
  CHECK(located([](auto& j) {
          j["nodes"][0]["factor_shardings"] = {"S(0)", "P(sum)"};
        }) == "$.nodes[0].factor_shardings");
  CHECK(located([](auto& j) { j["outputs"][0]["kind"] = "gift"; }) ==
        "$.outputs[0].kind");
  CHECK(located([](auto& j) { j["values"]["net.w"]["role"] = "guest"; }) ==
        "$.values.net.w.role");
  CHECK(located([](auto& j) { j["nodes"].back()["inputs"].clear(); }) ==
        "$.nodes[4]");
  CHECK(located([](auto& j) { j["nodes"].push_back(j["nodes"][0]); }) ==
        "$.nodes[5].phase");
}

TEST_CASE("the optimizer's step is written as nodes behind the graph's") {
  const auto json = ordered_json::parse(plan_to_json(training_plan()));
  CHECK(json["graph"]["ops"] == 4);
  REQUIRE(json["nodes"].size() == 5);
  const auto& node = json["nodes"][4];
  CHECK(node["id"] == "adamw.net.w");
  CHECK(node["op"] == "optimizer.adamw");
  CHECK(node["phase"] == "optimizer");
  CHECK(node["inputs"][0]["from"] == "gw");
  CHECK(node["inputs"][1]["from"] == "net.w");
  CHECK(json["outputs"].back()["from"] == "adamw.net.w");
}

TEST_CASE("a plan of schema 1 is read as what it says, never as proven") {
  std::ifstream file("tests/data/plans/mlp_dynamic_schema1.json");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  REQUIRE(ordered_json::parse(text)["status"] == "optimal");
  const Plan plan = value_of(parse_plan_json(text));
  CHECK(plan.status == PlanStatus::kFeasible);
  CHECK(plan.topology.name == "dgx-h100");
  CHECK(plan.nodes.size() == 7);
  REQUIRE(plan.copies.size() == 8);
  CHECK(plan.copies[5].of == "up.weight");
  CHECK(plan.copies[5].views.empty());
  CHECK(plan.nodes[0].assignment.empty());
}

TEST_CASE("a value with many siblings is found without a walk") {
  Plan plan = training_plan();
  const PlannedValue value = plan.values.front();
  for (int i = 0; i < 100'000; ++i) {
    plan.values.push_back(value);
    plan.values.back().name = "more." + std::to_string(i);
  }
  CHECK(value_of(parse_plan_json(plan_to_json(plan))) == plan);
}

TEST_CASE("keys that are unknown or stand twice are refused") {
  const auto error = [](const std::string& text) {
    const auto plan = parse_plan_json(text);
    CHECK_CODE(plan, ErrorCode::kPlanFile);
    return plan.error();
  };
  const Error unknown =
      error(spoilt([](auto& j) { j["nodes"][0]["Module"] = 1; }));
  CHECK(unknown.location == "$.nodes[0]");
  CHECK(unknown.message == "the plan is malformed: unknown key `Module`");
  std::string text = plan_to_json(training_plan());
  text.insert(1, "\"status\": 1,");
  CHECK(error(text).location == "$.status");
}

TEST_CASE("plans that nest too deep or count too far are refused") {
  const auto message = [](std::string_view from, const std::string& to) {
    std::string text = plan_to_json(training_plan());
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    const auto plan = parse_plan_json(text.replace(at, from.size(), to));
    CHECK_CODE(plan, ErrorCode::kPlanFile);
    return plan.error().message;
  };
  constexpr std::string_view kSize = "\"size\": 2";
  CHECK(message(kSize, "\"size\": " + std::string(100'000, '[')) ==
        "the plan is malformed: the file nests deeper than 200 levels");
  CHECK(message(kSize, "\"size\": 18446744073709551618") ==
        "the plan is malformed: `18446744073709551618` is not an integer that "
        "fits in 64 bits");
  CHECK(message("\"lower_bound_us\": ", "\"lower_bound_us\": NaN, \"x\": ") ==
        "the plan is malformed: expected a number");
}

TEST_CASE("names are escaped in text, and stay as they are in JSON") {
  Plan plan = training_plan();
  plan.values.at(0).name = "net\x1b[31m\nforged";
  CHECK(plan_to_text(plan).find("net\\x1b[31m\\nforged") != std::string::npos);
  CHECK(plan_to_text(plan).find('\x1b') == std::string::npos);
  const auto again = parse_plan_json(plan_to_json(plan));
  REQUIRE(again.has_value());
  CHECK(again->values.at(0).name == plan.values.at(0).name);
}

TEST_CASE("a plan of another schema is not read") {
  CHECK_CODE(parse_plan_json(
                 spoilt([](auto& j) { j["schema"] = "shardprop.plan/4"; })),
             ErrorCode::kPlanSchemaVersion);
}

}  // namespace
}  // namespace shardprop
