// Reads plans of schema 2, in which reasons and notes are texts. The files are of
// the last commit that wrote that schema.
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/io/load_graph.h>
#include <shardprop/report/plan_json.h>
#include <shardprop/report/plan_sentences.h>
#include <shardprop/request/saved_plan.h>

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {
namespace {

using nlohmann::ordered_json;
using testing::value_of;

Plan saved_plan_of_schema_2(const std::string& name) {
  const std::string path = "tests/data/plans/" + name;
  return value_of(load_plan(path, path));
}

TEST_CASE("a plan of schema 2 keeps its reasons and notes as texts") {
  const Plan plan = saved_plan_of_schema_2("llama3_train_schema2.json.gz");
  CHECK(plan.status == PlanStatus::kOptimal);
  REQUIRE(plan.copies.size() == 150);
  const std::vector<std::string> reasons = reasons_in_words(plan);
  int alternatives = 0;
  for (std::size_t c = 0; c < plan.copies.size(); ++c) {
    const CopyReason& reason = plan.copies[c].reason;
    CHECK(reason.cause == CopyCause::kReported);
    CHECK(reasons[c] == reason.text);
    CHECK_FALSE(reason.text.empty());
    if (reason.alternative) ++alternatives;
    if (reason.text.find("the plan would cost") == std::string::npos) continue;
    CHECK(reason.alternative);
    CHECK_FALSE(reason.alternative->layout);
  }
  CHECK(alternatives == 10);
  CHECK(value_of(parse_plan_json(plan_to_json(plan))) == plan);
  const Plan noted = saved_plan_of_schema_2("resnet_train_schema2.json.gz");
  REQUIRE(noted.notes.size() == 1);
  CHECK(note_in_words(noted.notes[0]).find("9 layers of batch norm") == 0);
  CHECK(value_of(parse_plan_json(plan_to_json(noted))) == noted);
}

TEST_CASE("a plan of schema 2 is judged and written in the last schema") {
  const OpLibrary& library = testing::standard_library();
  for (const char* name : {"llama3_train", "resnet_train"}) {
    const Plan saved =
        saved_plan_of_schema_2(std::string(name) + "_schema2.json.gz");
    const Graph graph = value_of(load_graph(
        "examples/graphs/tiny/" + std::string(name) + ".json.gz", library));
    JudgedPlan judged = value_of(judge_plan(saved, graph, library));
    // Schema 2 does not state flights and buckets.
    std::size_t in_flight = 0;
    for (PlannedCopy& copy : judged.plan.copies) {
      in_flight += copy.in_flight ? 1 : 0;
      copy.in_flight.reset();
      copy.bucket.reset();
    }
    CHECK(in_flight > 0);
    // Since that file was written, the gradient of the loss is in a fused kernel.
    const bool is_fused_now = std::string_view(name) == "resnet_train";
    CHECK(judged.differences.empty() == !is_fused_now);
    CHECK(judged.plan.copies == saved.copies);
    CHECK(judged.plan.notes == saved.notes);
    CHECK(judged.plan.roles == saved.roles);
    const auto json = ordered_json::parse(plan_to_json(judged.plan));
    CHECK(json["schema"] == "shardprop.plan/3");
    CHECK(json["copies"][0]["reason"]["cause"] == "reported");
  }
}

TEST_CASE("a conflict of schema 2 has the recipe of the options") {
  Plan plan = saved_plan_of_schema_2("mlp_dynamic_infeasible_schema2.json");
  CHECK(plan.conflict.pins ==
        std::vector<Pin>{value_of(Pin::parse("x=S(0),R"))});
  CHECK_FALSE(plan.conflict.recipe);
  REQUIRE(plan.conflict.memory.size() == 1);
  CHECK(plan.conflict.memory[0].bytes_short == 244);
  plan.options.emplace_back("recipe", "fsdp=dp");
  auto json = ordered_json::parse(plan_to_json(plan));
  json["schema"] = "shardprop.plan/2";
  json["notes"] = ordered_json::array();
  CHECK(value_of(parse_plan_json(json.dump())).conflict.recipe ==
        value_of(Recipe::parse("fsdp=dp")));
}

}  // namespace
}  // namespace shardprop
