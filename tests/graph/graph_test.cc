#include <doctest/doctest.h>
#include <shardprop/graph/graph_builder.h>

#include "graph/graph_fixture.h"
#include "support/result_checks.h"

#include <string>
#include <utility>
#include <vector>

using namespace shardprop;  // NOLINT(google-build-using-namespace)

TEST_CASE("nodes, values and their uses are linked") {
  GraphFixture f;
  const ValueId x = f.input("x", "f32[16,8]");
  const ValueId w =
      f.input("w", "f32[8,4]", InputKind::kParameter, "fc.weight");
  const ValueId y = f.op("aten.mm.default", {x, w});
  const ValueId z = f.op("aten.mul.Tensor", {y, y});
  f.output(z);
  const Graph graph = f.build();

  REQUIRE(graph.nodes().size() == 2);
  CHECK(graph.nodes()[0].op_name() == "aten.mm.default");
  CHECK(graph.nodes()[0].name == "mm");
  CHECK(graph.nodes()[0].inputs == std::vector<ValueId>{x, w});
  CHECK(graph.value(y).producer == NodeId(0));
  CHECK(graph.value(y).consumers ==
        std::vector<Use>{{NodeId(1), 0}, {NodeId(1), 1}});
  CHECK(graph.value(x).is_input());
  CHECK(graph.value(x).input_kind == InputKind::kUser);
  CHECK(graph.value(w).input_kind == InputKind::kParameter);
  CHECK(!graph.value(z).input_kind);
  CHECK(graph.value(w).display_name() == "fc.weight");
  CHECK(graph.find_value("fc.weight") == w);
  CHECK(graph.find_value("w") == w);
  CHECK(graph.find_node("mul") == NodeId(1));
  CHECK_FALSE(graph.find_node("nothing"));
  CHECK_FALSE(graph.find_value("nothing"));
  CHECK_FALSE(graph.has_backward());
}

TEST_CASE("views share a buffer, copies do not") {
  GraphFixture f;
  const ValueId x = f.input("x", "f32[4,6]");
  const ValueId t = f.op("aten.t.default", {x});
  const ValueId v = f.op("aten.view.default", {x}, {{"size", ints({24})}});
  const ValueId seen =
      f.op("aten.reshape.default", {x}, {{"shape", ints({6, 4})}});
  const ValueId copied =
      f.op("aten.reshape.default", {t}, {{"shape", ints({24})}});
  const ValueId same = f.op("aten.contiguous.default", {x});
  const ValueId moved = f.op("aten.contiguous.default", {t});
  const ValueId same_type =
      f.op("aten.to.dtype", {x}, {{"dtype", DType::kF32}});
  const ValueId cast = f.op("aten.to.dtype", {x}, {{"dtype", DType::kBF16}});
  const ValueId sum = f.op("aten.add.Tensor", {x, x});
  for (const ValueId id : {copied, moved, cast, sum}) f.output(id);
  const Graph graph = f.build();

  const BufferId own = graph.value(x).buffer;
  for (const ValueId id : {t, v, seen, same, same_type}) {
    CAPTURE(graph.value(id).name);
    CHECK(graph.value(id).buffer == own);
    CHECK(graph.value(id).view_of == x);
  }
  for (const ValueId id : {copied, moved, cast, sum}) {
    CAPTURE(graph.value(id).name);
    CHECK(graph.value(id).buffer != own);
    CHECK_FALSE(graph.value(id).is_view());
  }
  CHECK(graph.buffer(own).base() == x);
  CHECK(graph.buffer(own).values.size() == 6);
}

TEST_CASE("all pieces of a split view their tensor") {
  GraphFixture f;
  const ValueId x = f.input("x", "f32[6,4]");
  const auto pieces =
      f.ops("aten.split.Tensor", {x}, {{"split_size", std::int64_t{2}}});
  REQUIRE(pieces.size() == 3);
  f.output(pieces[1]);
  const Graph graph = f.build();
  for (const ValueId piece : pieces) CHECK(graph.value(piece).view_of == x);
  CHECK(graph.value(pieces[2]).output_index == 2);
  CHECK(graph.value(pieces[2]).name == "split_2");
}

TEST_CASE("an input may be another name of the same tensor") {
  GraphFixture f;
  const ValueId a = f.input("a", "f32[4]", InputKind::kParameter);
  NewInput again;
  again.kind = InputKind::kParameter;
  again.name = "b";
  again.meta = meta("f32[4]");
  again.shares_storage_with = a;
  const auto b = f.builder.add_input(again);
  REQUIRE(b);
  again.name = "c";
  again.meta = meta("f32[5]");
  CHECK(f.builder.add_input(again).error().code == ErrorCode::kShapeMismatch);
  f.output(f.op("aten.add.Tensor", {a, *b}));
  const Graph graph = f.build();
  CHECK(graph.value(*b).buffer == graph.value(a).buffer);
}

TEST_CASE("phase: what leads to any output but a gradient is forward") {
  GraphFixture f;
  const ValueId x = f.input("x", "f32[4,8]");
  const ValueId w = f.input("w", "f32[8,2]", InputKind::kParameter);
  const ValueId y = f.op("aten.mm.default", {x, w});
  const ValueId loss = f.op("aten.sum.default", {y});
  const ValueId dead = f.op("aten.relu.default", {y});
  const ValueId ones = f.op("aten.ones_like.default", {y});
  const ValueId xt = f.op("aten.t.default", {x});
  const ValueId grad = f.op("aten.mm.default", {xt, ones});
  const ValueId dead_backward = f.op("aten.relu.default", {grad});
  f.builder.add_output({loss, OutputKind::kLoss, {}});
  f.builder.add_output({grad, OutputKind::kGradient, w});
  const Graph graph = f.build();
  const auto phase = [&](ValueId id) {
    return graph.node(graph.value(id).producer).phase;
  };
  CHECK(phase(y) == Phase::kForward);
  CHECK(phase(loss) == Phase::kForward);
  CHECK(phase(dead) == Phase::kForward);
  CHECK(phase(xt) == Phase::kBackward);
  CHECK(phase(grad) == Phase::kBackward);
  CHECK(phase(dead_backward) == Phase::kBackward);
  CHECK(graph.has_backward());
  CHECK(graph.gradient_of(w) == grad);
  CHECK_FALSE(graph.gradient_of(x));
  CHECK(graph.outputs()[0].kind == OutputKind::kLoss);
  CHECK(graph.outputs()[1].kind == OutputKind::kGradient);
  const std::vector<NodeId> of = {graph.value(grad).producer};
  const std::vector<bool> ancestors = graph.ancestors(of);
  CHECK(ancestors[graph.value(xt).producer.index()]);
  CHECK(ancestors[graph.value(y).producer.index()]);
  CHECK_FALSE(ancestors[graph.value(loss).producer.index()]);
}

TEST_CASE("kinds of inputs have names, and graphs some of the kinds") {
  for (int k = 0; k <= static_cast<int>(InputKind::kSeed); ++k) {
    const auto kind = static_cast<InputKind>(k);
    CHECK(parse_input_kind(to_string(kind)) == kind);
  }
  CHECK_FALSE(parse_input_kind("user"));
  GraphFixture f;
  NewInput seed;
  seed.kind = InputKind::kSeed;
  seed.name = "seed";
  CHECK_CODE(f.builder.add_input(seed), ErrorCode::kInvalidArgument);
}

TEST_CASE("names are given once") {
  GraphFixture f;
  const ValueId x = f.input("x", "f32[4]");
  NewInput again;
  again.name = "x";
  CHECK(f.builder.add_input(again).error().code == ErrorCode::kDuplicateName);
  CHECK(f.builder.add_op("aten.relu.default", {{"", TensorArg{0}}}, {x}, "r"));
  const auto twice =
      f.builder.add_op("aten.relu.default", {{"", TensorArg{0}}}, {x}, "r");
  REQUIRE_FALSE(twice);
  CHECK(twice.error().code == ErrorCode::kDuplicateName);
}

TEST_CASE("an operator that is not declared is answered with the nearest") {
  GraphFixture f;
  const auto op = f.builder.add_op("aten.reluu.default", {}, {});
  REQUIRE_FALSE(op);
  CHECK(op.error().code == ErrorCode::kUnknownOperator);
  CHECK(op.error().help == "did you mean `aten.relu.default`?");
}

TEST_CASE("results that do not fit their operator are refused") {
  GraphFixture f;
  const ValueId x = f.input("x", "f32[4]");
  NewNode node;
  node.op = make_op_schema(f.library.find("aten.relu.default"),
                           {{"", TensorArg{0}}}, {meta("f32[4]")})
                .value();
  node.op.outputs = {meta("f32[5]")};
  node.op.output_slots = {0};
  node.inputs = {x};
  const auto added = f.builder.add_node(node);
  REQUIRE_FALSE(added);
  CHECK(added.error().code == ErrorCode::kShapeMismatch);
}

TEST_CASE("the hash tells what a plan depends on, and nothing else") {
  struct Variation {
    const char* meta = "f32[16,8]";
    const char* op = "aten.relu.default";
    const char* name = "r";
    const char* module = "fc";
    bool loss = false;
  };
  const auto hash_of = [](const Variation& v) {
    GraphFixture f;
    const ValueId x = f.input("x", v.meta);
    NewNode node;
    node.name = v.name;
    node.op = make_op_schema(f.library.find(v.op), {{"", TensorArg{0}}},
                             {meta(v.meta)})
                  .value();
    node.op.outputs = {meta(v.meta)};
    node.op.output_slots = {0};
    node.inputs = {x};
    node.module_path = v.module;
    const ValueId y = f.builder.add_node(node).value().front();
    f.builder.add_output(
        {y, v.loss ? OutputKind::kLoss : OutputKind::kUser, {}});
    return f.build().hash();
  };
  const std::uint64_t hash = hash_of({});
  CHECK(hash == hash_of({}));
  CHECK(hash == hash_of({.module = "other"}));
  CHECK(hash != hash_of({.meta = "f32[16,9]"}));
  CHECK(hash != hash_of({.op = "aten.neg.default"}));
  CHECK(hash != hash_of({.name = "s"}));
  CHECK(hash != hash_of({.loss = true}));
}
