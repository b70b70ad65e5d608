// Plans of attention with fewer key heads than ranks.
#include "plan/invariants.h"
#include "plan/small_graphs.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/plan/make_plan.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace shardprop {
namespace few_key_heads {
namespace {

using test::node_of;
using testing::value_of;

constexpr std::int64_t kBatch = 1;
constexpr std::int64_t kSequence = 4096;
constexpr std::int64_t kHeads = 32;
constexpr std::int64_t kSize = 128;
constexpr std::int64_t kWidth = kHeads * kSize;

std::string shape(std::int64_t rows, std::int64_t columns) {
  return "bf16[" + std::to_string(rows) + "," + std::to_string(columns) + "]";
}

// Attention and its projections, with so many key heads.
Graph attention(std::int64_t key_heads) {
  const OpLibrary& library = testing::standard_library();
  GraphBuilder b("grouped", library);
  const auto view = [&](ValueId of, std::vector<std::int64_t> size,
                        const std::string& name) {
    return test::add_view(b, of, std::move(size), name, "aten.reshape.default");
  };
  const auto mm = [&](ValueId rows, ValueId weight, const std::string& name) {
    return test::add_mm(b, rows, weight, name);
  };
  const auto heads_first = [&](ValueId of, const std::string& name) {
    return test::add_op(
        b, "aten.permute.default",
        {{"", TensorArg{0}}, {"", std::vector<std::int64_t>{0, 2, 1, 3}}}, {of},
        name.c_str());
  };
  const ValueId x = test::add_input(b, InputKind::kUser, "x",
                                    shape(kBatch * kSequence, kWidth).c_str());
  const auto projected = [&](const std::string& name, std::int64_t heads) {
    const ValueId w =
        test::add_input(b, InputKind::kParameter, ("w" + name).c_str(),
                        shape(kWidth, heads * kSize).c_str());
    return heads_first(view(mm(x, w, name + "_rows"),
                            {kBatch, kSequence, heads, kSize}, name + "_heads"),
                       name);
  };
  const ValueId q = projected("q", kHeads);
  const ValueId k = projected("k", key_heads);
  const ValueId v = projected("v", key_heads);
  const ValueId wo = test::add_input(b, InputKind::kParameter, "wo",
                                     shape(kWidth, kWidth).c_str());
  const ValueId attended =
      test::add_op(b, "aten.scaled_dot_product_attention.default",
                   {{"query", TensorArg{0}},
                    {"key", TensorArg{1}},
                    {"value", TensorArg{2}},
                    {"attn_mask", NoneArg{}},
                    {"dropout_p", 0.0},
                    {"is_causal", true},
                    {"enable_gqa", true}},
                   {q, k, v}, "attended");
  const ValueId rows =
      view(heads_first(attended, "back"), {kBatch * kSequence, kWidth}, "rows");
  b.add_output({.value = mm(rows, wo, "y")});
  return value_of(std::move(b).build());
}

// Checks that queries are sharded by heads from their projection to the
// attention, and that none of them moves.
void check_queries(std::int64_t key_heads, const char* mesh) {
  CAPTURE(key_heads);
  CAPTURE(mesh);
  const Graph graph = attention(key_heads);
  PlanOptions options;
  options.gap = 0;
  options.recipe = value_of(Recipe::parse("megatron=tp"));
  const Plan plan = value_of(make_plan(graph, value_of(DeviceMesh::parse(mesh)),
                                       default_topology(),
                                       testing::standard_library(), options));
  test::check_plan(plan);
  const PlannedNode& attended = node_of(plan, "attended");
  CHECK(to_string(attended.inputs[0].layout) == "S(1)");
  CHECK(to_string(attended.inputs[1].layout) == "R");
  CHECK(to_string(node_of(plan, "q_rows").outputs[0].tensor.layout) == "S(1)");
  for (const char* reader : {"q", "q_heads", "attended"}) {
    CAPTURE(reader);
    CHECK_FALSE(node_of(plan, reader).inputs[0].copy.has_value());
  }
}

TEST_CASE("no query moves if there are fewer key heads than ranks") {
  for (const char* mesh : {"tp=8", "tp=16"}) {
    for (const std::int64_t key_heads : {2, 4}) check_queries(key_heads, mesh);
  }
}

}  // namespace
}  // namespace few_key_heads
}  // namespace shardprop
