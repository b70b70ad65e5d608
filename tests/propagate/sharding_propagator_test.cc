#include <shardprop/propagate/sharding_propagator.h>

#include "ops/applied_op.h"
#include "propagate/drawn_calls.h"
#include "propagate/fixtures.h"
#include "support/property.h"
#include "support/result_checks.h"
#include "support/sanitizers.h"

#include <shardprop/ops/rule_text.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {
namespace {

using testing::applied;
using testing::applied_to;
using testing::CallDrawer;
using testing::layouts;
using testing::propagator_on;
using testing::shared_library;
using testing::value_of;

// "S(0),S(1)->P(sum)".
std::string in_words(const OutputSharding& sharding) {
  std::string text;
  for (const TensorSpec& spec : sharding.inputs) {
    text += (text.empty() ? "" : " ") + to_string(spec.layout());
  }
  text += " ->";
  for (const TensorSpec& spec : sharding.outputs) {
    text += " " + to_string(spec.layout());
  }
  return text;
}

std::string propagated(const OpSchema& op,
                       const std::vector<std::string_view>& given,
                       std::string_view mesh = "2") {
  return in_words(value_of(propagator_on(mesh).propagate(op, layouts(given))));
}

OpSchema small_matmul() {
  return applied("aten.mm.default", {"f32[16,8]", "f32[8,4]"});
}

TEST_CASE("inputs that fit are not moved") {
  CHECK(propagated(small_matmul(), {"S(0)", "R"}) == "S(0) R -> S(0)");
  CHECK(propagated(small_matmul(), {"S(1)", "S(0)"}) == "S(1) S(0) -> P(sum)");
  CHECK(propagated(small_matmul(), {"P(sum)", "R"}) == "P(sum) R -> P(sum)");
  CHECK(propagated(small_matmul(), {"S(0),R", "R,S(1)"}, "2,2") ==
        "S(0),R R,S(1) -> S(0),S(1)");
}

// https://github.com/pytorch/pytorch/issues/167106: both batch dims of a
// product are cut, forward and backward, and nothing need be gathered.
TEST_CASE("matmuls with batch dims sharded over two mesh dims move no input") {
  const auto moves_nothing = [](const OpSchema& op,
                                const std::vector<std::string_view>& given,
                                std::string_view words) {
    const auto found =
        value_of(propagator_on("2,2").propagate(op, layouts(given)));
    CHECK(in_words(found) == words);
    CHECK(found.moves.empty());
    CHECK(found.cost() == 0);
  };
  moves_nothing(applied("aten.matmul.default", {"f32[4,4,3]", "f32[3,1]"}),
                {"S(0),S(1)", "R,R"}, "S(0),S(1) R,R -> S(0),S(1)");
  moves_nothing(applied("aten.bmm.default", {"f32[4,4,3]", "f32[4,3,1]"}),
                {"S(0),S(1)", "S(0),R"}, "S(0),S(1) S(0),R -> S(0),S(1)");
  // These calls compute the gradients of the two factors.
  moves_nothing(applied("aten.bmm.default", {"f32[4,4,1]", "f32[4,1,3]"}),
                {"S(0),S(1)", "S(0),R"}, "S(0),S(1) S(0),R -> S(0),S(1)");
  moves_nothing(applied("aten.bmm.default", {"f32[4,3,4]", "f32[4,4,1]"}),
                {"S(0),S(2)", "S(0),S(1)"},
                "S(0),S(2) S(0),S(1) -> S(0),P(sum)");
}

TEST_CASE("slicing a replicated tensor sends nothing and is preferred") {
  const auto found = value_of(
      propagator_on("2").propagate(small_matmul(), layouts({"S(1)", "R"})));
  CHECK(in_words(found) == "S(1) S(0) -> P(sum)");
  REQUIRE(found.moves.size() == 1);
  CHECK(found.moves[0].input == 1);
  CHECK(found.moves[0].plan->steps[0].kind == CollectiveKind::kSlice);
  CHECK(found.cost() == 0);
}

TEST_CASE(
    "results have the inferred shapes and dtypes on the mesh of the call") {
  const auto found = value_of(
      propagator_on("2").propagate(small_matmul(), layouts({"S(0)", "R"})));
  REQUIRE(found.outputs.size() == 1);
  CHECK(to_string(found.outputs[0]) == "f32[16,4] S(0)");
  CHECK(found.output_slots == std::vector<std::int32_t>{0});
}

TEST_CASE("mesh dims of one rank are replicated in every answer") {
  const auto found = value_of(propagator_on("1,2").propagate(
      small_matmul(), layouts({"S(1),S(0)", "R,R"})));
  CHECK(found.moves.empty());
  CHECK(to_string(found.inputs[0].layout()) == "S(1),S(0)");
}

TEST_CASE("a view runs with the sizes of each rank") {
  const OpSchema view = applied("aten.view.default", {"f32[4,6]"},
                                {{"size", std::vector<std::int64_t>{24}}});
  const auto found =
      value_of(propagator_on("2").propagate(view, layouts({"S(0)"})));
  REQUIRE(found.rank_arguments.size() == 1);
  CHECK(found.rank_arguments[0].at({1}) == std::vector<std::int64_t>{12});
}

TEST_CASE("a softmax over a sharded dim has its collectives inside") {
  const OpSchema softmax =
      applied("aten._softmax.default", {"f32[4096,4096]"},
              {{"dim", std::int64_t{1}}, {"half_to_float", false}});
  const ShardingPropagator propagator = propagator_on("2");
  const auto found = value_of(propagator.propagate(softmax, layouts({"S(1)"})));
  CHECK(in_words(found) == "S(1) -> S(1)");
  CHECK(found.inside.size() == 2);
  CHECK(found.inside_nanoseconds > 0);
  const auto local = value_of(propagator.local_strategy(softmax, found));
  CHECK(local->needs_program());
  CHECK(local->program().steps.size() > 2);
}

TEST_CASE("an operand that is not read keeps its layout") {
  const auto slopes = [](bool training) {
    return applied("aten.rrelu_with_noise_backward.default",
                   {"f32[64,8]", "f32[64,8]", "f32[64,8]"},
                   {{"lower", 0.125},
                    {"upper", 0.5},
                    {"training", training},
                    {"self_is_result", false}});
  };
  const ShardingPropagator propagator = propagator_on("2,2");
  for (const char* lies : {"R,R", "S(0),R", "S(1),S(0)", "P(max),S(0)"}) {
    const auto trained = value_of(propagator.propagate(
        slopes(true), layouts({"S(0),P(sum)", lies, "S(0),R"})));
    CHECK(trained.moves.empty());
    CHECK(trained.redistribute_nanoseconds == 0);
    CHECK(to_string(trained.inputs[1].layout()) == lies);
    CHECK(to_string(trained.outputs[0].layout()) == "S(0),P(sum)");
    const auto judged = value_of(propagator.propagate(
        slopes(false), layouts({"S(1),S(0)", "S(1),S(0)", lies})));
    CHECK(judged.moves.empty());
    CHECK(to_string(judged.inputs[2].layout()) == lies);
    CHECK(to_string(judged.outputs[0].layout()) == "S(1),S(0)");
    for (const Candidate& candidate : value_of(propagator.candidates(
             slopes(true), layouts({"S(0),P(sum)", lies, "S(0),R"})))) {
      CHECK(to_string(candidate.inputs[1]) == lies);
    }
  }
}

TEST_CASE("tolerances of matrices without elements are not read") {
  const auto inverse = [](const char* matrices) {
    return applied_to(
        "aten.linalg_pinv.atol_rtol_tensor",
        {{"", TensorArg{0}}, {"atol", TensorArg{1}}, {"rtol", TensorArg{2}}},
        {matrices, "f32[4]", "f32[]"});
  };
  const ShardingPropagator propagator = propagator_on("2,2");
  for (const char* lies : {"R,R", "S(0),R", "S(0),S(0)", "P(min),P(min)"}) {
    for (const char* also : {"R,R", "P(sum),R", "P(sum),P(avg)"}) {
      const auto laid = layouts({"R,S(0)", lies, also});
      const auto found =
          value_of(propagator.propagate(inverse("f32[4,0,3]"), laid));
      CHECK(found.moves.empty());
      CHECK(to_string(found.inputs[1].layout()) == lies);
      CHECK(to_string(found.inputs[2].layout()) == also);
      CHECK(to_string(found.outputs[0].layout()) == "R,S(0)");
      const auto read =
          value_of(propagator.propagate(inverse("f32[4,3,3]"), laid));
      CHECK(to_string(read.inputs[2].layout()) == "R,R");
      CHECK(read.inputs[1].layout() == read.outputs[0].layout());
    }
  }
}

TEST_CASE("lists, optional tensors and several outputs") {
  const auto cat =
      applied_to("aten.cat.default",
                 {{"", std::vector<TensorArg>{TensorArg{0}, TensorArg{1}}}},
                 {"f32[4,8]", "f32[6,8]"});
  CHECK(propagated(cat, {"S(1)", "S(1)"}) == "S(1) S(1) -> S(1)");
  const auto index = applied_to(
      "aten.index.Tensor",
      {{"", TensorArg{0}}, {"", std::vector<TensorArg>{{}, TensorArg{1}}}},
      {"f32[4,8]", "i64[3]"});
  CHECK(propagated(index, {"S(0)", "R"}) == "S(0) R -> S(0)");
  const auto max =
      applied("aten.max.dim", {"f32[4,8]"}, {{"dim", std::int64_t{1}}});
  CHECK(propagated(max, {"S(0)"}) == "S(0) -> S(0) S(0)");
}

TEST_CASE("a tensor that is written in place keeps its layout") {
  const auto add = applied("aten.add_.Tensor", {"f32[4,8]", "f32[4,8]"});
  CHECK(propagated(add, {"S(0)", "R"}) == "S(0) S(0) -> S(0)");
  CHECK(propagated(add, {"R", "S(0)"}) == "R R -> R");
  CHECK(propagated(add, {"P(sum)", "P(sum)"}) == "P(sum) P(sum) -> P(sum)");

  const auto relu = applied("aten.relu_.default", {"f32[4,8]"});
  const auto refused = propagator_on("2").propagate(relu, layouts({"P(sum)"}));
  REQUIRE(!refused);
  CHECK(refused.error().code == ErrorCode::kNoStrategy);
  CHECK(refused.error().notes ==
        std::vector<std::string>{"writes `self`: f32[4,8] P(sum)"});
  CHECK(!refused.error().help.empty());
}

TEST_CASE("an out= tensor keeps its layout, and the operands follow") {
  const OpSchema add = applied_to(
      "aten.add.out",
      {{"", TensorArg{0}}, {"", TensorArg{1}}, {"out", TensorArg{2}}},
      {"f32[4,8]", "f32[4,8]", "f32[4,8]"});
  CHECK(propagated(add, {"S(0)", "R", "S(0)"}) == "S(0) S(0) S(0) -> S(0)");
  CHECK(propagated(add, {"S(0)", "S(0)", "R"}) == "R R R -> R");
  CHECK(propagated(add, {"R", "R", "S(1)"}) == "S(1) S(1) S(1) -> S(1)");
}

TEST_CASE("lists are propagated element by element") {
  const auto list = [](std::string_view name, std::vector<GivenArgument> more) {
    std::vector<GivenArgument> given = {
        {"", std::vector<TensorArg>{TensorArg{0}, TensorArg{1}}}};
    given.insert(given.end(), more.begin(), more.end());
    std::vector<TensorMeta> metas = {value_of(TensorMeta::parse("f32[4,6]")),
                                     value_of(TensorMeta::parse("f32[8]"))};
    if (!more.empty() &&
        std::holds_alternative<std::vector<TensorArg>>(more.front().value)) {
      metas.insert(metas.end(), {metas[0], metas[1]});
    }
    return value_of(make_op_schema(shared_library()->find(name),
                                   std::move(given), std::move(metas)));
  };
  const GivenArgument others{
      "", std::vector<TensorArg>{TensorArg{2}, TensorArg{3}}};
  const ShardingPropagator propagator = propagator_on("2");
  const auto found =
      value_of(propagator.propagate(list("aten._foreach_add.List", {others}),
                                    layouts({"S(1)", "S(0)", "R", "S(0)"})));
  CHECK(in_words(found) == "S(1) S(0) S(1) S(0) -> S(1) S(0)");
  CHECK(found.assignments.size() == 2);
  CHECK(to_string(found.outputs[1]) == "f32[8] S(0)");
  CHECK(in_words(value_of(propagator.propagate(
            list("aten._foreach_add_.List", {others}),
            layouts({"S(1)", "R", "R", "S(0)"})))) == "S(1) R S(1) R ->");
  CHECK(in_words(value_of(propagator.propagate(
            list("aten._foreach_mul.ScalarList",
                 {{"", std::vector<double>{0.5, 2.0}}}),
            layouts({"P(sum)", "S(0)"})))) == "P(sum) S(0) -> P(sum) S(0)");
  CHECK(testing::code_of(propagator.propagate(
            list("aten._foreach_abs_.default", {}),
            layouts({"R", "P(sum)"}))) == ErrorCode::kNoStrategy);
}

// A weight and a bias of FSDP2 over tensor parallelism, and one that tensor
// parallelism cuts in another dim.
TEST_CASE("fused steps are propagated parameter by parameter") {
  std::vector<TensorMeta> metas;
  std::vector<std::string_view> given;
  const auto list = [&](std::string_view argument) {
    std::vector<TensorArg> out;
    for (const char* text : {"f32[32,16]", "f32[32]", "f32[16,32]"}) {
      out.push_back({static_cast<std::int32_t>(metas.size())});
      metas.push_back(value_of(TensorMeta::parse(text)));
    }
    given.insert(given.end(), {"S(0)@1,S(0)@0", "S(0)@1,S(0)@0", "S(0),S(1)"});
    return GivenArgument{std::string(argument), std::move(out)};
  };
  std::vector<GivenArgument> arguments = {list("self"), list("grads"),
                                          list("momentum_buffer_list")};
  for (const char* name : {"weight_decay", "momentum", "lr", "dampening"}) {
    arguments.push_back({name, 0.1});
  }
  for (const char* name : {"nesterov", "maximize", "is_first_step"}) {
    arguments.push_back({name, false});
  }
  const OpSchema op = value_of(
      make_op_schema(shared_library()->find("aten._fused_sgd_.default"),
                     std::move(arguments), std::move(metas)));
  const auto made =
      value_of(propagator_on("2,2").propagate(op, layouts(given)));
  CHECK(made.moves.empty());
  CHECK(made.assignments.size() == 3);
  for (std::size_t i = 0; i < given.size(); ++i) {
    CAPTURE(i);
    CHECK(to_string(made.inputs[i].layout()) == given[i]);
  }
  // The gradient of the second parameter.
  given[4] = "R,P(sum)";
  const auto refused = propagator_on("2,2").propagate(op, layouts(given));
  REQUIRE(!refused.has_value());
  CHECK(refused.error().notes.at(1).starts_with("writes `grads[1]`"));
}

// The elements of another library's operator may depend on each other.
TEST_CASE("a fused operator of another library is propagated as one") {
  const auto words_of = [](std::string_view name, std::string_view rule,
                           std::vector<std::string_view> given) {
    const auto library = value_of(shared_library()->with(
        {.declaration =
             "mylib::" + std::string(name) + "(Tensor[] xs, Tensor[] ys) -> ()",
         .definition = value_of(parse_rule(rule))}));
    const TensorMeta meta = value_of(TensorMeta::parse("f32[8,4]"));
    OpSchema op = value_of(make_op_schema(
        library->find("mylib." + std::string(name) + ".default"),
        {{"xs", std::vector<TensorArg>{TensorArg{0}, TensorArg{1}}},
         {"ys", std::vector<TensorArg>{TensorArg{2}, TensorArg{3}}}},
        {meta, meta, meta, meta}));
    set_results(op, value_of(library->infer_results(op)));
    const auto propagator = value_of(ShardingPropagator::create(
        value_of(DeviceMesh::parse("2")), default_topology(), library));
    const auto made = propagator.propagate(op, layouts(given));
    return made ? in_words(*made) : to_string(made.error());
  };
  for (const char* rule : {"pointwise()", "batch(0)"}) {
    CAPTURE(rule);
    CHECK(words_of("_fused_swap_", rule, {"S(0)", "R", "S(0)", "R"}) ==
          words_of("swap_", rule, {"S(0)", "R", "S(0)", "R"}));
  }
  CHECK(words_of("_fused_swap_", "batch(0)", {"S(0)", "R", "S(0)", "R"}) ==
        "S(0) S(0) S(0) S(0) ->");
}

// These elements need more on a rank than one call on its own tensors.
TEST_CASE("lists whose elements take programs are refused") {
  const ShardingPropagator propagator = propagator_on("2");
  const auto norms = [&](std::vector<std::string_view> given) {
    const TensorMeta large = value_of(TensorMeta::parse("f32[4096,4096]"));
    const OpSchema op = value_of(make_op_schema(
        shared_library()->find("aten._foreach_norm.Scalar"),
        {{"", std::vector<TensorArg>{TensorArg{0}, TensorArg{1}}}},
        {large, large}));
    return propagator.propagate(op, layouts(given));
  };
  CHECK(in_words(value_of(norms({"R", "R"}))) == "R R -> R R");
  CHECK(testing::code_of(norms({"R", "S(0)"})) == ErrorCode::kNoStrategy);
  const auto scaled = [&](std::string_view numbers) {
    const TensorMeta meta = value_of(TensorMeta::parse("f32[4,6]"));
    const TensorMeta two = value_of(TensorMeta::parse("f32[2]"));
    const auto list = [](std::int32_t first) {
      return GivenArgument{
          "", std::vector<TensorArg>{TensorArg{first}, TensorArg{first + 1}}};
    };
    const OpSchema op = value_of(
        make_op_schema(shared_library()->find("aten._foreach_addcmul.Tensor"),
                       {list(0), list(2), list(4), {"", TensorArg{6}}},
                       {meta, meta, meta, meta, meta, meta, two}));
    return propagator.propagate(
        op, layouts({"S(0)", "R", "S(0)", "R", "S(0)", "R", numbers}));
  };
  CHECK(in_words(value_of(scaled("R"))) == "S(0) R S(0) R S(0) R R -> S(0) R");
  CHECK(testing::code_of(scaled("S(0)")) == ErrorCode::kNoStrategy);
  // No tensor where the numbers should be.
  const TensorMeta meta = value_of(TensorMeta::parse("f32[4,6]"));
  const GivenArgument first{"", std::vector<TensorArg>{TensorArg{0}}};
  const auto without =
      make_op_schema(shared_library()->find("aten._foreach_addcmul.Tensor"),
                     {first,
                      {"", std::vector<TensorArg>{TensorArg{1}}},
                      {"", std::vector<TensorArg>{TensorArg{2}}},
                      {"", NoneArg{}}},
                     {meta, meta, meta});
  REQUIRE(without.has_value());
  CHECK(testing::code_of(propagator.propagate(
            *without, layouts({"R", "R", "R"}))) == ErrorCode::kShapeMismatch);
}

TEST_CASE("specs on different meshes are rejected") {
  const ShardingPropagator propagator = propagator_on("2");
  const DeviceMesh other = value_of(DeviceMesh::parse("4"));
  const std::vector<TensorSpec> specs = {
      value_of(TensorSpec::parse("f32[16,8] S(0)", propagator.mesh())),
      value_of(TensorSpec::parse("f32[8,4] R", other))};
  const auto refused = propagator.propagate(small_matmul(), specs);
  REQUIRE(!refused);
  CHECK(refused.error().code == ErrorCode::kRedistributeMeshes);
  CHECK(refused.error().location == "aten.mm.default");
  CHECK(!refused.error().help.empty());
}

TEST_CASE("specs of other tensors than those of the call are rejected") {
  const ShardingPropagator propagator = propagator_on("2");
  const std::vector<TensorSpec> specs = {
      value_of(TensorSpec::parse("f32[16,8] S(0)", propagator.mesh())),
      value_of(TensorSpec::parse("f32[8,5] R", propagator.mesh()))};
  CHECK(testing::code_of(propagator.propagate(small_matmul(), specs)) ==
        ErrorCode::kShapeMismatch);
}

TEST_CASE("layouts of a wrong number or rank are rejected") {
  const ShardingPropagator propagator = propagator_on("2");
  CHECK(testing::code_of(propagator.propagate(
            small_matmul(), layouts({"R"}))) == ErrorCode::kInvalidArgument);
  const auto refused =
      propagator.propagate(small_matmul(), layouts({"R", "S(2)"}));
  REQUIRE(!refused);
  CHECK(refused.error().code == ErrorCode::kShardDimOutOfRange);
  CHECK(refused.error().location == "aten.mm.default, `mat2`");
  CHECK(testing::code_of(
            propagator.propagate(small_matmul(), layouts({"R,R", "R,R"}))) ==
        ErrorCode::kPlacementCount);
}

TEST_CASE("a guard reports implicit moves or forbids them") {
  std::vector<std::string> reported;
  const auto given = layouts({"S(0)", "S(0)"});
  PropagatorOptions options;
  options.moves = ImplicitMoves::kReported;
  options.report = [&](const OpSchema& op, const OutputSharding& sharding) {
    reported.push_back(describe_moves(op, given, sharding));
  };
  CHECK(
      propagator_on("2", options).propagate(small_matmul(), given).has_value());
  REQUIRE(reported.size() == 1);
  CHECK(reported[0].find("collective") != std::string::npos);

  const ShardingPropagator strict =
      propagator_on("2", {.moves = ImplicitMoves::kForbidden});
  const auto refused = strict.propagate(small_matmul(), given);
  REQUIRE(!refused);
  CHECK(refused.error().code == ErrorCode::kNoStrategy);
  CHECK(refused.error().message.find(reported[0]) != std::string::npos);
  CHECK(strict.propagate(small_matmul(), layouts({"S(0)", "R"})).has_value());
  CHECK(testing::code_of(ShardingPropagator::create(
            DeviceMesh(), default_topology(), shared_library(),
            {.moves = ImplicitMoves::kReported})) ==
        ErrorCode::kInvalidArgument);
  CHECK(testing::code_of(ShardingPropagator::create(
            DeviceMesh(), default_topology(), nullptr)) ==
        ErrorCode::kInvalidArgument);
}

TEST_CASE("candidates are sorted and state why they were not chosen") {
  const auto all = value_of(
      propagator_on("2").candidates(small_matmul(), layouts({"S(1)", "R"})));
  REQUIRE(all.size() > 3);
  CHECK(all[0].why_not.empty());
  CHECK(all[0].cost() == 0);
  for (std::size_t i = 1; i < all.size(); ++i) {
    CHECK(!all[i].why_not.empty());
    if (all[i].possible) CHECK(all[i].cost() >= all[i - 1].cost());
  }
}

TEST_CASE("a user's definition replaces the built-in one") {
  const auto mine = value_of(shared_library()->with(
      {.name = "aten.mm", .definition = einsum("m[k],[k]n->mn")}));
  const ShardingPropagator ours = propagator_on("2");
  const ShardingPropagator theirs = ours.with_library(mine);
  CHECK(in_words(value_of(
            ours.propagate(small_matmul(), layouts({"S(1)", "S(0)"})))) ==
        "S(1) S(0) -> P(sum)");
  CHECK(in_words(value_of(theirs.propagate(small_matmul(),
                                           layouts({"S(1)", "S(0)"}))))
            .find("P(sum)") == std::string::npos);
}

// The choice by bound is that of all strategies priced, for `wanted` calls that
// have one and few enough strategies to list.
void check_against_all(std::string_view mesh_text, int wanted,
                       std::uint64_t seed) {
  const ShardingPropagator propagator = propagator_on(mesh_text);
  CallDrawer drawer(*shared_library(), propagator.mesh(), seed);
  int answered = 0;
  for (int drawn = 0; answered < wanted && drawn < 20 * wanted; ++drawn) {
    const auto call = drawer.call();
    // Lists are propagated element by element; candidates are of the whole.
    if (!call || call->op.name().find("_foreach_") != std::string::npos) {
      continue;
    }
    CAPTURE(to_text(*call));
    const auto found = propagator.propagate(call->op, call->layouts);
    StrategyOptions options;
    options.limit = 3000;
    const auto all = propagator.candidates(call->op, call->layouts, options);
    if (!all) {
      CHECK(!found);
      continue;
    }
    if (all->size() == options.limit) continue;
    const Candidate& best = all->front();
    CHECK(found.has_value() == best.possible);
    if (!found || !best.possible) continue;
    ++answered;
    CHECK(found->cost() == best.cost());
    CHECK(static_cast<int>(found->moves.size()) == best.moved_inputs);
    for (std::size_t o = 0; o < best.outputs.size(); ++o) {
      CHECK(found->outputs[o].layout() == best.outputs[o]);
    }
  }
  CHECK(answered == wanted);
}

// A search that does not end ends with the time that a test has.
TEST_CASE("strided operands on five mesh dims are answered") {
  const ShardingPropagator propagator = propagator_on("2,2,2,2,2");
  const auto check = [&](const OpSchema& op,
                         const std::vector<std::string_view>& given) {
    CAPTURE(op.name());
    const OutputSharding found =
        value_of(propagator.propagate(op, layouts(given)));
    CHECK_FALSE(found.moves.empty());
    std::int64_t cost = 0;
    for (const InputMove& move : found.moves) {
      REQUIRE_FALSE(move.plan->steps.empty());
      CHECK(move.plan->steps.back().dst == found.inputs[move.input].layout());
      cost += move.plan->nanoseconds;
    }
    CHECK(found.redistribute_nanoseconds == cost);
  };
  const OpSchema product =
      applied("aten.mm.default", {"f32[64,64]", "f32[64,64]"});
  check(product, {"SS(0,2),S(1),R,SS(0,4),R", "R,SS(1,2),S(0),R,R"});
  if (testing::kThreadSanitizer) return;
  check(product, {"SS(0,2),SS(1,4),R,R,P(sum)", "S(0)@1,S(0)@0,R,R,S(1)"});
  check(applied("aten.add.Tensor", {"f32[64,64]", "f32[64,64]"}),
        {"SS(0,2),S(1),R,SS(1,4),R", "S(0)@1,S(0)@0,SS(1,2),R,R"});
  check(applied("aten.bmm.default", {"f32[8,64,32]", "f32[8,32,64]"}),
        {"SS(0,2),SS(1,2),R,S(2),R", "S(0)@1,S(0)@0,SS(2,2),R,R"});
}

TEST_CASE("the search by bounds chooses the best of all strategies") {
  check_against_all("2", testing::scaled(300), 1);
  check_against_all("4", testing::scaled(200), 2);
  check_against_all("2,3", testing::scaled(150), 3);
  check_against_all("4,2", testing::scaled(150), 4);
  check_against_all("2,2,2", testing::scaled(40), 5);
}

}  // namespace
}  // namespace shardprop
