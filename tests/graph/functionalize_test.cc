#include <doctest/doctest.h>
#include <shardprop/graph/graph_builder.h>

#include "graph/graph_fixture.h"

#include <string>
#include <vector>

using namespace shardprop;  // NOLINT(google-build-using-namespace)

TEST_CASE(
    "an in-place operator becomes functional, later uses see the result") {
  GraphFixture f;
  const ValueId x = f.input("x", "f32[4]");
  const ValueId y = f.op("aten.relu.default", {x});
  const ValueId written = f.op("aten.add_.Tensor", {y, x});
  CHECK(written == y);
  f.output(f.op("aten.neg.default", {y}));
  CHECK(listing(f.build()) == "relu(x) relu; add(relu, x) add; neg(add) neg");
}

TEST_CASE("an input that is written becomes an update") {
  GraphFixture f;
  const ValueId x = f.input("x", "f32[4]", InputKind::kBuffer, "count");
  const ValueId one = f.input("one", "f32[4]");
  f.op("aten.add_.Tensor", {x, one});
  f.output(f.op("aten.neg.default", {one}));
  const Graph graph = f.build();
  const auto update = graph.update_of(x);
  REQUIRE(update);
  CHECK(graph.value(*update).name == "add");
  REQUIRE(graph.outputs().size() == 2);
  CHECK(graph.outputs()[1].value == *update);
  CHECK(graph.outputs()[1].kind == OutputKind::kUpdate);
  CHECK(graph.node(graph.value(*update).producer).phase == Phase::kForward);
}

TEST_CASE("an output that is a written input is the result") {
  GraphFixture f;
  const ValueId x = f.input("x", "f32[4]");
  f.op("aten.relu_.default", {x});
  f.output(x);
  const Graph graph = f.build();
  CHECK(graph.value(graph.outputs()[0].value).name == "relu");
  CHECK(graph.update_of(x) == graph.outputs()[0].value);
}

TEST_CASE("what is written keeps its dtype") {
  GraphFixture f;
  const ValueId x = f.input("x", "bf16[4]");
  const ValueId y = f.input("y", "f32[4]");
  const ValueId z = f.op("aten.relu.default", {x});
  f.op("aten.add_.Tensor", {z, y});
  f.output(z);
  const Graph graph = f.build();
  CHECK(listing(graph) ==
        "relu(x) relu; add(relu, y) add; _to_copy(add) _to_copy");
  CHECK(graph.value(graph.outputs()[0].value).meta == meta("bf16[4]"));
}

TEST_CASE("a view of what was written is made again") {
  GraphFixture f;
  const ValueId x = f.input("x", "f32[4,6]");
  const ValueId y = f.op("aten.relu.default", {x});
  const ValueId v = f.op("aten.view.default", {y}, {{"size", ints({24})}});
  f.op("aten.add_.Tensor", {y, x});
  f.output(f.op("aten.neg.default", {v}));
  CHECK(listing(f.build()) ==
        "relu(x) relu; view(relu) view; add(relu, x) add; view(add) view_1; "
        "neg(view_1) neg");
}

TEST_CASE("a write through a slice is scattered back") {
  GraphFixture f;
  const ValueId x = f.input("x", "f32[4,6]");
  const ValueId y = f.op("aten.relu.default", {x});
  const ValueId row =
      f.op("aten.select.int", {y},
           {{"dim", std::int64_t{0}}, {"index", std::int64_t{2}}});
  const ValueId part = f.op("aten.slice.Tensor", {row},
                            {{"dim", std::int64_t{0}},
                             {"start", std::int64_t{1}},
                             {"end", std::int64_t{4}}});
  f.op("aten.zero_.default", {part});
  f.output(y);
  const Graph graph = f.build();
  CHECK(listing(graph) ==
        "relu(x) relu; select(relu) select; slice(select) slice; "
        "zero(slice) zero; slice_scatter(select, zero) slice_scatter; "
        "select_scatter(relu, slice_scatter) select_scatter");
  const Node& scatter = graph.nodes()[4];
  CHECK(scatter.op.int_arg("start") == 1);
  CHECK(scatter.op.int_arg("end") == 4);
}

TEST_CASE("a write through a permutation or reshape is undone again") {
  GraphFixture f;
  const ValueId x = f.input("x", "f32[2,3,4]");
  const ValueId y = f.op("aten.relu.default", {x});
  const ValueId p =
      f.op("aten.permute.default", {y}, {{"dims", ints({2, 0, 1})}});
  const ValueId u =
      f.op("aten.unsqueeze.default", {p}, {{"dim", std::int64_t{0}}});
  f.op("aten.mul_.Scalar", {u}, {{"other", 2.0}});
  f.output(y);
  const Graph graph = f.build();
  CHECK(listing(graph) ==
        "relu(x) relu; permute(relu) permute; unsqueeze(permute) unsqueeze; "
        "mul(unsqueeze) mul; reshape(mul) reshape; "
        "permute(reshape) permute_1");
  CHECK(graph.nodes().back().op.ints_arg("dims") ==
        std::vector<std::int64_t>{1, 2, 0});
  CHECK(graph.value(graph.outputs()[0].value).meta.shape() == Dims{2, 3, 4});
}

TEST_CASE("siblings see a write through one another") {
  GraphFixture f;
  const ValueId x = f.input("x", "f32[6]");
  const ValueId y = f.op("aten.relu.default", {x});
  const auto halves =
      f.ops("aten.split.Tensor", {y}, {{"split_size", std::int64_t{3}}});
  const ValueId all = f.op("aten.view.default", {y}, {{"size", ints({2, 3})}});
  f.op("aten.zero_.default", {halves[1]});
  f.output(f.op("aten.neg.default", {all}));
  const Graph graph = f.build();
  CHECK(listing(graph) ==
        "relu(x) relu; split(relu) split_0 split_1; view(relu) view; "
        "zero(split_1) zero; slice_scatter(relu, zero) slice_scatter; "
        "view(slice_scatter) view_1; neg(view_1) neg");
  CHECK(graph.nodes()[4].op.int_arg("start") == 3);
  CHECK(graph.nodes()[4].op.int_arg("end") == 6);
}

TEST_CASE("what a write back makes and nobody uses goes away") {
  GraphFixture f;
  const ValueId x = f.input("x", "f32[4,6]");
  const ValueId y = f.op("aten.relu.default", {x});
  const ValueId row =
      f.op("aten.select.int", {y},
           {{"dim", std::int64_t{0}}, {"index", std::int64_t{2}}});
  f.op("aten.add_.Tensor", {row, row});
  f.output(row);
  const Graph graph = f.build();
  CHECK(listing(graph) ==
        "relu(x) relu; select(relu) select; add(select, select) add");
  for (std::size_t i = 0; i < graph.values().size(); ++i) {
    CHECK(graph.values()[i].id == ValueId(i));
    const Buffer& buffer = graph.buffer(graph.values()[i].buffer);
    CHECK(buffer.base().index() <= i);
  }
}

TEST_CASE("out= overloads write their out argument") {
  GraphFixture f;
  const ValueId x = f.input("x", "f32[4]");
  const ValueId out = f.op("aten.zeros_like.default", {x});
  const auto made = f.builder.add_op(
      "aten.add.out",
      {{"self", TensorArg{0}}, {"other", TensorArg{1}}, {"out", TensorArg{2}}},
      {x, x, out});
  REQUIRE(made);
  CHECK(made->front() == out);
  f.output(out);
  CHECK(listing(f.build()) == "zeros_like(x) zeros_like; add(x, x) add");
}

TEST_CASE("running statistics of a batch norm become updates") {
  GraphFixture f;
  const ValueId x = f.input("x", "f32[4,3,8,8]");
  const ValueId mean = f.input("mean", "f32[3]", InputKind::kBuffer);
  const ValueId var = f.input("var", "f32[3]", InputKind::kBuffer);
  const auto made = f.builder.add_op("aten._native_batch_norm_legit.default",
                                     {{"input", TensorArg{0}},
                                      {"weight", NoneArg{}},
                                      {"bias", NoneArg{}},
                                      {"running_mean", TensorArg{1}},
                                      {"running_var", TensorArg{2}},
                                      {"training", true},
                                      {"momentum", 0.1},
                                      {"eps", 1e-5}},
                                     {x, mean, var});
  REQUIRE(made);
  REQUIRE(made->size() == 3);
  f.output(made->front());
  const Graph graph = f.build();
  REQUIRE(graph.nodes().size() == 1);
  CHECK(graph.nodes()[0].op_name() ==
        "aten._native_batch_norm_legit_functional.default");
  CHECK(graph.update_of(mean) == graph.nodes()[0].outputs[3]);
  CHECK(graph.update_of(var) == graph.nodes()[0].outputs[4]);
}

TEST_CASE("what changes a shape in place becomes its functional form") {
  GraphFixture f;
  const ValueId x = f.input("x", "f32[1,4]");
  f.output(f.op("aten.resize_.default", {x}, {{"size", ints({4})}}));
  const Graph graph = f.build();
  CHECK(graph.nodes()[0].op_name() == "aten.resize.default");
}

TEST_CASE("views of views beyond all measure end in an error, not a hang") {
  GraphFixture f;
  const ValueId x = f.input("x", "f32[4]");
  ValueId v = f.op("aten.relu.default", {x});
  for (int i = 0; i < 2000; ++i) v = f.op("aten.alias.default", {v});
  const auto written = f.try_ops("aten.zero_.default", {v});
  REQUIRE_FALSE(written);
  CHECK(written.error().code == ErrorCode::kNotFunctional);
}
