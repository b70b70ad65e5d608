// Tests of roles of dims: the batch, the arithmetic of a step, and the reported
// roles.
#include "graph/analysis/dim_roles.h"

#include "plan/explain/model_flops.h"
#include "plan/small_graphs.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/io/load_graph.h>
#include <shardprop/plan/make_plan.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

using test::add_input;
using test::add_op;
using testing::standard_library;
using testing::value_of;

const std::vector<GivenArgument> kTwoOperands = {{"", TensorArg{0}},
                                                 {"", TensorArg{1}}};

ValueId mm(GraphBuilder& b, ValueId x, ValueId y, const char* name) {
  return add_op(b, "aten.mm.default", kTwoOperands, {x, y}, name);
}

ValueId viewed(GraphBuilder& b, ValueId x, std::vector<std::int64_t> size,
               const char* name) {
  return add_op(b, "aten.view.default",
                {{"", TensorArg{0}}, {"", std::move(size)}}, {x}, name);
}

// The graph has an embedding, a rotation by positions, and a feed-forward pair
// next to a residual stream.
Graph decoder(std::int64_t batch, std::int64_t tokens) {
  constexpr std::int64_t kHidden = 512;
  GraphBuilder b("decoder", standard_library());
  const std::string t = std::to_string(tokens);
  const ValueId ids =
      add_input(b, InputKind::kUser, "ids",
                ("i64[" + std::to_string(batch) + "," + t + "]").c_str());
  // Three inputs begin with the tokens, one with the batch.
  add_input(b, InputKind::kUser, "positions", ("i64[" + t + "]").c_str());
  const ValueId cos =
      add_input(b, InputKind::kUser, "cos", ("bf16[" + t + ",512]").c_str());
  const ValueId sin =
      add_input(b, InputKind::kUser, "sin", ("bf16[" + t + ",512]").c_str());
  const ValueId table =
      add_input(b, InputKind::kParameter, "table", "bf16[1024,512]");
  const ValueId scale =
      add_input(b, InputKind::kParameter, "scale", "bf16[512]");
  const ValueId up =
      add_input(b, InputKind::kParameter, "up", "bf16[512,2048]");
  const ValueId down =
      add_input(b, InputKind::kParameter, "down", "bf16[2048,512]");
  const ValueId embedded = add_op(b, "aten.embedding.default", kTwoOperands,
                                  {table, ids}, "embedded");
  const ValueId turned =
      add_op(b, "aten.mul.Tensor", kTwoOperands, {embedded, cos}, "turned");
  const ValueId x =
      add_op(b, "aten.add.Tensor", kTwoOperands, {turned, sin}, "x");
  const ValueId normed =
      add_op(b, "aten.mul.Tensor", kTwoOperands, {x, scale}, "normed");
  const ValueId rows = viewed(b, normed, {batch * tokens, kHidden}, "rows");
  const ValueId h = mm(b, rows, up, "h");
  const ValueId a =
      add_op(b, "aten.relu.default", {{"", TensorArg{0}}}, {h}, "a");
  const ValueId y = mm(b, a, down, "y");
  const ValueId back = viewed(b, y, {batch, tokens, kHidden}, "back");
  const ValueId out =
      add_op(b, "aten.add.Tensor", kTwoOperands, {x, back}, "out");
  b.add_output({.value = out});
  return value_of(std::move(b).build());
}

Plan planned(const Graph& graph, const char* mesh, const char* recipe = "",
             std::initializer_list<const char*> pins = {}) {
  PlanOptions options;
  if (*recipe != 0) options.recipe = value_of(Recipe::parse(recipe));
  for (const char* pin : pins) {
    options.pins.push_back(value_of(Pin::parse(pin)));
  }
  return value_of(make_plan(graph, value_of(DeviceMesh::parse(mesh)),
                            default_topology(), standard_library(), options));
}

std::int64_t share(const Plan& plan, RoleUse use) {
  for (const PlanRole& role : plan.roles) {
    if (role.use == use) return role.permille;
  }
  return 0;
}

TEST_CASE(
    "positions do not outvote the ids: the batch is what matmuls run by") {
  const Plan plan = planned(decoder(4, 2048), "tp=2");
  CHECK(plan.work.samples == 4);
  CHECK(plan.work.tokens == 4 * 2048);
}

TEST_CASE("the rows of a batch of 1 are its tokens") {
  const Graph graph = decoder(1, 8192);
  const Plan data = planned(graph, "cp=8", "fsdp=cp");
  CHECK(data.work.samples == 1);
  CHECK(data.work.tokens == 8192);
  CHECK(share(data, RoleUse::kTokens) == 1000);
  CHECK(share(data, RoleUse::kTensor) == 0);
  CHECK(share(data, RoleUse::kBetweenTokens) > 900);
  for (const PlannedValue& value : data.values) {
    if (value.name == "ids") CHECK(to_string(value.tensor.layout) == "S(1)");
  }
  const Plan tensor = planned(graph, "tp=8", "megatron=tp");
  CHECK(share(tensor, RoleUse::kTensor) == 1000);
  CHECK(share(tensor, RoleUse::kBetweenTokens) == 0);
  const Plan sequence = planned(graph, "tp=8", "megatron-sp=tp");
  CHECK(share(sequence, RoleUse::kTensor) == 1000);
  // All but the activation between the two matmuls of the pair.
  CHECK(share(sequence, RoleUse::kBetweenTokens) > 250);
  CHECK(share(sequence, RoleUse::kBetweenTensor) < 750);
}

TEST_CASE("a batch of 1 is not the size of another input") {
  CHECK(planned(decoder(1, 1), "2").work.samples == 1);
  CHECK(planned(test::mlp(standard_library()), "2").work.samples == 64);
}

// Tables are read in bags of 26 rows a sample.
TEST_CASE("the indices of a bag are no tokens") {
  GraphBuilder b("recommender", standard_library());
  const ValueId ids = add_input(b, InputKind::kUser, "ids", "i64[512,26]");
  const ValueId table =
      add_input(b, InputKind::kParameter, "table", "f32[1000,16]");
  const ValueId top = add_input(b, InputKind::kParameter, "top", "f32[416,64]");
  const ValueId embedded = add_op(b, "aten.embedding.default", kTwoOperands,
                                  {table, ids}, "embedded");
  b.add_output(
      {.value = mm(b, viewed(b, embedded, {512, 416}, "flat"), top, "out")});
  const Plan plan = planned(value_of(std::move(b).build()), "2");
  CHECK(plan.work.samples == 512);
  CHECK(plan.work.tokens == 0);
}

TEST_CASE("rows that are sorted by expert are data, whatever sorted them") {
  GraphBuilder b("grouped", standard_library());
  const ValueId x = add_input(b, InputKind::kUser, "x", "bf16[64,32]");
  const ValueId ends = add_input(b, InputKind::kUser, "ends", "i32[4]");
  const ValueId w = add_input(b, InputKind::kParameter, "w", "bf16[4,32,48]");
  const ValueId order =
      add_op(b, "aten.arange.default",
             {{"", std::int64_t{64}}, {"dtype", DType::kI64}}, {}, "order");
  const ValueId sorted =
      add_op(b, "aten.index.Tensor",
             {{"", TensorArg{0}}, {"indices", std::vector<TensorArg>{{1}}}},
             {x, order}, "sorted");
  const ValueId out =
      add_op(b, "aten._grouped_mm.default",
             {{"", TensorArg{0}}, {"", TensorArg{1}}, {"offs", TensorArg{2}}},
             {sorted, w, ends}, "out");
  b.add_output({.value = out});
  const Plan plan = planned(value_of(std::move(b).build()), "dp=2", "",
                            {"w=R", "sorted=S(0)", "out=S(0)"});
  CHECK(share(plan, RoleUse::kBatch) == 1000);
  CHECK(share(plan, RoleUse::kTensor) == 0);
}

double flops(const Graph& graph) {
  return model_flops(value_of(
      PlanProblem::create(graph, value_of(DeviceMesh::parse("1")),
                          default_topology(), standard_library(), {})));
}

// Training costs 6 FLOPs for each active parameter and token, and three times
// the forward half of causal attention.
TEST_CASE("MFU counts 6 FLOPs for each parameter and token, and attention") {
  const Graph graph = value_of(load_graph(
      "examples/graphs/llama3_8b_train.json.gz", standard_library()));
  double parameters = 0;
  double tokens = 0;
  for (const GraphInput& input : graph.inputs()) {
    const Value& value = graph.value(input.value);
    const auto numel = static_cast<double>(value.meta.numel());
    const bool is_table =
        value.display_name().find("embed_tokens") != std::string::npos;
    if (input.kind == InputKind::kParameter && value.meta.rank() == 2 &&
        !is_table) {
      parameters += numel;
    }
    if (value.display_name() == "input_ids") tokens = numel;
  }
  REQUIRE(tokens > 0);
  double attention = 0;
  for (const Node& node : graph.nodes()) {
    if (node.phase != Phase::kForward ||
        node.op_name().find("attention") == std::string::npos) {
      continue;
    }
    const TensorMeta& query = graph.value(node.inputs[0]).meta;
    attention += 2 * static_cast<double>(query.numel()) *
                 static_cast<double>(query.size(2));
  }
  REQUIRE(attention > 0);
  const double expected = 6 * parameters * tokens + 3 * attention;
  CHECK(flops(graph) == doctest::Approx(expected).epsilon(0.001));
}

// Each of 64 tokens is sent to 2 of 4 experts, which have room for 40 each.
TEST_CASE("MFU counts no padding of experts and no one-hot matmuls") {
  GraphBuilder b("gshard", standard_library());
  const ValueId x = add_input(b, InputKind::kUser, "x", "f32[64,32]");
  const ValueId routes =
      add_input(b, InputKind::kUser, "routes", "f32[64,160]");
  const ValueId gate = add_input(b, InputKind::kParameter, "gate", "f32[32,4]");
  const ValueId w = add_input(b, InputKind::kParameter, "w", "f32[4,32,48]");
  const ValueId scores = mm(b, x, gate, "scores");
  const std::vector<ValueId> best = value_of(
      b.add_op("aten.topk.default",
               {{"", TensorArg{0}}, {"k", std::int64_t{2}}}, {scores}, "best"));
  b.add_output({.value = best[0]});
  const ValueId turned =
      add_op(b, "aten.permute.default",
             {{"", TensorArg{0}}, {"", std::vector<std::int64_t>{1, 0}}},
             {routes}, "turned");
  const ValueId sent =
      viewed(b, mm(b, turned, x, "dispatch"), {4, 40, 32}, "sent");
  const ValueId worked =
      add_op(b, "aten.bmm.default", kTwoOperands, {sent, w}, "worked");
  b.add_output({.value = mm(b, routes, viewed(b, worked, {160, 48}, "flat"),
                            "combine")});
  const Graph graph = value_of(std::move(b).build());
  const double gates = 2 * 64 * 32 * 4;
  const double experts = 2.0 * (64 * 2) * 32 * 48;
  CHECK(flops(graph) == gates + experts);
}

}  // namespace
}  // namespace shardprop
