// Writes through each kind of view, and past what only looks like one.

#include <doctest/doctest.h>
#include <shardprop/graph/graph_builder.h>

#include "graph/graph_fixture.h"

#include <string>
#include <tuple>
#include <utility>
#include <vector>

using namespace shardprop;  // NOLINT(google-build-using-namespace)

namespace {

using Arguments = std::vector<GivenArgument>;

Argument integer(std::int64_t value) { return value; }

// y = relu(x); v = view(y); v.zero_(); return y
Graph written_through(const char* input, const char* view, Arguments rest) {
  CAPTURE(std::string(view));
  GraphFixture f;
  const ValueId y = f.op("aten.relu.default", {f.input("x", input)});
  f.op("aten.zero_.default", {f.op(view, {y}, std::move(rest))});
  f.output(y);
  return f.build();
}

// The operator that carries the write back, and its operands.
std::string last_step(const Graph& graph) {
  const std::string all = listing(graph);
  const std::size_t semicolon = all.rfind("; ");
  return all.substr(semicolon + 2);
}

}  // namespace

TEST_CASE("a write through dims in another order is permuted back") {
  struct Case {
    const char* view;
    Arguments rest;
    std::vector<std::int64_t> back;
  };
  const std::vector<Case> cases = {
      {"aten.movedim.int",
       {{"source", integer(0)}, {"destination", integer(2)}},
       {2, 0, 1}},
      {"aten.moveaxis.intlist",
       {{"source", ints({0, 1})}, {"destination", ints({1, 2})}},
       {1, 2, 0}},
      {"aten.swapaxes.default",
       {{"axis0", integer(0)}, {"axis1", integer(-1)}},
       {2, 1, 0}},
      {"aten.swapdims.default",
       {{"dim0", integer(1)}, {"dim1", integer(2)}},
       {0, 2, 1}},
      {"aten.adjoint.default", {}, {0, 2, 1}},
      {"aten.mT.default", {}, {0, 2, 1}},
      {"aten.numpy_T.default", {}, {2, 1, 0}},
      {"aten.permute.default", {{"dims", ints({2, 0, 1})}}, {1, 2, 0}},
      {"aten.transpose.int",
       {{"dim0", integer(0)}, {"dim1", integer(2)}},
       {2, 1, 0}}};
  for (const Case& one : cases) {
    const Graph graph = written_through("f32[2,3,4]", one.view, one.rest);
    CHECK(last_step(graph) == "permute(zero) " + graph.nodes().back().name);
    CHECK(graph.nodes().back().op.ints_arg("dims") == one.back);
    CHECK(graph.value(graph.outputs()[0].value).meta.shape() == Dims{2, 3, 4});
  }
}

TEST_CASE("dims of size 1 change places with the others") {
  const Graph graph = written_through("f32[2,1,4]", "aten.permute.default",
                                      {{"dims", ints({2, 1, 0})}});
  CHECK(last_step(graph) == "permute(zero) permute_1");
  CHECK(graph.value(graph.outputs()[0].value).meta.shape() == Dims{2, 1, 4});
}

TEST_CASE("a write through all elements in their order is reshaped back") {
  for (const auto& [view, rest] :
       std::vector<std::pair<const char*, Arguments>>{
           {"aten.ravel.default", {}},
           {"aten.flatten.using_ints", {}},
           {"aten.reshape.default", {{"shape", ints({6, 4})}}},
           {"aten.unflatten.int",
            {{"dim", integer(1)}, {"sizes", ints({2, 3})}}}}) {
    const Graph graph = written_through("f32[4,6]", view, rest);
    CHECK(last_step(graph).starts_with("reshape(zero) reshape"));
    CHECK(graph.value(graph.outputs()[0].value).meta.shape() == Dims{4, 6});
  }
}

TEST_CASE("windows that share no element are written through") {
  const Graph graph = written_through(
      "f32[8]", "aten.unfold.default",
      {{"dimension", integer(0)}, {"size", integer(2)}, {"step", integer(2)}});
  CHECK(last_step(graph).starts_with("reshape(zero)"));
}

TEST_CASE("a write through another name of a tensor writes the tensor") {
  for (const char* view : {"aten.positive.default", "aten.alias.default",
                           "aten.detach.default", "aten.contiguous.default",
                           "aten.conj.default", "aten.resolve_neg.default"}) {
    CHECK(
        last_step(written_through("f32[4,6]", view, {})).starts_with("zero("));
  }
}

TEST_CASE("a write through part of a range is scattered into it") {
  const Graph graph = written_through(
      "f32[4,6]", "aten.narrow.default",
      {{"dim", integer(-1)}, {"start", integer(-4)}, {"length", integer(3)}});
  CHECK(last_step(graph) == "slice_scatter(relu, zero) slice_scatter");
  const OpSchema& back = graph.nodes().back().op;
  CHECK(back.int_arg("dim") == 1);
  CHECK(back.int_arg("start") == 2);
  CHECK(back.int_arg("end") == 5);
}

TEST_CASE("a write through a diagonal is scattered into it") {
  for (const char* view :
       {"aten.diagonal.default", "aten.linalg_diagonal.default"}) {
    const Graph graph =
        written_through("f32[4,6]", view, {{"offset", integer(1)}});
    CHECK(last_step(graph) == "diagonal_scatter(relu, zero) diagonal_scatter");
    CHECK(graph.nodes().back().op.int_arg("offset") == 1);
  }
}

TEST_CASE("a write through a piece is scattered to where it was cut out") {
  for (const auto& [view, rest] :
       std::vector<std::pair<const char*, Arguments>>{
           {"aten.hsplit.int", {{"sections", integer(3)}}},
           {"aten.tensor_split.sections",
            {{"sections", integer(3)}, {"dim", integer(1)}}},
           {"aten.chunk.default",
            {{"chunks", integer(3)}, {"dim", integer(-1)}}},
           {"aten.split_with_sizes.default",
            {{"split_sizes", ints({2, 2, 2})}, {"dim", integer(1)}}}}) {
    CAPTURE(std::string(view));
    GraphFixture f;
    const ValueId y = f.op("aten.relu.default", {f.input("x", "f32[4,6]")});
    f.op("aten.zero_.default", {f.ops(view, {y}, rest)[1]});
    f.output(y);
    const Graph graph = f.build();
    const OpSchema& back = graph.nodes().back().op;
    REQUIRE(back.name() == "aten.slice_scatter.default");
    CHECK(back.int_arg("dim") == 1);
    CHECK(back.int_arg("start") == 2);
    CHECK(back.int_arg("end") == 4);
  }
}

TEST_CASE("what has to copy does not see a later write") {
  for (const auto& [view, rest] :
       std::vector<std::pair<const char*, Arguments>>{
           {"aten.ravel.default", {}},
           {"aten.flatten.using_ints", {}},
           {"aten.contiguous.default", {}},
           {"aten.reshape.default", {{"shape", ints({4, 12})}}},
           {"aten.to.dtype", {{"dtype", DType::kF64}}},
           {"aten.to.dtype", {{"dtype", DType::kF32}, {"copy", true}}}}) {
    CAPTURE(std::string(view));
    GraphFixture f;
    const ValueId c = f.op("aten.clone.default", {f.input("x", "f32[8,6]")});
    const ValueId t = f.op("aten.t.default", {c});
    const ValueId v = f.op(view, {t}, rest);
    f.op("aten.zero_.default", {c});
    f.output(f.op("aten.neg.default", {v}));
    const Graph graph = f.build();
    CHECK_FALSE(graph.value(graph.nodes()[2].outputs[0]).is_view());
    CHECK(listing(graph).ends_with("zero(clone) zero; neg(" +
                                   graph.nodes()[2].name + ") neg"));
  }
}

TEST_CASE("what has no row and makes elements of another width is a copy") {
  GraphFixture f;
  const ValueId c = f.op("aten.clone.default", {f.input("x", "f32[4]")});
  NewNode cast;
  auto op = make_op_schema(
      f.library.find("aten._autocast_to_reduced_precision.default"),
      {{"self", TensorArg{0}},
       {"cuda_enabled", true},
       {"cpu_enabled", true},
       {"cuda_dtype", DType::kBF16},
       {"cpu_dtype", DType::kBF16}},
      {meta("f32[4]")});
  REQUIRE(op);
  cast.op = *std::move(op);
  set_results(cast.op, {meta("bf16[4]")});
  cast.inputs = {c};
  const auto made = f.builder.add_node(std::move(cast));
  REQUIRE(made);
  f.op("aten.zero_.default", {c});
  f.output(f.op("aten.neg.default", {made->front()}));
  const Graph graph = f.build();
  CHECK_FALSE(graph.value(graph.nodes()[1].outputs[0]).is_view());
  CHECK(graph.nodes().size() == 4);
}

TEST_CASE("what can be a view of a transposition sees a later write") {
  for (const auto& [view, rest] :
       std::vector<std::pair<const char*, Arguments>>{
           {"aten.reshape.default", {{"shape", ints({6, 2, 4})}}},
           {"aten.contiguous.default", {}},
           {"aten.to.dtype", {{"dtype", DType::kF32}}},
           {"aten.t.default", {}}}) {
    CAPTURE(std::string(view));
    GraphFixture f;
    const ValueId c = f.op("aten.clone.default", {f.input("x", "f32[8,6]")});
    const bool moves = std::string(view) != "aten.contiguous.default";
    const ValueId t = moves ? f.op("aten.t.default", {c}) : c;
    const ValueId v = f.op(view, {t}, rest);
    f.op("aten.zero_.default", {c});
    f.output(f.op("aten.neg.default", {v}));
    const Graph graph = f.build();
    const Node& last = graph.nodes().back();
    const Node& again = graph.node(graph.value(last.inputs[0]).producer);
    CHECK(again.op_name() == view);
    CHECK(graph.value(again.outputs[0]).is_view());
    CHECK(listing(graph).find("(zero)") != std::string::npos);
  }
}

TEST_CASE("a write through a view that has no inverse stays one operator") {
  const auto kept = [](const char* input, const char* view, Arguments rest) {
    CAPTURE(std::string(view));
    GraphFixture f;
    const ValueId y = f.op("aten.relu.default", {f.input("x", input)});
    const ValueId v = f.op(view, {y}, std::move(rest));
    f.op("aten.zero_.default", {v});
    f.output(f.op("aten.neg.default", {y}));
    const Graph graph = f.build();
    const Node& written = graph.nodes()[graph.nodes().size() - 2];
    CHECK(written.op_name() == "shardprop.write_through_view.default");
    CHECK(written.op.outputs[0] == meta(input));
    CHECK(graph.nodes().back().inputs[0] == written.outputs[0]);
    REQUIRE(graph.notes().size() == 1);
    const auto* note = std::get_if<WriteThroughViewNote>(&graph.notes()[0]);
    REQUIRE(note != nullptr);
    CHECK(note->op == view);
  };
  kept("f32[8]", "aten.unfold.default",
       {{"dimension", integer(0)}, {"size", integer(3)}, {"step", integer(1)}});
  kept("f32[1,4]", "aten.expand.default", {{"size", ints({3, 4})}});
  kept("f32[4,4]", "aten.as_strided.default",
       {{"size", ints({4})}, {"stride", ints({5})}});
}

TEST_CASE("a view of bytes is written through by the view back") {
  for (const auto& [input, view, dtype, back] : std::vector<
           std::tuple<const char*, const char*, Arguments, const char*>>{
           {"f32[4]",
            "aten.view.dtype",
            {{"dtype", DType::kI32}},
            "aten.view.dtype"},
           {"f32[4,6]",
            "aten.view.dtype",
            {{"dtype", DType::kF64}},
            "aten.view.dtype"},
           {"c64[4]",
            "aten.view_as_real.default",
            {},
            "aten.view_as_complex.default"},
           {"f32[4,2]",
            "aten.view_as_complex.default",
            {},
            "aten.view_as_real.default"}}) {
    CAPTURE(std::string(input));
    GraphFixture f;
    const ValueId y = f.op("aten.clone.default", {f.input("x", input)});
    f.op("aten.zero_.default", {f.op(view, {y}, dtype)});
    f.output(f.op("aten.neg.default", {y}));
    const Graph graph = f.build();
    const Node& written = graph.nodes()[graph.nodes().size() - 2];
    CHECK(written.op_name() == back);
    CHECK(written.op.outputs[0].shape() == meta(input).shape());
    CHECK(written.op.outputs[0].dtype() == meta(input).dtype());
    CHECK(graph.nodes().back().inputs[0] == written.outputs[0]);
  }
}

TEST_CASE("steps that a program does not hold give way to its names") {
  GraphFixture f;
  const ValueId y = f.op("aten.clone.default", {f.input("x", "f32[4,6]")});
  const ValueId v = f.op("aten.t.default", {y});
  f.op("aten.zero_.default", {v});
  // The write came back to `y` by a `permute`, which a node is called now.
  for (const char* name : {"permute", "permute_1"}) {
    NewNode named;
    auto op = make_op_schema(f.library.find("aten.neg.default"),
                             {{"", TensorArg{0}}}, {meta("f32[4,6]")});
    REQUIRE(op);
    named.name = name;
    named.op = *std::move(op);
    set_results(named.op, {meta("f32[4,6]")});
    named.inputs = {y};
    const auto made = f.builder.add_node(std::move(named));
    REQUIRE(made);
    f.output(made->front());
  }
  const Graph graph = f.build();
  for (const char* name : {"permute", "permute_1"}) {
    const Node& node =
        graph.node(graph.value(*graph.find_value(name)).producer);
    CHECK(node.op_name() == "aten.neg.default");
    CHECK(graph.node(graph.value(node.inputs[0]).producer).op_name() ==
          "aten.permute.default");
  }
}

TEST_CASE("a view of conjugates has no inverse") {
  GraphFixture f;
  const ValueId x = f.input("x", "c64[4,6]");
  const ValueId y = f.op("aten.clone.default", {x});
  for (const char* view : {"aten.adjoint.default", "aten.conj.default"}) {
    f.op("aten.zero_.default", {f.op(view, {y})});
  }
  f.op("aten.zero_.default", {f.op("aten.mT.default", {y})});
  f.output(y);
  const Graph graph = f.build();
  REQUIRE(graph.notes().size() == 2);
  for (const ReadingNote& note : graph.notes()) {
    CHECK(code_of(note) == "write_through_view");
  }
  CHECK(last_step(graph).starts_with("permute("));
}
