// Operators that are defined by a program in the text of a rule: every strategy gives
// the values of the program on full tensors.

#include "verify/verified.h"

#include <shardprop/ops/rule_text.h>
#include <shardprop/strategy/op_strategy.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

using namespace testing;

// `UserOperator` is one call of an operator that a library of the test declares.
struct UserOperator {
  const char* declaration;
  const char* rule;
  std::vector<const char*> tensors;
};

struct DeclaredCall {
  std::shared_ptr<const OpLibrary> library;
  OpSchema op;
};

DeclaredCall declared(const UserOperator& one) {
  auto rule = value_of(parse_definition(one.rule));
  auto library = value_of(OpLibrary::standard()->with(
      {.declaration = one.declaration, .definition = std::move(rule)}));
  std::vector<GivenArgument> given;
  std::vector<TensorMeta> metas;
  for (const char* tensor : one.tensors) {
    given.push_back({"", TensorArg{static_cast<std::int32_t>(metas.size())}});
    metas.push_back(value_of(TensorMeta::parse(tensor)));
  }
  OpSchema op = value_of(make_op_schema(library->find("mylib.f.default"),
                                        std::move(given), std::move(metas)));
  set_results(op, value_of(library->infer_results(op)));
  return {std::move(library), std::move(op)};
}

std::string wrong_value(const VerifyReport& report) {
  if (!report.mismatch) return "no wrong value";
  const VerifyMismatch& wrong = *report.mismatch;
  return wrong.value + wrong.element + " on rank " +
         std::to_string(wrong.rank) + ": expected " +
         std::to_string(wrong.expected) + ", found " +
         std::to_string(wrong.found) + ' ' + wrong.error;
}

// Verifies every strategy. Returns those that shard an operand: "S(0)->S(0)".
std::vector<std::string> verified(const UserOperator& one, const char* shape) {
  CAPTURE(std::string(one.rule));
  const DeclaredCall call = declared(one);
  const DeviceMesh mesh = value_of(DeviceMesh::parse(shape));
  GraphBuilder builder("call", *call.library);
  NewNode node;
  node.name = "call";
  node.op = call.op;
  for (const TensorMeta& meta : call.op.inputs) {
    node.inputs.push_back(value_of(
        builder.add_input({.kind = InputKind::kUser,
                           .name = "x" + std::to_string(node.inputs.size()),
                           .meta = meta})));
  }
  for (const ValueId value : value_of(builder.add_node(std::move(node)))) {
    builder.add_output({.value = value});
  }
  const Graph graph = value_of(std::move(builder).build());
  const Expected expected =
      value_of(Expected::create(graph, call.library, Optimizer::kNone, {}));
  LayoutTable layouts;
  StrategyOptions every;
  every.allow_empty_shards = false;
  const OpStrategy all =
      op_strategies(std::make_shared<const OpSchema>(call.op),
                    std::make_shared<const IndexSpace>(
                        value_of(call.library->index_space(call.op))),
                    mesh, layouts, every);
  std::vector<std::string> sharded;
  for (const PlacementStrategy& strategy : all.strategies) {
    const std::string text = to_string(strategy, layouts);
    CAPTURE(text);
    PlanOptions options = quick_options();
    options.forced = forced_first_node(strategy, layouts);
    const auto plan =
        make_plan(graph, mesh, dear_compute(), *call.library, options);
    CHECK(plan.has_value());
    if (!plan) continue;
    REQUIRE(plan->has_plan());
    const VerifyReport report = value_of(
        verify(value_of(lower(*plan, graph, *call.library)), expected));
    INFO(wrong_value(report));
    CHECK(report.ok);
    CHECK(report.findings.empty());
    if (text.find("S(") != std::string::npos) sharded.push_back(text);
  }
  return sharded;
}

// Returns the reason why a factor of the call is blocked; empty if none is.
std::string blocked_reason(const UserOperator& one) {
  const DeclaredCall call = declared(one);
  for (const Factor& factor :
       value_of(call.library->index_space(call.op)).factors) {
    if (factor.kind == FactorKind::kBlocked) return factor.reason;
  }
  return "";
}

using Texts = std::vector<std::string>;

TEST_CASE("a program may call an operator that has a program of its own") {
  const UserOperator softmax{
      "mylib::f(Tensor x, int dim=1) -> Tensor",
      "along(dim).decomposed(\"return softmax(x, dim) * 2\")",
      {"f32[4,6]"}};
  CHECK(verified(softmax, "2") == Texts{"S(0)->S(0)", "S(1)->S(1)"});
  CHECK(verified(softmax, "2,2").size() == 8);
  const UserOperator norm{
      "mylib::f(Tensor x, Tensor w) -> Tensor",
      "mapped(b[n],[n]->b[n]).decomposed(\"h = layer_norm(x, [size(x, 1)], "
      "w); return h + log_softmax(h, 1)\")",
      {"f32[4,6]", "f32[6]"}};
  CHECK(verified(norm, "2") == Texts{"S(0),R->S(0)", "S(1),S(0)->S(1)"});
}

TEST_CASE("a dim that a step needs in full is not sharded") {
  const char* const kDeclared = "mylib::f(Tensor x, int dim=1) -> Tensor";
  const std::vector<std::pair<const char*, const char*>> steps = {
      {"return flip(x, [dim])", "flip"},
      {"return roll(x, [1], [dim])", "roll"},
      {"return x * full([size(x, 0), size(x, 1)], 2.0)", "mul"},
      {"return x + arange(6)", "add"},
      {"return sort(x, 1)", "sort"},
      {"v, i = max(x, 1, True); return x - v", "max"},
      {"return narrow(cat([x, x], 1), 1, 3, 6)", "cat"}};
  for (const auto& [program, step] : steps) {
    CAPTURE(std::string(program));
    const std::string rule =
        std::string("along(dim).decomposed(\"") + program + "\")";
    const UserOperator one{kDeclared, rule.c_str(), {"f32[4,6]"}};
    CHECK(verified(one, "2") == Texts{"S(0)->S(0)"});
    CHECK(blocked_reason(one) == "its program calls `" + std::string(step) +
                                     "`, which needs all of it");
  }
}

TEST_CASE("a dim that the program flips is not sharded with its program") {
  // The rule is right about dim 0: two flips cancel out.
  const UserOperator one{
      "mylib::f(Tensor x, int dim=1) -> Tensor",
      "along(dim).decomposed(\"h = flip(flip(x, [0]), [0]); e = exp(h); "
      "return e / sum(e, [dim], True)\")",
      {"f32[4,6]"}};
  CHECK(verified(one, "2") == Texts{"S(0)->S(0)", "S(1)->S(1)"});
  CHECK(verified(one, "2,2") ==
        Texts{"[R,S(0)]->[R,S(0)]", "[R,S(1)]->[R,S(1)]", "[S(0),R]->[S(0),R]",
              "[S(0),S(0)]->[S(0),S(0)]", "[S(1),R]->[S(1),R]",
              "[S(1),S(1)]->[S(1),S(1)]"});
}

TEST_CASE("sizes in the arguments of a step are those of the rank's part") {
  const UserOperator viewed{
      "mylib::f(Tensor x) -> Tensor",
      "mapped(ab[c]->ab[c]).decomposed(\"h = view(x, [size(x, 0) * "
      "size(x, 1), size(x, 2)]); e = exp(h); return view(e / sum(e, [1], "
      "True), [size(x, 0), size(x, 1), size(x, 2)])\")",
      {"f32[4,6,6]"}};
  CHECK(verified(viewed, "2") ==
        Texts{"S(0)->S(0)", "S(1)->S(1)", "S(2)->S(2)"});
  CHECK(verified(viewed, "2,3").size() > 8);
  const UserOperator expanded{
      "mylib::f(Tensor x, Tensor w) -> Tensor",
      "mapped(b[n],[n]->b[n]).decomposed(\"s = sum(x, [1], True); return "
      "expand(s, [size(x, 0), size(x, 1)]) * expand(w, [size(x, 0), size(x, "
      "1)])\")",
      {"f32[5,6]", "f32[6]"}};
  CHECK(!verified(expanded, "2").empty());
  CHECK(!verified(expanded, "2,3").empty());
}

TEST_CASE("a program may use the second result of a step") {
  const UserOperator one{
      "mylib::f(Tensor x) -> Tensor",
      "mapped(b[n]->b[n]).decomposed(\"v, i = sort(x, 1); return v + i\")",
      {"f32[4,6]"}};
  CHECK(verified(one, "2") == Texts{"S(0)->S(0)"});
  const UserOperator rows{
      "mylib::f(Tensor x) -> Tensor",
      "mapped(b[n]->b[n]).decomposed(\"v, m = var_mean(x, [1], keepdim=True); "
      "e = exp(x); return e / sum(e, [1], True) * m\")",
      {"f32[4,6]"}};
  CHECK(verified(rows, "2") == Texts{"S(0)->S(0)", "S(1)->S(1)"});
}

TEST_CASE("positions along a sharded dim are those of the full tensor") {
  for (const char* of : {"x", "out"}) {
    CAPTURE(of);
    const std::string rule =
        "mapped(b[n]->b[n]).decomposed(\"e = exp(x) * places(" +
        std::string(of) + ", 1); return e / sum(e, [1], True)\")";
    const UserOperator one{
        "mylib::f(Tensor x) -> Tensor", rule.c_str(), {"f32[4,6]"}};
    CHECK(verified(one, "2") == Texts{"S(0)->S(0)", "S(1)->S(1)"});
  }
  const UserOperator offset{
      "mylib::f(Tensor x) -> Tensor",
      "mapped(b[n]->b[n]).decomposed(\"return x + offset(x, 1)\")",
      {"f32[4,6]"}};
  const DeclaredCall call = declared(offset);
  const auto space = call.library->index_space(call.op);
  REQUIRE_FALSE(space.has_value());
  CHECK(space.error().code == ErrorCode::kProgram);
  CHECK(space.error().message ==
        "the program of `mylib.f.default` does not fit this call: a program on "
        "full tensors has no local sizes and offsets: use size() and places()");
}

}  // namespace
}  // namespace shardprop
