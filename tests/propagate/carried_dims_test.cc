// Operators leave a dim that they only carry where it is, in any shard order
// and with any stride.
#include "ops/applied_op.h"
#include "propagate/fixtures.h"
#include "support/result_checks.h"

#include <shardprop/propagate/sharding_propagator.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {
namespace {

using testing::applied;
using testing::call;
using testing::layouts;
using testing::propagator_on;
using testing::value_of;

// How FSDP2 over tensor parallelism stores a parameter.
constexpr std::string_view kTpThenFsdp = "S(0)@1,S(0)@0";

// Returns the layouts of the outputs: "S(0),R S(1),R". Checks that no input
// moves and that nothing is sent.
std::string kept(const OpSchema& op, const std::vector<std::string_view>& given,
                 std::string_view mesh) {
  CAPTURE(op.name());
  const auto found = propagator_on(mesh).propagate(op, layouts(given));
  REQUIRE_MESSAGE(found.has_value(), found.error().message);
  CHECK(found->moves.empty());
  CHECK(found->cost() == 0);
  std::string text;
  for (const TensorSpec& spec : found->outputs) {
    text += (text.empty() ? "" : " ") + to_string(spec.layout());
  }
  return text;
}

TEST_CASE("query heads stay if there are fewer key heads than ranks") {
  const auto attention = [](std::string_view key,
                            const std::vector<std::string_view>& given,
                            std::string_view mesh) {
    const std::string keys(key);
    return kept(call("aten.scaled_dot_product_attention.default",
                     {"bf16[4,32,64,128]", keys, keys},
                     {{"attn_mask", NoneArg{}},
                      {"dropout_p", 0.0},
                      {"is_causal", true},
                      {"enable_gqa", true}}),
                given, mesh);
  };
  constexpr std::string_view kTwo = "bf16[4,2,64,128]";
  for (const std::string_view ranks : {"4", "8", "16"}) {
    CHECK(attention(kTwo, {"S(1)", "R", "R"}, ranks) == "S(1)");
  }
  // Any order of mesh dims is kept.
  constexpr std::string_view kRing = "S(1)@2,S(1)@0,S(1)@1";
  CHECK(attention(kTwo, {kRing, "R,R,R", "R,R,R"}, "2,2,2") == kRing);
  // The first mesh dim shards the key heads.
  CHECK(attention(kTwo, {"S(1),S(1)", "S(1),R", "S(1),R"}, "2,4") ==
        "S(1),S(1)");
  CHECK(attention("bf16[4,4,64,128]", {"S(1),S(1)", "S(1),R", "S(1),R"},
                  "2,8") == "S(1),S(1)");
}

TEST_CASE("any order of mesh dims is kept") {
  const auto same = [](std::string_view name, int tensors,
                       const std::vector<GivenArgument>& others = {}) {
    const auto count = static_cast<std::size_t>(tensors);
    CHECK(kept(call(name, std::vector<std::string>(count, "f32[16,6]"), others),
               std::vector(count, kTpThenFsdp), "2,2") == kTpThenFsdp);
  };
  same("aten.relu.default", 1);
  same("aten.detach.default", 1);
  same("aten.alias.default", 1);
  same("aten.clone.default", 1);
  same("aten.zeros_like.default", 1);
  same("aten.zero_.default", 1);
  same("aten.mul.Tensor", 2);
  same("aten.mul_.Tensor", 2);
  same("aten.copy_.default", 2);
  same("aten.addcdiv_.default", 3);
  same("aten.lerp_.Scalar", 2, {{"weight", 0.1}});
  CHECK(kept(call("aten.t.default", {"f32[16,6]"}), {kTpThenFsdp}, "2,2") ==
        "S(1)@1,S(1)@0");
  CHECK(kept(call("aten.mm.default", {"f32[16,6]", "f32[6,4]"}),
             {kTpThenFsdp, "R,R"}, "2,2") == kTpThenFsdp);
  CHECK(kept(call("aten.mm.default", {"f32[6,16]", "f32[16,4]"}),
             {"S(1)@1,S(1)@0", kTpThenFsdp}, "2,2") == "P(sum),P(sum)");
  // Uneven parts: 7 rows over 3, then over 2 ranks.
  CHECK(kept(call("aten.relu.default", {"f32[7,6]"}), {kTpThenFsdp}, "2,3") ==
        kTpThenFsdp);
}

TEST_CASE("operators on lists keep any order") {
  const auto list = [](std::string_view name, int lists,
                       const std::vector<GivenArgument>& others = {}) {
    std::vector<GivenArgument> given;
    std::vector<TensorMeta> metas;
    for (int l = 0; l < lists; ++l) {
      std::vector<TensorArg> tensors;
      for (int t = 0; t < 2; ++t) {
        tensors.push_back({static_cast<std::int32_t>(metas.size())});
        metas.push_back(value_of(TensorMeta::parse("f32[16,6]")));
      }
      given.push_back({"", std::move(tensors)});
    }
    given.insert(given.end(), others.begin(), others.end());
    const OpSchema op = value_of(
        make_op_schema(testing::shared_library()->find(name), given, metas));
    kept(op, std::vector(metas.size(), kTpThenFsdp), "2,2");
  };
  list("aten._foreach_add.List", 2);
  list("aten._foreach_add_.List", 2);
  list("aten._foreach_mul_.Scalar", 1, {{"scalar", 0.9}});
}

TEST_CASE("strided shards are kept") {
  CHECK(kept(call("aten.mul.Tensor", {"f32[16,6]", "f32[16,6]"}),
             {"SS(0,2)", "SS(0,2)"}, "4") == "SS(0,2)");
  CHECK(kept(call("aten.bmm.default", {"f32[16,6,4]", "f32[16,4,6]"}),
             {"SS(0,2)", "SS(0,2)"}, "4") == "SS(0,2)");
  // A sequence-sharded batch of two, as a matrix of all tokens.
  CHECK(kept(call("aten.mm.default", {"f32[16384,1024]", "f32[1024,4096]"}),
             {"SS(0,2)", "R"}, "4") == "SS(0,2)");
  // A fused projection of query, key and value.
  CHECK(
      kept(call("aten.linear.default", {"f32[2,3,8]", "f32[24,8]", "f32[24]"}),
           {"R", "SS(0,3)", "SS(0,3)"}, "4") == "SS(2,3)");
  CHECK(kept(call("aten.sum.default", {"f32[16,6]"}), {"SS(0,2)"}, "4") ==
        "P(sum)");
  // Uneven pieces of a dim that is a factor by itself.
  CHECK(kept(call("aten.relu.default", {"f32[7]"}), {"SS(0,2)"}, "3") ==
        "SS(0,2)");
}

TEST_CASE("views carry orders and strides of their factors") {
  const auto view = [](std::string_view from, std::vector<std::int64_t> to) {
    return call("aten.view.default", {std::string(from)},
                {{"size", std::move(to)}});
  };
  CHECK(kept(view("f32[16,6]", {2, 8, 6}), {"SS(0,2),R"}, "4,1") == "S(1),R");
  CHECK(kept(view("f32[2,24]", {48}), {"SS(1,3)"}, "4") == "SS(0,6)");
  CHECK(kept(view("f32[48]", {2, 24}), {"SS(0,6)"}, "4") == "SS(1,3)");
  CHECK(kept(view("f32[8,6]", {48}), {kTpThenFsdp}, "2,2") == kTpThenFsdp);
  CHECK(kept(view("f32[48]", {8, 6}), {kTpThenFsdp}, "2,2") == kTpThenFsdp);
}

TEST_CASE("an operand takes the order of another one") {
  const auto moved = [](const OpSchema& op,
                        const std::vector<std::string_view>& given) {
    const auto found =
        value_of(propagator_on("2,2").propagate(op, layouts(given)));
    std::string text;
    for (const TensorSpec& spec : found.inputs) {
      text += (text.empty() ? "" : " ") + to_string(spec.layout());
    }
    return text;
  };
  const OpSchema add = call("aten.add.Tensor", {"f32[16,6]", "f32[16,6]"});
  // Slicing sends nothing.
  CHECK(moved(add, {kTpThenFsdp, "R,R"}) == "S(0)@1,S(0)@0 S(0)@1,S(0)@0");
  CHECK(moved(add, {"R,R", kTpThenFsdp}) == "S(0)@1,S(0)@0 S(0)@1,S(0)@0");
  CHECK(moved(call("aten.copy_.default", {"f32[16,6]", "f32[16,6]"}),
              {kTpThenFsdp, "S(0),S(0)"}) == "S(0)@1,S(0)@0 S(0)@1,S(0)@0");
}

TEST_CASE("strided shards do not reach kernels with positions") {
  const auto found = value_of(propagator_on("4").propagate(
      call("aten.tril.default", {"f32[16,16]"}), layouts({"SS(0,2)"})));
  CHECK_FALSE(found.moves.empty());
}

}  // namespace
}  // namespace shardprop
