// Tests the local program of each rank.
#include <shardprop/strategy/local_program.h>

#include <shardprop/strategy/local_context.h>

#include "strategy/applied.h"
#include "strategy/program_words.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace shardprop {
namespace {

using testing::applied;
using testing::applied_to;
using testing::Strategies;

using Ints = std::vector<std::int64_t>;
using Rows = std::vector<std::vector<std::int64_t>>;

using testing::Messages;
using testing::messages_of;
using testing::steps_of;

const LocalOp::Value* find_arg(const LocalOp& op, std::string_view name) {
  for (const auto& [key, value] : op.args) {
    if (key == name) return &value;
  }
  return nullptr;
}

Rows by_rank(const RankArgument& argument) {
  Rows rows;
  for (std::int64_t i = 0; i < argument.mesh().size(); ++i) {
    rows.push_back(argument.at(argument.mesh().coordinate_at_index(i)));
  }
  return rows;
}

TEST_CASE("a view passes each rank its own shape") {
  const Strategies view(
      applied("aten.view.default", {"f32[4,6,8]"}, {{"size", Ints{24, 8}}}),
      "2");
  const auto arguments = rank_arguments(view.context("S(0)->S(0)"));
  REQUIRE(arguments.size() == 1);
  CHECK(arguments[0].name() == "size");
  CHECK(arguments[0].is_list());
  CHECK(by_rank(arguments[0]) == Rows{{12, 8}, {12, 8}});
  CHECK(rank_arguments(view.context("R->R")).empty());
  CHECK(rank_arguments(view.context("P(sum)->P(sum)")).empty());
}

TEST_CASE("uneven shards have shapes of their own") {
  const Strategies expand(
      applied("aten.expand.default", {"f32[5,1]"}, {{"size", Ints{5, 7}}}),
      "2");
  const auto arguments = rank_arguments(expand.context("S(0)->S(0)"));
  REQUIRE(arguments.size() == 1);
  CHECK(by_rank(arguments[0]) == Rows{{3, 7}, {2, 7}});
}

TEST_CASE("an argument on 100,000 ranks is a formula") {
  const Strategies view(applied("aten.view.default", {"f32[100000,6,8]"},
                                {{"size", Ints{600000, 8}}}),
                        "10,100,100");
  const auto arguments =
      rank_arguments(view.context("[R,S(0),S(0)]->[R,S(0),S(0)]"));
  REQUIRE(arguments.size() == 1);
  CHECK(arguments[0].mesh_dims() == DimIndices{1, 2});
  CHECK(arguments[0].at({9, 99, 99}) == Ints{60, 8});
}

TEST_CASE("the operator alone is a program of one step") {
  const Strategies mm(applied("aten.mm.default", {"f32[16,8]", "f32[8,4]"}),
                      "2");
  const LocalContext context = mm.context("S(1),S(0)->P(sum)");
  CHECK_FALSE(needs_program(context));
  const LocalProgram program = local_program(context);
  REQUIRE(program.steps.size() == 1);
  const auto& op = std::get<LocalOp>(program.steps[0]);
  CHECK(op.name == "aten.mm.default");
  CHECK(std::get<LocalRef>(*find_arg(op, "mat2")) == LocalRef{-1, 1});
  CHECK(program.outputs == std::vector<LocalRef>{{0, 0}});
}

TEST_CASE("a shard of one row is not squeezed away") {
  const Strategies squeeze(
      applied("aten.squeeze.dims", {"f32[4,1,6]"}, {{"dim", Ints{0, 1}}}), "4");
  CHECK_FALSE(needs_program(squeeze.context("S(2)->S(1)")));
  const LocalProgram program = local_program(squeeze.context("S(0)->S(0)"));
  const auto& op = std::get<LocalOp>(program.steps.at(0));
  CHECK(std::get<Argument>(*find_arg(op, "dim")) == Argument(Ints{1}));
}

TEST_CASE("an embedding over sharded rows serves the rows it has") {
  const Strategies embedding(
      applied("aten.embedding.default", {"f32[30,8]", "i64[4,6]"}), "4");
  CHECK_FALSE(needs_program(embedding.context("S(1),R->S(2)")));
  const LocalContext context = embedding.context("S(0),R->P(sum)");
  REQUIRE(needs_program(context));
  const LocalProgram program = local_program(context);
  CHECK(steps_of(program) ==
        std::vector<std::string>{
            "aten.sub.Scalar", "aten.lt.Scalar", "aten.ge.Scalar",
            "aten.bitwise_or.Tensor", "aten.masked_fill.Scalar",
            "aten.embedding.default", "aten.unsqueeze.default",
            "aten.masked_fill.Scalar"});
  // 30 rows over 4 ranks: 8, 8, 8, 6.
  const auto& shift = std::get<LocalOp>(program.steps[0]);
  const auto& first = std::get<RankScalar>(*find_arg(shift, "other"));
  const auto& below = std::get<LocalOp>(program.steps[2]);
  const auto& count = std::get<RankScalar>(*find_arg(below, "other"));
  Ints offsets;
  Ints sizes;
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    const Coordinate at = context.mesh.coordinate_at_index(rank);
    offsets.push_back(evaluate(first, context, at));
    sizes.push_back(evaluate(count, context, at));
  }
  CHECK(offsets == Ints{0, 8, 16, 24});
  CHECK(sizes == Ints{8, 8, 8, 6});
}

TEST_CASE("rows that some rank would lack altogether stay unsharded") {
  const Strategies embedding(
      applied("aten.embedding.default", {"f32[5,8]", "i64[6]"}), "4");
  CHECK_FALSE(embedding.has("S(0),R->P(sum)"));
}

TEST_CASE("a softmax over its own dim exchanges a maximum and a sum") {
  const Strategies softmax(
      applied("aten._softmax.default", {"f32[4,30]"},
              {{"dim", std::int64_t{-1}}, {"half_to_float", false}}),
      "2,3");
  CHECK_FALSE(needs_program(softmax.context("[S(0),R]->[S(0),R]")));
  const LocalContext context = softmax.context("[S(0),S(1)]->[S(0),S(1)]");
  const LocalProgram program = local_program(context);
  CHECK(steps_of(program) ==
        std::vector<std::string>{"aten.amax.default", "all_reduce(max)",
                                 "aten.sub.Tensor", "aten.exp.default",
                                 "aten.sum.dim_IntList", "all_reduce(sum)",
                                 "aten.div.Tensor"});
  const auto& reduce = std::get<LocalCollective>(program.steps[1]);
  CHECK(reduce.mesh_dims == DimIndices{1});
  CHECK(reduce.bytes == 2 * 4);  // a number per row
}

TEST_CASE("a cross entropy over sharded classes exchanges numbers per sample") {
  const Strategies loss(
      applied("aten.cross_entropy_loss.default", {"f32[4,30]", "i64[4]"}, {}),
      "2,3");
  const LocalContext context = loss.context("[S(0),S(1)],[S(0),R]->[R,R]");
  // The maximum and the sum of each row; of a mean, its two sums.
  CHECK(messages_of(context) ==
        Messages{"all_reduce of 8 bytes", "all_reduce of 8 bytes",
                 "all_reduce of 4 bytes", "all_reduce of 8 bytes"});
  // A rank compares the targets with the classes that it holds.
  const LocalProgram program = local_program(context);
  const auto at = std::find_if(
      program.steps.begin(), program.steps.end(), [](const LocalStep& step) {
        const auto* op = std::get_if<LocalOp>(&step);
        return op != nullptr && op->name == "aten.arange.default";
      });
  REQUIRE(at != program.steps.end());
  const LocalOp::Value* end = find_arg(std::get<LocalOp>(*at), "end");
  REQUIRE(end != nullptr);
  CHECK(evaluate(std::get<RankScalar>(*end), context, {1, 2}) == 10);
}

TEST_CASE("the loss of a target is that of the rank that holds its class") {
  const auto loss = [](std::int64_t reduction) {
    return Strategies(
        applied("aten.nll_loss_forward.default", {"f32[4,30]", "i64[4]"},
                {{"weight", NoneArg{}},
                 {"reduction", reduction},
                 {"ignore_index", std::int64_t{-100}}}),
        "2,3");
  };
  CHECK(
      messages_of(loss(0).context("[S(0),S(1)],[S(0),R]->[S(0),P(sum)],[R,R]"))
          .empty());
  CHECK(
      messages_of(loss(2).context(
                      "[S(0),S(1)],[S(0),R]->[P(sum),P(sum)],[P(sum),P(sum)]"))
          .empty());
  CHECK(messages_of(loss(1).context("[S(0),S(1)],[S(0),R]->[R,R],[R,R]")) ==
        Messages{"all_reduce of 8 bytes"});
}

TEST_CASE("rows are written by the rank that holds them") {
  const auto written = [](std::string_view name,
                          const std::vector<std::string_view>& tensors) {
    return applied_to(name,
                      {{"self", TensorArg{0}},
                       {"dim", std::int64_t{0}},
                       {"index", TensorArg{1}},
                       {"source", TensorArg{2}}},
                      tensors);
  };
  const Strategies copy(
      written("aten.index_copy.default", {"f32[6,4]", "i64[3]", "f32[3,4]"}),
      "2");
  CHECK(needs_program(copy.context("S(0),R,R->S(0)")));
  const Strategies add(
      written("aten.index_add.default", {"f32[6,4]", "i64[4]", "f32[4,4]"}),
      "2,2");
  // The rows of each rank's source, to the rows that it holds: a term of them.
  CHECK(needs_program(
      add.context("[S(0),P(sum)],[R,S(0)],[R,S(0)]->[S(0),P(sum)]")));
  CHECK_FALSE(
      needs_program(add.context("[R,P(sum)],[R,S(0)],[R,S(0)]->[R,P(sum)]")));
}

TEST_CASE("a cumsum over its own dim gathers totals and where they stand") {
  const Strategies cumsum(
      applied("aten.cumsum.default", {"f32[4,30]"}, {{"dim", std::int64_t{1}}}),
      "2,3");
  const LocalContext context = cumsum.context("[S(0),S(1)]->[S(0),S(1)]");
  const LocalProgram program = local_program(context);
  const std::vector<std::string> steps = steps_of(program);
  REQUIRE(std::count(steps.begin(), steps.end(), "all_gather") == 2);
  for (const LocalStep& step : program.steps) {
    const auto* gather = std::get_if<LocalCollective>(&step);
    if (gather != nullptr) CHECK(gather->mesh_dims == DimIndices{1});
  }
  const auto at = std::find(steps.begin(), steps.end(), "all_gather");
  const auto& totals = std::get<LocalCollective>(
      program.steps[static_cast<std::size_t>(at - steps.begin())]);
  CHECK(totals.bytes == 3 * 2 * 4);  // of three ranks, a number per row
}

TEST_CASE(
    "totals are as large as their rows; where a shard starts is a number") {
  const auto cumsum = [](const char* mesh) {
    return Strategies(applied("aten.cumsum.default", {"f32[5,6]"},
                              {{"dim", std::int64_t{1}}}),
                      mesh);
  };
  // The busiest rank has three rows of five.
  CHECK(messages_of(cumsum("2,2").context("[S(0),S(1)]->[S(0),S(1)]")) ==
        Messages{"all_gather of 24 bytes", "all_gather of 16 bytes"});
  CHECK(messages_of(
            cumsum("2,2,2").context("[S(0),S(1),S(1)]->[S(0),S(1),S(1)]")) ==
        Messages{"all_gather of 48 bytes", "all_gather of 32 bytes"});
  CHECK(messages_of(
            cumsum("2,2,2").context("[S(0),S(0),S(1)]->[S(0),S(0),S(1)]")) ==
        Messages{"all_gather of 16 bytes", "all_gather of 16 bytes"});
  CHECK(messages_of(cumsum("3,2").context("[S(1),S(0)]->[S(1),S(0)]")) ==
        Messages{"all_gather of 36 bytes", "all_gather of 24 bytes"});
}

TEST_CASE("every rank gives its best k of its own rows") {
  const Strategies topk(
      applied("aten.topk.default", {"f32[5,8]"}, {{"k", std::int64_t{2}}}),
      "2,2");
  CHECK(messages_of(topk.context("[S(0),S(1)]->[S(0),R],[S(0),R]")) ==
        Messages{"all_gather of 48 bytes", "all_gather of 96 bytes"});
}

TEST_CASE("an extremum and its place are exchanged row by row") {
  const Strategies argmax(
      applied("aten.argmax.default", {"f32[5,6]"}, {{"dim", std::int64_t{1}}}),
      "2,2");
  CHECK(messages_of(argmax.context("[S(0),S(1)]->[S(0),R]")) ==
        Messages{"all_reduce of 12 bytes", "all_reduce of 24 bytes"});
  const Strategies max(
      applied("aten.max.dim", {"bf16[5,6,3]"}, {{"dim", std::int64_t{0}}}),
      "2,2,2");
  CHECK(messages_of(
            max.context("[S(0),S(1),S(2)]->[R,S(0),S(1)],[R,S(0),S(1)]")) ==
        Messages{"all_reduce of 12 bytes", "all_reduce of 48 bytes"});
}

TEST_CASE("blocks of keys exchange their log-sum-exp, then what they make") {
  const Strategies attention(
      applied("aten._scaled_dot_product_flash_attention_for_cpu.default",
              {"f32[2,4,5,8]", "f32[2,2,10,8]", "f32[2,2,10,8]"}),
      "2,2");
  CHECK(messages_of(attention.context(
            "[S(2),R],[R,S(2)],[R,S(2)]->[S(2),R],[S(2),R]")) ==
        Messages{"all_reduce of 96 bytes", "all_reduce of 96 bytes",
                 "all_reduce of 768 bytes"});
  CHECK(messages_of(attention.context(
            "[S(1),R],[S(1),S(2)],[S(1),S(2)]->[S(1),R],[S(1),R]")) ==
        Messages{"all_reduce of 80 bytes", "all_reduce of 80 bytes",
                 "all_reduce of 640 bytes"});
}

TEST_CASE("the best k of every rank's best k, where each rank has k") {
  const auto topk = [](const char* shape) {
    return Strategies(
        applied("aten.topk.default", {shape}, {{"k", std::int64_t{4}}}), "2");
  };
  CHECK(topk("f32[8]").has("S(0)->R,R"));
  CHECK_FALSE(topk("f32[7]").has("S(0)->R,R"));
}

TEST_CASE("attention over blocks of keys exchanges sums, not keys") {
  const char* name = "aten._scaled_dot_product_flash_attention_for_cpu.default";
  const Strategies attention(
      applied(name, {"f32[2,4,6,8]", "f32[2,4,10,8]", "f32[2,4,10,8]"}), "2");
  CHECK(steps_of(local_program(attention.context("R,S(2),S(2)->R,R"))).size() >
        3);
  const Strategies causal(
      applied(name, {"f32[2,4,6,8]", "f32[2,4,10,8]", "f32[2,4,10,8]"},
              {{"is_causal", true}}),
      "2");
  CHECK_FALSE(causal.has("R,S(2),S(2)->R,R"));
}

TEST_CASE("a rank's rows of a causal mask are two calls") {
  const char* name = "aten._scaled_dot_product_flash_attention_for_cpu.default";
  const auto rows = [&](const char* queries, const char* keys) {
    return Strategies(
        applied(name, {queries, keys, keys}, {{"is_causal", true}}), "2");
  };
  const Strategies square = rows("f32[2,4,6,8]", "f32[2,4,6,8]");
  const LocalContext context = square.context("S(2),R,R->S(2),S(2)");
  const LocalProgram program = local_program(context);
  const auto names = steps_of(program);
  CHECK(std::count(names.begin(), names.end(), name) == 2);
  // A rank reads the keys up to its first row, inclusive.
  const auto& keys = std::get<LocalOp>(program.steps.front());
  const auto& end = std::get<RankScalar>(*find_arg(keys, "end"));
  CHECK(evaluate(end, context, context.mesh.coordinate_at_index(0)) == 1);
  CHECK(evaluate(end, context, context.mesh.coordinate_at_index(1)) == 4);
  // A rank with a single row has no rows for the second call, and a mask that
  // is not square has no causal corner there.
  CHECK_FALSE(rows("f32[2,4,3,8]", "f32[2,4,3,8]").has("S(2),R,R->S(2),S(2)"));
  CHECK_FALSE(rows("f32[2,4,6,8]", "f32[2,4,10,8]").has("S(2),R,R->S(2),S(2)"));
}

TEST_CASE("composite attention cuts a causal mask's rows by a mask") {
  const char* name = "aten.scaled_dot_product_attention.default";
  const Strategies causal(
      applied(name, {"f32[2,4,6,8]", "f32[2,4,10,8]", "f32[2,4,10,8]"},
              {{"is_causal", true}}),
      "2");
  const auto names = steps_of(local_program(causal.context("S(2),R,R->S(2)")));
  CHECK(names.back() == name);
  CHECK(messages_of(causal.context("S(2),R,R->S(2)")).empty());
  CHECK_FALSE(causal.has("R,S(2),S(2)->R"));
}

TEST_CASE("composite attention of few queries takes blocks of keys") {
  const auto over = [&](const char* queries) {
    const char* keys = "bf16[2,2,10,8]";
    return Strategies(applied("aten.scaled_dot_product_attention.default",
                              {queries, keys, keys}, {{"enable_gqa", true}}),
                      "2");
  };
  // A maximum, a sum and an output of each query.
  CHECK(messages_of(over("bf16[2,4,3,8]").context("R,S(2),S(2)->R")) ==
        Messages{"all_reduce of 96 bytes", "all_reduce of 96 bytes",
                 "all_reduce of 768 bytes"});
  CHECK_FALSE(over("bf16[2,4,9,8]").has("R,S(2),S(2)->R"));
}

TEST_CASE("attention of every kernel has rows and blocks of keys") {
  const char* rows = "f32[2,4,64,8]";
  for (const char* kernel : {"efficient", "cudnn", "fused"}) {
    std::string name = "aten._scaled_dot_product_" + std::string(kernel);
    name += kernel == std::string("fused") ? "_attention_overrideable.default"
                                           : "_attention.default";
    std::vector<GivenArgument> given = {{"query", TensorArg{0}},
                                        {"key", TensorArg{1}},
                                        {"value", TensorArg{2}}};
    if (kernel != std::string("fused")) {
      given.push_back({"attn_bias", NoneArg{}});
      given.push_back({"compute_log_sumexp", true});
    }
    const Strategies plain(testing::applied_to(name, given, {rows, rows, rows}),
                           "2");
    CHECK(plain.has("S(2),R,R->S(2),S(2),R,R"));
    CHECK(plain.has("R,S(2),S(2)->R,R,R,R"));
    given.push_back({"is_causal", true});
    const Strategies causal(
        testing::applied_to(name, given, {rows, rows, rows}), "2");
    const auto names =
        steps_of(local_program(causal.context("S(2),R,R->S(2),S(2),R,R")));
    CHECK(std::count(names.begin(), names.end(), name) == 2);
    CHECK_FALSE(causal.has("R,S(2),S(2)->R,R,R,R"));
  }
}

TEST_CASE("sorted tokens are cut, and their experts") {
  const Strategies grouped(applied("aten._grouped_mm.default",
                                   {"bf16[12,16]", "bf16[4,16,8]", "i32[4]"}),
                           "2,2");
  // Ends among the rank's own tokens are all that its tokens need.
  CHECK(steps_of(
            local_program(grouped.context("[S(0),R],[R,R],[R,R]->[S(0),R]"))) ==
        std::vector<std::string>{"aten.sub.Scalar", "aten.clamp.default",
                                 "aten._grouped_mm.default"});
  // Tokens of the rank's experts come first, and go back to their places.
  for (const char* both : {"[R,R],[R,S(0)],[R,R]->[R,P(sum)]",
                           "[S(0),R],[R,S(0)],[R,R]->[S(0),P(sum)]"}) {
    const auto names = steps_of(local_program(grouped.context(both)));
    CHECK(std::count(names.begin(), names.end(), "aten._grouped_mm.default") ==
          1);
    CHECK(names.back() == "aten.index_select.default");
  }
  // Gradients of the experts sum over tokens.
  const Strategies gradient(applied("aten._grouped_mm.default",
                                    {"bf16[16,32]", "bf16[32,16]", "i32[4]"}),
                            "2");
  CHECK(gradient.has("S(1),S(0),R->P(sum)"));
}

TEST_CASE("a sum that a step takes twice is reduced once") {
  const Strategies cov(
      applied_to("aten.cov.default",
                 {{"", TensorArg{0}}, {"fweights", TensorArg{1}}},
                 {"f32[8,4]", "i64[4]"}),
      "2");
  const LocalContext context = cov.context("S(1),S(0)->R");
  // The ranks reduce sums of the weights, of rows, and of products of rows.
  CHECK(messages_of(context) == Messages{"all_reduce of 4 bytes",
                                         "all_reduce of 32 bytes",
                                         "all_reduce of 256 bytes"});
  const LocalProgram program = local_program(context);
  const auto is_maximum = [](const LocalStep& step) {
    const auto* op = std::get_if<LocalOp>(&step);
    return op != nullptr && op->name == "aten.maximum.default";
  };
  const auto at =
      std::find_if(program.steps.begin(), program.steps.end(), is_maximum);
  REQUIRE(at != program.steps.end());
  const LocalRef products{
      static_cast<std::int32_t>(at - program.steps.begin()) - 1, 0};
  for (const char* name : {"self", "other"}) {
    const LocalOp::Value* value = find_arg(std::get<LocalOp>(*at), name);
    REQUIRE(value != nullptr);
    CHECK(std::get<LocalRef>(*value) == products);
  }
}

TEST_CASE("a mean over unequal shards divides by the full count") {
  const Strategies mean(
      applied("aten.mean.dim", {"f32[5,6]"}, {{"dim", Ints{0}}}), "2");
  CHECK_FALSE(needs_program(mean.context("S(1)->S(0)")));
  const LocalProgram program = local_program(mean.context("S(0)->P(sum)"));
  CHECK(steps_of(program) ==
        std::vector<std::string>{"aten.sum.dim_IntList", "aten.div.Scalar"});
  const auto& divide = std::get<LocalOp>(program.steps[1]);
  CHECK(std::get<double>(std::get<Argument>(*find_arg(divide, "other"))) == 5);
}

TEST_CASE("an arange starts where the rank's elements do") {
  const OpSchema op = testing::applied_to(
      "aten.arange.start_step",
      {{"", std::int64_t{3}}, {"", std::int64_t{17}}, {"", std::int64_t{2}}},
      {});
  const Strategies arange(op, "2");  // 3 5 7 9 | 11 13 15
  const LocalContext context = arange.context("->S(0)");
  const LocalProgram program = local_program(context);
  const auto& add = std::get<LocalOp>(program.steps.back());
  const auto& first = std::get<RankScalar>(*find_arg(add, "other"));
  CHECK(evaluate(first, context, context.mesh.coordinate_at_index(0)) == 3);
  CHECK(evaluate(first, context, context.mesh.coordinate_at_index(1)) == 11);
}

TEST_CASE(
    "an arange in floats is counted whole, of which a rank keeps its own") {
  const OpSchema op = testing::applied_to(
      "aten.arange.start_step", {{"", 0.5}, {"", 4.0}, {"", 0.7}}, {});
  const Strategies arange(op, "2");
  const LocalContext context = arange.context("->S(0)");
  const LocalProgram program = local_program(context);
  CHECK(steps_of(program) ==
        std::vector<std::string>{"aten.arange.start_step",
                                 "aten.arange.default", "aten.add.Scalar",
                                 "aten.index_select.default"});
  const auto& whole = std::get<LocalOp>(program.steps[0]);
  CHECK(std::get<double>(std::get<Argument>(*find_arg(whole, "step"))) == 0.7);
  const auto& add = std::get<LocalOp>(program.steps[2]);
  const auto& first = std::get<RankScalar>(*find_arg(add, "other"));
  CHECK(evaluate(first, context, context.mesh.coordinate_at_index(1)) == 3);
}

TEST_CASE("grouped convolutions split their groups") {
  const Strategies convolution(
      applied("aten.convolution.default", {"f32[4,6,8,8]", "f32[8,3,3,3]"},
              {{"bias", NoneArg{}},
               {"stride", Ints{1, 1}},
               {"padding", Ints{1, 1}},
               {"dilation", Ints{1, 1}},
               {"transposed", false},
               {"output_padding", Ints{0, 0}},
               {"groups", std::int64_t{2}}}),
      "2");
  const auto arguments = rank_arguments(convolution.context("S(1),S(0)->S(1)"));
  REQUIRE(arguments.size() == 1);
  CHECK(arguments[0].name() == "groups");
  CHECK(by_rank(arguments[0]) == Rows{{1}, {1}});
}

TEST_CASE("the points of the busiest rank") {
  const Strategies mm(applied("aten.mm.default", {"f32[5,8]", "f32[8,4]"}),
                      "2");
  CHECK(max_local_points(mm.context("R,R->R")) == 5 * 8 * 4);
  CHECK(max_local_points(mm.context("S(0),R->S(0)")) == 3 * 8 * 4);
}

}  // namespace
}  // namespace shardprop
