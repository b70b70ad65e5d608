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

using test::node_of;
using testing::value_of;

constexpr std::int64_t kBatch = 8;
constexpr std::int64_t kSequence = 1024;
constexpr std::int64_t kHeads = 16;
constexpr std::int64_t kWidth = 1024;

enum class Projections : std::uint8_t {
  kSeparate,     // three weights
  kSplit,        // one weight, whose results are split
  kSliced,       // one weight, and a slice of its results for each piece
  kSlicedTwice,  // the same, with a second slice for the values
  kSplitWeight,  // one weight, which is split
};

// Attention and its output projection. A feed-forward part with gate and up
// projections in one weight may follow.
Graph attention(Projections projections, std::int64_t key_heads = kHeads,
                bool feeds_forward = false) {
  const OpLibrary& library = testing::standard_library();
  GraphBuilder b("attention", library);
  constexpr std::int64_t kSize = kWidth / kHeads;
  const std::vector<std::int64_t> sizes{kWidth, key_heads * kSize,
                                        key_heads * kSize};
  const std::vector<const char*> names{"q", "k", "v"};
  const auto view = [&](ValueId of, std::vector<std::int64_t> size,
                        const std::string& name) {
    return test::add_view(b, of, std::move(size), name);
  };
  const auto mm = [&](ValueId rows, ValueId weight, const std::string& name) {
    return test::add_mm(b, rows, weight, name);
  };
  const auto split = [&](ValueId of, std::int64_t dim) {
    return value_of(b.add_op("aten.split_with_sizes.default",
                             {{"", TensorArg{0}}, {"", sizes}, {"", dim}}, {of},
                             "pieces"));
  };
  const auto weight = [&](const std::string& name, std::int64_t columns) {
    return test::add_input(
        b, InputKind::kParameter, name.c_str(),
        ("bf16[1024," + std::to_string(columns) + "]").c_str());
  };
  const auto heads_first = [&](ValueId of, std::int64_t columns,
                               const std::string& name) {
    const ValueId heads =
        view(of, {kBatch, kSequence, columns / kSize, kSize}, name + "_heads");
    return test::add_op(
        b, "aten.permute.default",
        {{"", TensorArg{0}}, {"", std::vector<std::int64_t>{0, 2, 1, 3}}},
        {heads}, name.c_str());
  };
  const ValueId x =
      test::add_input(b, InputKind::kUser, "x", "bf16[8192,1024]");
  const std::int64_t columns = sizes[0] + sizes[1] + sizes[2];
  std::vector<ValueId> projected;
  if (projections == Projections::kSplit ||
      projections == Projections::kSliced ||
      projections == Projections::kSlicedTwice) {
    const ValueId all = view(mm(x, weight("w", columns), "qkv_rows"),
                             {kBatch, kSequence, columns}, "qkv");
    if (projections == Projections::kSplit) projected = split(all, 2);
    std::int64_t start = 0;
    const auto slice = [&](std::size_t i, const std::string& name) {
      return test::add_op(b, "aten.slice.Tensor",
                          {{"", TensorArg{0}},
                           {"", std::int64_t{2}},
                           {"", start},
                           {"", start + sizes[i]}},
                          {all}, name.c_str());
    };
    for (std::size_t i = projected.size(); i < 3; ++i) {
      projected.push_back(slice(i, names[i] + std::string("_piece")));
      if (i == 2 && projections == Projections::kSlicedTwice) {
        projected[i] = test::add_op(
            b, "aten.add.Tensor", {{"", TensorArg{0}}, {"", TensorArg{1}}},
            {projected[i], slice(i, "v_again")}, "v_sum");
      }
      start += sizes[i];
    }
  } else {
    std::vector<ValueId> weights;
    if (projections == Projections::kSplitWeight) {
      weights = split(weight("w", columns), 1);
    }
    for (std::size_t i = weights.size(); i < 3; ++i) {
      weights.push_back(weight(std::string("w") + names[i], sizes[i]));
    }
    for (std::size_t i = 0; i < 3; ++i) {
      const std::string name = names[i];
      projected.push_back(view(mm(x, weights[i], name + "_rows"),
                               {kBatch, kSequence, sizes[i]}, name + "_out"));
    }
  }
  for (std::size_t i = 0; i < 3; ++i) {
    projected[i] = heads_first(projected[i], sizes[i], names[i]);
  }
  const ValueId wo = weight("wo", kWidth);
  const ValueId attended =
      test::add_op(b, "aten.scaled_dot_product_attention.default",
                   {{"query", TensorArg{0}},
                    {"key", TensorArg{1}},
                    {"value", TensorArg{2}},
                    {"enable_gqa", key_heads < kHeads}},
                   projected, "attended");
  const ValueId back = test::add_op(
      b, "aten.permute.default",
      {{"", TensorArg{0}}, {"", std::vector<std::int64_t>{0, 2, 1, 3}}},
      {attended}, "back");
  const ValueId rows = test::add_op(
      b, "aten.reshape.default",
      {{"", TensorArg{0}},
       {"", std::vector<std::int64_t>{kBatch * kSequence, kWidth}}},
      {back}, "rows");
  ValueId y = mm(rows, wo, "y");
  if (feeds_forward) {
    const std::vector<ValueId> parts = value_of(
        b.add_op("aten.split.Tensor",
                 {{"", TensorArg{0}}, {"", 4 * kWidth}, {"", std::int64_t{1}}},
                 {mm(y, weight("gate_up", 8 * kWidth), "up_rows")}, "parts"));
    const ValueId gated =
        test::add_op(b, "aten.mul.Tensor",
                     {{"", TensorArg{0}}, {"", TensorArg{1}}}, parts, "gated");
    const ValueId down =
        test::add_input(b, InputKind::kParameter, "down", "bf16[4096,1024]");
    y = mm(gated, down, "fed");
  }
  b.add_output({.value = y});
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

void check_by_heads(Projections projections) {
  const Graph fused = attention(projections);
  const Graph separate = attention(Projections::kSeparate);
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

TEST_CASE("tensor parallelism shards a fused projection by heads") {
  check_by_heads(Projections::kSplit);
}

TEST_CASE("tensor parallelism shards slices of a projection by heads") {
  check_by_heads(Projections::kSliced);
}

TEST_CASE("a piece that is sliced twice is one piece") {
  const Plan plan =
      followed(attention(Projections::kSlicedTwice), "tp=4", "megatron=tp");
  CHECK(stored_as(plan, "net.w") == "SS(1,3)");
}

TEST_CASE("ranks narrow the pieces of a weight that is split unequally") {
  const Plan one =
      followed(attention(Projections::kSplitWeight, 4), "tp=4", "megatron=tp");
  const Plan three =
      followed(attention(Projections::kSeparate, 4), "tp=4", "megatron=tp");
  CHECK(stored_as(one, "net.w") == "R");
  for (const char* rows : {"q_rows", "k_rows", "v_rows"}) {
    CAPTURE(rows);
    CHECK(to_string(node_of(one, rows).inputs[1].layout) == "S(1)");
    CHECK(to_string(node_of(one, rows).outputs[0].tensor.layout) == "S(1)");
  }
  CHECK(one.summary.communication_nanoseconds ==
        three.summary.communication_nanoseconds);
  // Split results have no layout that shards each piece, so they are gathered.
  const Plan split =
      followed(attention(Projections::kSplit, 4), "tp=4", "megatron=tp");
  CHECK(*one.objective_nanoseconds < *split.objective_nanoseconds);
}

TEST_CASE("pieces stay together if ranks cannot share their heads") {
  // 32 ranks divide the columns of each piece, but not its 16 heads.
  const Graph fused = attention(Projections::kSplit);
  CHECK(stored_as(followed(fused, "tp=16", "megatron=tp"), "net.w") ==
        "SS(1,3)");
  CHECK(stored_as(followed(fused, "tp=32", "megatron=tp"), "net.w") == "R");
}

TEST_CASE("heads that ranks cannot share leave other pieces sharded") {
  const Graph layer = attention(Projections::kSplit, kHeads, true);
  const Plan plan = followed(layer, "tp=32", "megatron=tp");
  CHECK(stored_as(plan, "net.w") == "R");
  CHECK(stored_as(plan, "net.gate_up") == "SS(1,2)");
}

}  // namespace
}  // namespace shardprop
