// The sentences at the top of a plan's text, from plans made by hand.
#include "report/plan_in_words.h"

#include "report/once_a_step.h"
#include "report/wrapped_text.h"
#include "support/result_checks.h"

#include <shardprop/mesh/topology.h>

#include <string>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;

Plan plan_with(std::vector<PlanRole> roles) {
  Plan plan;
  plan.mesh = value_of(DeviceMesh::parse("dp=8,tp=4"));
  plan.topology = default_topology();
  plan.objective_nanoseconds = 1'000'000;
  plan.lower_bound_nanoseconds = 1'000'000;
  plan.status = PlanStatus::kOptimal;
  plan.roles = std::move(roles);
  return plan;
}

TEST_CASE("each mesh dim is said in the words of the field") {
  const auto words = plan_in_words(plan_with({
      {RoleUse::kBatch, "dp", 1000, {{"mlp"}}},
      {RoleUse::kParameters, "dp", 980, {}},
      {RoleUse::kOptimizer, "dp", 980, {}},
      {RoleUse::kTensor, "tp", 800, {{"mlp.up"}, {"mlp.down"}}},
      {RoleUse::kReplicated, "tp", 200, {{"attn.o"}}},
      {RoleUse::kBetweenTokens, "tp", 900, {}},
  }));
  REQUIRE(words.size() == 2);
  CHECK(words[0] == "dp=8: data parallel; parameters sharded (as FSDP does)");
  CHECK(words[1] ==
        "tp=4: tensor parallel (80 % of the matmuls); replicated compute "
        "in attn.o (20 %); tokens sharded between matmuls (sequence parallel)");
}

TEST_CASE("the words state what other layouts of equal layers could save") {
  Plan plan = plan_with({});
  CHECK(plan_in_words(plan).empty());
  plan.free_lower_bound_nanoseconds = 1'000'000;
  CHECK(plan_in_words(plan).back() ==
        "equal layers have equal layouts, which costs nothing");
  plan.free_lower_bound_nanoseconds = 970'000;
  CHECK(plan_in_words(plan).back() ==
        "equal layers have equal layouts; others (--layers free) save at most "
        "3.0 %");
}

TEST_CASE("the words state which update of the parameters is counted") {
  Plan plan = plan_with({{RoleUse::kBatch, "dp", 1000, {}}});
  plan.options = {{"optimizer", "adamw"}, {"precision", "mixed"}};
  CHECK(plan_in_words(plan).size() == 2);  // nothing is trained
  plan.outputs.push_back({OutputKind::kGradient, "w", {}});
  CHECK(plan_in_words(plan).back() == "each step ends with an update by adamw");
  plan.values.push_back({.name = "w", .kind = InputKind::kParameter});
  plan.values[0].tensor.dtype = DType::kBF16;
  CHECK(plan_in_words(plan).back() ==
        "each step ends with an update by adamw; f32 parameters and state, "
        "used in the dtype of the program");
  plan.options[1].second = "own";
  CHECK(plan_in_words(plan).back() == "each step ends with an update by adamw");
  plan.options[0].second = "none";
  CHECK(plan_in_words(plan).back() ==
        "no optimizer: memory and time of an update are not counted "
        "(--optimizer)");
  plan.roles.clear();  // a plan of an earlier release
  CHECK(plan_in_words(plan).size() == 1);
}

TEST_CASE("modules that only some layers have so are said with the layers") {
  const auto words = plan_in_words(plan_with({
      {RoleUse::kBatch,
       "dp",
       550,
       {{"model.layers.0..17.mlp.down"},
        {"model.layers.0..17.mlp.up"},
        {"experts", true},
        {"proj1.up"}}},
      {RoleUse::kTensor,
       "dp",
       450,
       {{"model.layers.18..31.mlp.down"},
        {"lm_head"},
        {"model.layers.18..31.mlp.up", true},
        {"model.layers.3"},
        {"a"},
        {"b"}}},
  }));
  REQUIRE(!words.empty());
  CHECK(words[0] ==
        "dp=8: data parallel in model.layers.0..17 (mlp.down, mlp.up), part of "
        "experts, proj1.up (55 % of the matmuls); tensor parallel in "
        "model.layers.18..31 (mlp.down, part of mlp.up), lm_head, "
        "model.layers.3, a and 1 more (45 %); parameters replicated");
}

TEST_CASE(
    "tables that are stored and used in shards are not called replicated") {
  Plan plan = plan_with({{RoleUse::kBatch, "dp", 1000, {}}});
  plan.values.push_back({.name = "table", .kind = InputKind::kParameter});
  plan.values[0].tensor = {
      {90, 8}, DType::kF32, value_of(Layout::parse("S(1),R"))};
  plan.values.push_back({.name = "w", .kind = InputKind::kParameter});
  plan.values[1].tensor = {
      {10, 8}, DType::kF32, value_of(Layout::parse("R,R"))};
  plan.values.push_back({.name = "x", .kind = InputKind::kUser});
  plan.values[2].tensor = {
      {90, 8}, DType::kF32, value_of(Layout::parse("S(0),R"))};
  CHECK(
      plan_in_words(plan).at(0) ==
      "dp=8: data parallel; 90 % of parameter bytes stored and used in shards");
}

TEST_CASE("shares of the matmuls add up to 1") {
  const auto shares = [](std::int64_t batch, std::int64_t tensor,
                         std::int64_t replicated) {
    return plan_in_words(
               plan_with({{RoleUse::kBatch, "dp", batch, {}},
                          {RoleUse::kTensor, "dp", tensor, {}},
                          {RoleUse::kReplicated, "dp", replicated, {}}}))
        .at(0);
  };
  CHECK(shares(505, 495, 0) ==
        "dp=8: data parallel (51 % of the matmuls); tensor parallel (49 %); "
        "parameters replicated");
  CHECK(shares(336, 334, 330).find("(34 % of the matmuls)") !=
        std::string::npos);
  CHECK(shares(336, 334, 330).find("(33 %)") != std::string::npos);
  // A role of a few per mille is left out, and its share is given to no other.
  CHECK(shares(600, 385, 15)
            .find("(60 % of the matmuls); tensor parallel "
                  "(39 %)") != std::string::npos);
}

TEST_CASE("a sharded optimizer beside replicated parameters is reported") {
  const auto words = plan_in_words(plan_with({
      {RoleUse::kBatch, "dp", 1000, {}},
      {RoleUse::kOptimizer, "dp", 1000, {}},
      {RoleUse::kExperts, "tp", 990, {}},
  }));
  REQUIRE(words.size() == 2);
  CHECK(words[0] ==
        "dp=8: data parallel; parameters replicated, optimizer state sharded "
        "(as ZeRO-1 does)");
  CHECK(words[1] == "tp=4: expert parallel");
}

TEST_CASE("what runs no longer than its launch is why nothing is split") {
  Plan plan = plan_with({{RoleUse::kReplicated, "dp", 1000, {}},
                         {RoleUse::kReplicated, "tp", 1000, {}}});
  PlannedNode node;
  node.compute_nanoseconds =
      static_cast<std::int64_t>(plan.topology.launch_us.value * 1000);
  plan.nodes = {node};
  const auto words = plan_in_words(plan);
  REQUIRE(words.size() == 3);
  CHECK(words[2].find("the operators are small") == 0);
  plan.nodes[0].compute_nanoseconds *= 100;
  CHECK(plan_in_words(plan).size() == 2);
}

TEST_CASE("the verdict says of which plans, and why it is no more") {
  Plan plan = plan_with({});
  CHECK(verdict(plan) == "optimal: 1.00 ms, no plan costs less");
  plan.options = {{"recipe", "fsdp=dp"}, {"pin", "w=R,R"}};
  CHECK(verdict(plan) ==
        "optimal: 1.00 ms, no plan that follows fsdp=dp and keeps the pins "
        "costs less");
  plan.options.clear();
  plan.status = PlanStatus::kFeasible;
  plan.unsupported = {{"my.op.default", 2, "no rule"}};
  CHECK(verdict(plan).find("operators without a rule") != std::string::npos);
  CHECK(verdict(plan).find("gap") == std::string::npos);
  plan.unsupported.clear();
  plan.lower_bound_nanoseconds = 800'000;
  CHECK(verdict(plan) ==
        "feasible: 1.00 ms, gap 20.0 %; no plan takes less than 800.0 us");
  plan.space.most_runs = 1;
  CHECK(verdict(plan) ==
        "feasible: 1.00 ms, gap 20.0 % in the space searched; no plan there "
        "takes less than 800.0 us");
  plan.lower_bound_nanoseconds = *plan.objective_nanoseconds;
  CHECK(verdict(plan) ==
        "feasible: 1.00 ms, the best plan of the space searched");
  plan.lower_bound_nanoseconds = 0;
  CHECK(verdict(plan) ==
        "feasible: 1.00 ms, the gap in the space searched is not known");
}

TEST_CASE("rows are broken at blanks") {
  CHECK(wrapped("one two three", {.indent = 0, .behind = 2, .width = 7}) ==
        "one two\n  three\n");
  CHECK(wrapped("incomprehensible", {.indent = 1, .width = 4}) ==
        " incomprehensible\n");
  CHECK(wrapped("a", {}) == "  a\n");
  CHECK(wrapped("at 55 %, or", {.indent = 0, .behind = 0, .width = 6}) ==
        "at\n55 %,\nor\n");
  CHECK(wrapped("of 55 of 9 GiB", {.indent = 0, .behind = 0, .width = 5}) ==
        "of 55\nof\n9 GiB\n");
}

TEST_CASE("what was searched is said of the request") {
  Plan plan = plan_with({});
  plan.space.most_runs = 0;
  CHECK(space_in_words(plan) == "all replicated");
  plan.options = {{"recipe", "fsdp=dp"}};
  CHECK(space_in_words(plan) ==
        "the layouts of the recipe, all else replicated");
  plan.options.emplace_back("pin", "w=R,R");
  CHECK(space_in_words(plan) ==
        "the layouts of the recipe and the pins, all else replicated");
  plan.options.erase(plan.options.begin());
  CHECK(space_in_words(plan) == "the layouts of the pins, all else replicated");
  plan.space.most_runs = 1;
  CHECK(space_in_words(plan) == "mesh dims in one run");
}

TEST_CASE("times of a micro-batch are said to be those of one") {
  Plan plan = plan_with({});
  CHECK(micro_batches(plan).empty());
  plan.options = {{"accumulate", "1"}};
  CHECK(micro_batches(plan).empty());
  plan.options = {{"accumulate", "8"}};
  CHECK(micro_batches(plan).find("times are those of one of 8 micro-batches, "
                                 "with its share") == 0);
  CHECK(once_in(plan) == "once in 8 micro-batches");
}

}  // namespace
}  // namespace shardprop
