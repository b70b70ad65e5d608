// Plans of attention whose queries, keys and values come from one weight. Each
// of the three pieces is sharded by heads.
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
namespace {

using testing::value_of;

constexpr std::int64_t kBatch = 8;
constexpr std::int64_t kSequence = 1024;
constexpr std::int64_t kHeads = 16;
constexpr std::int64_t kWidth = 1024;

// Attention and its output projection, with one weight for queries, keys and
// values or with three.
Graph attention(bool fused) {
  const OpLibrary& library = testing::standard_library();
  GraphBuilder b(fused ? "fused" : "separate", library);
  const auto view = [&](ValueId of, std::vector<std::int64_t> size,
                        const std::string& name) {
    return test::add_view(b, of, std::move(size), name);
  };
  const auto mm = [&](ValueId rows, ValueId weight, const std::string& name) {
    return test::add_mm(b, rows, weight, name);
  };
  const auto heads_first = [&](ValueId of, const std::string& name) {
    const ValueId heads =
        view(of, {kBatch, kSequence, kHeads, kWidth / kHeads}, name + "_heads");
    return test::add_op(
        b, "aten.permute.default",
        {{"", TensorArg{0}}, {"", std::vector<std::int64_t>{0, 2, 1, 3}}},
        {heads}, name.c_str());
  };
  const ValueId x =
      test::add_input(b, InputKind::kUser, "x", "bf16[8192,1024]");
  std::vector<ValueId> projected;
  if (fused) {
    const ValueId w =
        test::add_input(b, InputKind::kParameter, "w", "bf16[1024,3072]");
    const ValueId all =
        view(mm(x, w, "qkv_rows"), {kBatch, kSequence, 3 * kWidth}, "qkv");
    projected = value_of(
        b.add_op("aten.split_with_sizes.default",
                 {{"", TensorArg{0}},
                  {"", std::vector<std::int64_t>{kWidth, kWidth, kWidth}},
                  {"", std::int64_t{2}}},
                 {all}, "pieces"));
  } else {
    for (const char* name : {"wq", "wk", "wv"}) {
      const ValueId w =
          test::add_input(b, InputKind::kParameter, name, "bf16[1024,1024]");
      projected.push_back(view(mm(x, w, std::string(name) + "_rows"),
                               {kBatch, kSequence, kWidth},
                               std::string(name) + "_out"));
    }
  }
  const ValueId wo =
      test::add_input(b, InputKind::kParameter, "wo", "bf16[1024,1024]");
  const ValueId attended = test::add_op(
      b, "aten.scaled_dot_product_attention.default",
      {{"", TensorArg{0}}, {"", TensorArg{1}}, {"", TensorArg{2}}},
      {heads_first(projected[0], "q"), heads_first(projected[1], "k"),
       heads_first(projected[2], "v")},
      "attended");
  const ValueId back = test::add_op(
      b, "aten.permute.default",
      {{"", TensorArg{0}}, {"", std::vector<std::int64_t>{0, 2, 1, 3}}},
      {attended}, "back");
  const ValueId rows = test::add_op(
      b, "aten.reshape.default",
      {{"", TensorArg{0}},
       {"", std::vector<std::int64_t>{kBatch * kSequence, kWidth}}},
      {back}, "rows");
  b.add_output({.value = mm(rows, wo, "y")});
  return value_of(std::move(b).build());
}

Plan followed(const Graph& graph, const char* mesh, const char* recipe) {
  PlanOptions options;
  options.gap = 0;
  options.recipe = value_of(Recipe::parse(recipe));
  Plan plan = value_of(make_plan(graph, value_of(DeviceMesh::parse(mesh)),
                                 default_topology(),
                                 testing::standard_library(), options));
  test::check_plan(plan);
  return plan;
}

std::string stored_as(const Plan& plan, const std::string& value) {
  const auto found = std::find_if(
      plan.values.begin(), plan.values.end(),
      [&](const PlannedValue& planned) { return planned.name == value; });
  REQUIRE(found != plan.values.end());
  return to_string(found->tensor.layout);
}

TEST_CASE("tensor parallelism shards a fused projection by heads") {
  const Graph fused = attention(true);
  const Graph separate = attention(false);
  const Plan one = followed(fused, "tp=4", "megatron=tp");
  const Plan three = followed(separate, "tp=4", "megatron=tp");
  CHECK(stored_as(one, "net.w") == "SS(1,3)");
  CHECK(stored_as(three, "net.wq") == "S(1)");
  // Both reduce the same result and move nothing else.
  CHECK(one.summary.communication_nanoseconds ==
        three.summary.communication_nanoseconds);
  REQUIRE(one.objective_nanoseconds);
  REQUIRE(three.objective_nanoseconds);
  CHECK(static_cast<double>(*one.objective_nanoseconds) <=
        1.01 * static_cast<double>(*three.objective_nanoseconds));
  CHECK(one.demanded_shardings.split_operators > 0);
  CHECK(three.demanded_shardings.split_operators == 0);
  const Plan both = followed(fused, "dp=2,tp=4", "ddp=dp,megatron=tp");
  CHECK(stored_as(both, "net.w") == "R,SS(1,3)");
}

TEST_CASE("pieces stay together if ranks cannot share their heads") {
  // 32 ranks divide the columns of each piece, but not its 16 heads.
  const Graph fused = attention(true);
  CHECK(stored_as(followed(fused, "tp=16", "megatron=tp"), "net.w") ==
        "SS(1,3)");
  CHECK(stored_as(followed(fused, "tp=32", "megatron=tp"), "net.w") == "R");
}

}  // namespace
}  // namespace shardprop
