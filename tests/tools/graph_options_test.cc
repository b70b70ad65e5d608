// The help for an operator without a rule offers no rule that must be wrong.
#include "cli/graph_options.h"

#include <shardprop/graph/graph_builder.h>
#include <shardprop/ops/op_library.h>

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

using namespace shardprop;  // NOLINT(google-build-using-namespace)

namespace {

// The help for an operator of three tensors with a result like the second one.
std::string hint_for(const std::vector<std::string>& metas) {
  const auto library = OpLibrary::standard()->with(
      {.declaration = "acme::accum(Tensor x, Tensor y, Tensor i) -> Tensor"});
  REQUIRE(library);
  GraphBuilder b("custom", **library);
  std::vector<ValueId> inputs;
  for (const std::string& meta : metas) {
    const auto input =
        b.add_input({.kind = InputKind::kUser,
                     .name = "in" + std::to_string(inputs.size()),
                     .meta = *TensorMeta::parse(meta)});
    REQUIRE(input);
    inputs.push_back(*input);
  }
  std::vector<TensorMeta> given;
  for (const ValueId input : inputs) given.push_back(b.meta(input));
  NewNode node{.name = "accum", .inputs = inputs};
  auto op = make_op_schema(
      (*library)->find("acme.accum.default"),
      {{"x", TensorArg{0}}, {"y", TensorArg{1}}, {"i", TensorArg{2}}}, given);
  REQUIRE(op);
  set_results(*op, {given[1]});
  node.op = *std::move(op);
  const auto out = b.add_node(std::move(node));
  REQUIRE(out);
  b.add_output({.value = out->front()});
  auto graph = std::move(b).build();
  REQUIRE(graph);
  return cli::rule_hint(*graph, "acme.accum.default");
}

TEST_CASE("a batch is offered only if all tensors have as many rows") {
  CHECK(hint_for({"f32[8,4]", "f32[8,4]", "f32[8,4]"}).find("=pointwise()'") !=
        std::string::npos);
  CHECK(hint_for({"f32[8,4]", "f32[8,2]", "i64[8]"}).find("=batch(0)'") !=
        std::string::npos);
  CHECK(hint_for({"f32[8,4]", "f32[8,2]", "i64[]"}).find("=batch(0)'") !=
        std::string::npos);
  for (const std::vector<std::string>& metas :
       {std::vector<std::string>{"f32[8,4]", "f32[10,4]", "i64[8]"},
        {"f32[10,4]", "f32[8,4]", "i64[8]"}}) {
    const std::string hint = hint_for(metas);
    CHECK(hint.find("batch(0)") == std::string::npos);
    CHECK(hint.find("pointwise") == std::string::npos);
    CHECK(hint.find("--rule 'acme.accum=RULE'") != std::string::npos);
    CHECK(hint.find("docs/ops.md") != std::string::npos);
  }
}

}  // namespace
