// Reasons, notes, roles and conflicts as JSON objects, from plans made by hand.
#include "report/explanation_json.h"

#include "support/result_checks.h"

#include <shardprop/report/plan_json.h>

#include <nlohmann/json.hpp>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace shardprop {
namespace {

using nlohmann::ordered_json;
using testing::value_of;

Layout layout_of(const char* text) { return value_of(Layout::parse(text)); }

// A copy of `w` from R to S(0) by a slice, which costs nothing.
PlannedCopy copy_of_w(CopyReason reason) {
  PlannedCopy copy;
  copy.from = copy.of = "w";
  copy.src = layout_of("R");
  copy.dst = layout_of("S(0)");
  copy.reason = std::move(reason);
  RedistributeStep slice;
  slice.kind = CollectiveKind::kSlice;
  slice.mesh_dims = {0};
  slice.src = copy.src;
  slice.dst = copy.dst;
  copy.steps = {slice};
  return copy;
}

std::vector<CopyReason> all_reasons() {
  const CopyUser node{CopyUser::Kind::kNode, "mm_1"};
  const Layout wanted = layout_of("S(0)");
  std::vector<CopyReason> out;
  const auto add = [&](CopyReason reason) { out.push_back(std::move(reason)); };
  add({.cause = CopyCause::kCost,
       .user = node,
       .operand = 1,
       .wanted = wanted,
       .alternative = CopyAlternative{412'000, layout_of("R")}});
  add({.cause = CopyCause::kCost,
       .user = CopyUser{CopyUser::Kind::kResult, "out"},
       .wanted = wanted,
       .alternative = CopyAlternative{-2'000, layout_of("R")}});
  add({.cause = CopyCause::kShared,
       .user = node,
       .operand = 0,
       .wanted = wanted,
       .other_users = 2});
  add({.cause = CopyCause::kSource,
       .user = node,
       .operand = 0,
       .wanted = wanted});
  add({.cause = CopyCause::kPin,
       .user = CopyUser{CopyUser::Kind::kGradient, "w"},
       .wanted = wanted,
       .pin = value_of(Pin::parse("stored:*=S(0)"))});
  add({.cause = CopyCause::kRecipe,
       .user = node,
       .operand = 0,
       .wanted = wanted,
       .recipe = value_of(Recipe::parse("fsdp=dp"))});
  add({.cause = CopyCause::kOnlyLayout,
       .user = CopyUser{CopyUser::Kind::kUpdate, "cache"},
       .wanted = wanted});
  add({.cause = CopyCause::kView,
       .user = node,
       .operand = 0,
       .wanted = wanted});
  add({.cause = CopyCause::kOptimizer,
       .user = CopyUser{CopyUser::Kind::kOptimizer, "w"},
       .wanted = wanted});
  add({.cause = CopyCause::kOptimizer,
       .user = CopyUser{CopyUser::Kind::kNextStep, "w"},
       .wanted = wanted});
  add({.cause = CopyCause::kUnused});
  add({.cause = CopyCause::kReported,
       .alternative = CopyAlternative{5'000, {}},
       .text = "mm_1 takes it"});
  return out;
}

std::vector<PlanNote> all_notes() {
  return {GraphNote{"a graph's own note"},
          SmallBatchNote{4, 8, "dp", 2, 3'500},
          UnevenHeadsNote{{1, 12}, "dp", 2, 3'500},
          BatchNormNote{9, {"dp"}, 1'000, 2'000},
          ReplicatedOpsNote{{"my.op", "my.other"}, 1'000, 2'000},
          UnlikeLayersNote{19'040},
          EagerActivationsNote{},
          PipelineDimNote{"dp", 2},
          LeftOutNote{"the recipe fsdp=dp", ErrorCode::kOutOfMemory, "no"},
          FailedPartNote{ErrorCode::kProblemTooLarge, "too large"},
          EarlierPlanNote{"llama3", true, 98, 96, 12, 11, true},
          RecomputeRulesNote{{{"none", 0, 1 << 20}, {"full:2", 1500, 0}}},
          ReportedNote{"a sentence"}};
}

// Returns a plan on one mesh dim with every reason, note and role.
Plan explained_plan() {
  Plan plan;
  plan.graph_name = "g";
  plan.graph_hash = hash_text(1);
  plan.graph_ops = 1;
  plan.mesh = value_of(DeviceMesh::parse("dp=2"));
  plan.topology = default_topology();
  plan.status = PlanStatus::kFeasible;
  plan.objective_nanoseconds = 0;
  PlannedNode node;
  node.name = "mm_1";
  node.op = "aten.mm.default";
  node.source = "src/model.py:53";
  node.inputs = {{"w", layout_of("S(0)"), 0}, {"w", layout_of("S(0)"), 0}};
  // Rare keys of the schema, which few plans of the command line have.
  node.shardings = FactorShardings(layout_of("SS(0,2)"));
  CollectiveStep gather;
  gather.kind = CollectiveKind::kAllGather;
  gather.mesh_dims = {0};
  gather.padded = gather.staged = true;
  node.inside = {gather};
  node.local.arguments = {
      {"size", RankValues(plan.mesh, {0}, true, {{8}, {7}})}};
  node.local.program = LocalRunProgram{
      {LocalRunOp{"aten.mul.Scalar",
                  {{"self", LocalRef{-1, 0}},
                   {"other", LocalScalar(std::pair(1.0, 2.0))}}},
       LocalRunCollective{CollectiveKind::kAllGather, {}, {0}, {0, 0}}},
      {{1, 0}}};
  plan.nodes = {node};
  plan.options = {{"without", "layer-mix"},
                  {"size", "s0=4"},
                  {"rule", "my.op=pointwise()"}};
  plan.procedures.push_back({.name = "set-up",
                             .runs = 1,
                             .work = 2,
                             .improvements = 1,
                             .gap_closed = 500});
  plan.procedures.push_back({.name = "layer-mix", .enabled = false});
  plan.space.most_runs = 1;
  plan.made_in = {0, 1};
  plan.ran_out = RanOut::kInterrupted;
  plan.values.push_back({.name = "w", .kind = InputKind::kParameter});
  plan.values.back().tensor = {{8, 8}, DType::kF32, layout_of("R")};
  plan.values.back().state_layout = layout_of("S(0)");
  plan.values.back().reduced_once = true;
  for (CopyReason& reason : all_reasons()) {
    plan.copies.push_back(copy_of_w(std::move(reason)));
  }
  plan.copies.front().undone = {"permute"};
  plan.copies.front().once_a_step = true;
  plan.copies.front().steps.front().padded = true;
  plan.notes = all_notes();
  plan.overlap_multipliers = {0, 250};
  plan.windows = {{0, 1'000, 0}, {1, 2'500, 4'000, MicroBatches::kLast}};
  plan.copies.front().in_flight = PlannedFlight{0, 1};
  for (const RoleUse use : kAllRoleUses) {
    plan.roles.push_back({use, "dp", 500, {{"mlp"}, {"attn.o", true}}});
  }
  plan.summary = summarize(plan);
  return plan;
}

TEST_CASE("every reason, note and role reads back as it was written") {
  const Plan plan = explained_plan();
  // The lists above miss no type of note and no cause.
  std::set<std::string_view> codes;
  for (const PlanNote& note : plan.notes) codes.insert(code_of(note));
  CHECK(codes.size() == std::variant_size_v<PlanNote>);
  std::set<CopyCause> causes;
  for (const PlannedCopy& copy : plan.copies) causes.insert(copy.reason.cause);
  CHECK(causes.size() == static_cast<std::size_t>(CopyCause::kReported) + 1);
  const Plan back = value_of(parse_plan_json(plan_to_json(plan)));
  CHECK(back.notes == plan.notes);
  CHECK(back.roles == plan.roles);
  CHECK(back == plan);
}

// The file is validated against the published schema (test_plan_schema.py).
TEST_CASE("every reason, note and role is in the file that is validated") {
  std::ifstream file("tests/data/plans/all_explanations.json");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const std::string written = plan_to_json(explained_plan(), RankForm::kByDim);
  if (const char* out = std::getenv("SHARDPROP_WRITE_EXPLANATIONS")) {
    std::ofstream(out) << written;
  }
  CHECK(text == written);
}

TEST_CASE("a conflict has its recipe, its pins and its slots") {
  Plan plan;
  plan.mesh = value_of(DeviceMesh::parse("dp=2"));
  plan.topology = default_topology();
  plan.status = PlanStatus::kInfeasible;
  plan.conflict = {value_of(Recipe::parse("fsdp=dp")),
                   {value_of(Pin::parse("used:w phase:forward=R"))},
                   {{0, "", 12}},
                   true};
  const std::string text = plan_to_json(plan);
  CHECK(value_of(parse_plan_json(text)) == plan);
  const ordered_json clash = ordered_json::parse(text)["clash"];
  CHECK(clash["recipe"] == "fsdp=dp");
  CHECK(clash["pins"] == ordered_json{"used:w phase:forward=R"});
}

TEST_CASE("the objects have the keys of the schema") {
  const auto json = ordered_json::parse(plan_to_json(explained_plan()));
  const ordered_json reason = ordered_json::parse(
      R"x({"cause": "cost", "user": {"kind": "node", "name": "mm_1"},)x"
      R"x("operand": 1, "wanted": ["S(0)"],)x"
      R"x("alternative": {"placements": ["R"], "us": 412.0}})x");
  CHECK(json["copies"][0]["reason"] == reason);
  CHECK(json["copies"][0]["alternative_us"] == 412.0);
  const ordered_json note = ordered_json::parse(
      R"x({"code": "small_batch", "batch": 4, "ranks": 8, "mesh_dim": "dp",)x"
      R"x("size": 2, "lost_us": 3.5})x");
  CHECK(json["notes"][1] == note);
  const ordered_json role = ordered_json::parse(
      R"x({"use": "batch", "mesh_dim": "dp", "permille": 500,)x"
      R"x("modules": [{"name": "mlp"}, {"name": "attn.o", "part": true}]})x");
  CHECK(json["roles"][0] == role);
}

TEST_CASE("explanations that cannot be are refused with their path") {
  const auto located = [](const std::function<void(ordered_json&)>& spoil) {
    auto json = ordered_json::parse(plan_to_json(explained_plan()));
    spoil(json);
    const auto plan = parse_plan_json(json.dump());
    CHECK_CODE(plan, ErrorCode::kPlanFile);
    return plan.error().location;
  };
  const auto spoilt_reason = [&](const char* key, const ordered_json& value) {
    return located([&](auto& j) { j["copies"][0]["reason"][key] = value; });
  };
  const std::string at = "$.copies[0].reason";
  CHECK(spoilt_reason("cause", "whim") == at + ".cause");
  CHECK(spoilt_reason("cause", 3) == at + ".cause");
  CHECK(spoilt_reason("user", {{"kind", "guest"}, {"name", "mm_1"}}) ==
        at + ".user.kind");
  CHECK(spoilt_reason("user", {{"kind", "node"}, {"name", "mm_9"}}) ==
        at + ".user.name");
  CHECK(spoilt_reason("operand", 2) == at + ".operand");
  CHECK(spoilt_reason("wanted", {"R", "R"}) == at + ".wanted");
  CHECK(spoilt_reason("other_users", 0) == at + ".other_users");
  CHECK(spoilt_reason("alternative", {{"us", 412.0}}) == at + ".alternative");
  CHECK(spoilt_reason("pin", "w=R") == at);
  CHECK(located([](auto& j) { j["copies"][0]["alternative_us"] = 1.0; }) ==
        "$.copies[0].alternative_us");
  CHECK(located([](auto& j) { j["copies"][2]["alternative_us"] = 1.0; }) ==
        "$.copies[2].alternative_us");
  CHECK(located([](auto& j) { j["copies"][4]["reason"]["pin"] = "w"; }) ==
        "$.copies[4].reason.pin");
  CHECK(located([](auto& j) { j["copies"][5]["reason"]["recipe"] = "w"; }) ==
        "$.copies[5].reason.recipe");
  CHECK(located([](auto& j) { j["notes"][0]["code"] = "rumour"; }) ==
        "$.notes[0].code");
  CHECK(located([](auto& j) { j["notes"][1]["mesh_dim"] = "tp"; }) ==
        "$.notes[1].mesh_dim");
  CHECK(located([](auto& j) { j["notes"][8]["error"]["code"] = "SP"; }) ==
        "$.notes[8].error.code");
  CHECK(located([](auto& j) { j["roles"][0]["use"] = "guest"; }) ==
        "$.roles[0].use");
  CHECK(located([](auto& j) { j["roles"][0]["mesh_dim"] = "tp"; }) ==
        "$.roles[0].mesh_dim");
  CHECK(located([](auto& j) { j["roles"][0]["modules"][0] = "mlp"; }) ==
        "$.roles[0].modules[0]");
}

}  // namespace
}  // namespace shardprop
