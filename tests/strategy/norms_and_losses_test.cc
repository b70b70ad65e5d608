// Tests the messages of norms, losses and extrema whose dims are sharded.
#include <shardprop/strategy/local_program.h>

#include <shardprop/strategy/local_context.h>

#include "strategy/applied.h"

#include <limits>
#include <string>
#include <variant>
#include <vector>

namespace shardprop {
namespace {

using testing::applied;
using testing::Strategies;

using Ints = std::vector<std::int64_t>;
using Names = std::vector<std::string>;

// The collectives that a strategy runs: "all_reduce(sum) of 8 bytes".
Names exchanged(const Strategies& all, std::string_view strategy) {
  Names out;
  for (const LocalStep& step : local_program(all.context(strategy)).steps) {
    if (const auto* one = std::get_if<LocalCollective>(&step)) {
      out.push_back(std::string(to_string(one->kind)) +
                    (one->op ? "(" + std::string(to_string(*one->op)) + ")"
                             : std::string()) +
                    " of " + std::to_string(one->bytes) + " bytes");
    }
  }
  return out;
}

OpSchema batch_norm(bool training, bool running) {
  std::vector<GivenArgument> given = {
      {"input", TensorArg{0}},    {"weight", TensorArg{1}},
      {"bias", TensorArg{2}},     {"running_mean", NoneArg{}},
      {"running_var", NoneArg{}}, {"training", training},
      {"momentum", 0.1},          {"eps", 1e-5},
      {"cudnn_enabled", true}};
  std::vector<std::string_view> tensors = {"f32[4,6,8]", "f32[6]", "f32[6]"};
  if (running) {
    given[3].value = TensorArg{3};
    given[4].value = TensorArg{4};
    tensors.insert(tensors.end(), {"f32[6]", "f32[6]"});
  }
  return testing::applied_to("aten.batch_norm.default", std::move(given),
                             tensors);
}

TEST_CASE("a plain batch norm is cut over batch, channels and space") {
  const Strategies used(batch_norm(false, true), "2");
  for (const char* cut : {"S(0),R,R,R,R->S(0)", "S(2),R,R,R,R->S(2)",
                          "S(1),S(0),S(0),S(0),S(0)->S(1)"}) {
    CHECK(exchanged(used, cut).empty());
  }
  // In training the ranks exchange a sum by channel, then one of squares.
  const Names sums(2, "all_reduce(sum) of 24 bytes");
  const Strategies made(batch_norm(true, false), "2");
  CHECK(exchanged(made, "S(0),R,R->S(0)") == sums);
  CHECK(exchanged(made, "S(2),R,R->S(2)") == sums);
  CHECK(exchanged(made, "S(1),S(0),S(0)->S(1)").empty());
  // Only an operator that has the whole batch can write the running statistics.
  const Strategies kept(batch_norm(true, true), "2");
  CHECK(kept.has("S(1),S(0),S(0),S(0),S(0)->S(1)"));
  CHECK_FALSE(kept.has("S(0),R,R,R,R->S(0)"));
}

TEST_CASE("a batch norm's gradient exchanges two sums by channel, together") {
  const auto backward = [](std::vector<bool> mask) {
    return applied("aten.native_batch_norm_backward.default",
                   {"f32[4,6,8]", "f32[4,6,8]", "f32[6]", "f32[6]", "f32[6]",
                    "f32[6]", "f32[6]"},
                   {{"train", true}, {"eps", 1e-5}, {"output_mask", mask}});
  };
  CHECK(exchanged(Strategies(backward({true, true, true}), "2"),
                  "S(0),S(0),R,R,R,R,R->S(0),R,R") ==
        Names{"all_reduce(sum) of 48 bytes"});
  // The second of three, where the first is not asked for.
  CHECK(exchanged(Strategies(backward({false, true, false}), "2"),
                  "S(0),S(0),R,R,R,R,R->P(sum)")
            .empty());
  CHECK(exchanged(Strategies(backward({true, false, true}), "2"),
                  "S(2),S(2),R,R,R,R,R->S(2),R")
            .size() == 1);
}

TEST_CASE("a layer norm's gradient exchanges two sums by row, together") {
  const OpSchema rows = testing::applied_to(
      "aten.native_layer_norm_backward.default",
      {{"grad_out", TensorArg{0}},
       {"input", TensorArg{1}},
       {"normalized_shape", Ints{6}},
       {"mean", TensorArg{2}},
       {"rstd", TensorArg{3}},
       {"weight", TensorArg{4}},
       {"bias", NoneArg{}},
       {"output_mask", std::vector<bool>{true, true, false}}},
      {"f32[4,6]", "f32[4,6]", "f32[4,1]", "f32[4,1]", "f32[6]"});
  CHECK(exchanged(Strategies(rows, "2"), "S(1),S(1),R,R,S(0)->S(1),S(0)") ==
        Names{"all_reduce(sum) of 32 bytes"});
}

TEST_CASE("a mean over unequal shards is a sum") {
  const std::int64_t mean = 1;
  const OpSchema loss = applied("aten.mse_loss.default", {"f32[8]", "f32[8]"},
                                {{"reduction", mean}});
  CHECK(Strategies(loss, "2").has("S(0),S(0)->P(avg)"));
  CHECK(Strategies(loss, "3").has("S(0),S(0)->P(sum)"));
}

TEST_CASE("a loss of classes exchanges two sums") {
  const auto loss = [](const char* name, std::int64_t reduction) {
    return Strategies(
        testing::applied_to(name,
                            {{"self", TensorArg{0}},
                             {"target", TensorArg{1}},
                             {"weight", NoneArg{}},
                             {"reduction", reduction},
                             {"ignore_index", std::int64_t{-100}}},
                            {"f32[8,6]", "i64[8]"}),
        "2");
  };
  const Names both = {"all_reduce(sum) of 8 bytes"};
  const Strategies mean = loss("aten.cross_entropy_loss.default", 1);
  CHECK(exchanged(mean, "S(0),S(0)->R") == both);
  CHECK(exchanged(mean, "S(1),R->R") == Names{"all_reduce(max) of 32 bytes",
                                              "all_reduce(sum) of 32 bytes",
                                              "all_reduce(sum) of 4 bytes"});
  const Strategies forward = loss("aten.nll_loss_forward.default", 1);
  CHECK(exchanged(forward, "S(0),S(0)->R,R") == both);
  CHECK(exchanged(forward, "S(1),R->R,R") == both);
  const Strategies sum = loss("aten.nll_loss_forward.default", 2);
  CHECK(exchanged(sum, "S(1),R->P(sum),P(sum)").empty());
}

TEST_CASE("lengths by every power exchange one number a vector") {
  const auto length = [](double power) {
    return Strategies(applied("aten.linalg_vector_norm.default", {"f32[4,6]"},
                              {{"ord", power}, {"dim", Ints{1}}}),
                      "2");
  };
  const double inf = std::numeric_limits<double>::infinity();
  for (const double power : {0.0, 1.0, 2.0, 3.5}) {
    CHECK(exchanged(length(power), "S(1)->R") ==
          Names{"all_reduce(sum) of 16 bytes"});
  }
  CHECK(exchanged(length(inf), "S(1)->R") ==
        Names{"all_reduce(max) of 16 bytes"});
  CHECK(exchanged(length(-inf), "S(1)->R") ==
        Names{"all_reduce(min) of 16 bytes"});
}

TEST_CASE("the place of an extremum among all elements") {
  const Strategies place(applied("aten.argmax.default", {"f32[4,6]"}), "2,2");
  CHECK(exchanged(place, "[S(0),S(1)]->[R,R]") ==
        Names{"all_reduce(max) of 4 bytes", "all_reduce(min) of 8 bytes"});
}

TEST_CASE("monotonic operators pass P(max) and P(min)") {
  const auto scaled = [](const char* name, double by) {
    return Strategies(applied(name, {"f32[8]"}, {{"other", by}}), "2");
  };
  CHECK(scaled("aten.mul.Scalar", 2).has("P(max)->P(max)"));
  CHECK(scaled("aten.mul.Scalar", -2).has("P(max)->P(min)"));
  CHECK(scaled("aten.div.Scalar", -2).has("P(min)->P(max)"));
  CHECK(scaled("aten.rsub.Scalar", 2).has("P(max)->P(min)"));
  for (const char* same : {"P(max)->P(max)", "P(max)->P(min)"}) {
    CHECK_FALSE(scaled("aten.mul.Scalar", 0).has(same));
  }
  const auto rectified = [](double slope) {
    return Strategies(applied("aten.leaky_relu.default", {"f32[8]"},
                              {{"negative_slope", slope}}),
                      "2");
  };
  CHECK(rectified(0.1).has("P(max)->P(max)"));
  CHECK_FALSE(rectified(-0.1).has("P(max)->P(max)"));
}

TEST_CASE("a maximum that is a number passes what numbers decide") {
  const auto larger = [](const char* self, const char* other) {
    return Strategies(applied("aten.fmax.default", {self, other}), "2");
  };
  const Strategies numbers = larger("i64[8]", "i64[8]");
  CHECK(numbers.has("P(max),P(max)->P(max)"));
  CHECK(numbers.has("P(max),R->P(max)"));
  CHECK(numbers.has("R,P(min)->P(min)"));
  // A maximum of floats that is none hides terms that would be larger.
  const Strategies floats = larger("f32[8]", "f32[8]");
  CHECK_FALSE(floats.has("P(max),P(max)->P(max)"));
  CHECK_FALSE(floats.has("P(max),R->P(max)"));
  CHECK(floats.has("P(min),R->P(min)"));
  const Strategies mixed = larger("f32[8]", "i32[8]");
  CHECK_FALSE(mixed.has("P(max),R->P(max)"));
  CHECK(mixed.has("R,P(max)->P(max)"));
  const Strategies smaller(applied("aten.fmin.default", {"f32[8]", "f32[8]"}),
                           "2");
  CHECK(smaller.has("P(max),R->P(max)"));
  CHECK_FALSE(smaller.has("P(min),R->P(min)"));
}

TEST_CASE("a partial passes if the other operand is replicated") {
  const Strategies chosen(
      applied("aten.where.self", {"bool[8]", "f32[8]", "f32[8]"}), "2");
  CHECK(chosen.has("R,P(max),R->P(max)"));
  CHECK_FALSE(chosen.has("R,P(sum),R->P(sum)"));
  const auto masked = [](double value) {
    return Strategies(applied("aten.masked_fill.Scalar", {"f32[8]", "bool[8]"},
                              {{"value", value}}),
                      "2");
  };
  CHECK(masked(0).has("P(sum),R->P(sum)"));
  CHECK_FALSE(masked(1).has("P(sum),R->P(sum)"));
  CHECK(masked(1).has("P(max),R->P(max)"));
}

}  // namespace
}  // namespace shardprop
