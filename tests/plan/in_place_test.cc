// Which operators write their result into the memory of an operand.
#include "graph/analysis/in_place.h"
#include "plan/small_graphs.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/graph/graph_builder.h>

#include <optional>
#include <string>
#include <vector>

namespace shardprop {
namespace {

using test::add_input;
using test::add_op;
using test::written;
using testing::standard_library;
using testing::value_of;

// The nodes that write in place, by name.
std::string written_in_place(GraphBuilder&& b) {
  const Graph graph = value_of(std::move(b).build());
  std::vector<std::optional<IndexSpace>> spaces(graph.nodes().size());
  std::vector<const IndexSpace*> known;
  for (const Node& node : graph.nodes()) {
    std::optional<IndexSpace>& space = spaces[node.id.index()];
    space = value_of(standard_library().index_space(node.op));
    known.push_back(&*space);
  }
  const InPlace in_place(graph, known);
  std::string out;
  for (const Node& node : graph.nodes()) {
    if (!in_place.operand(node)) continue;
    CHECK(*in_place.operand(node) == 0);
    out += node.name + " ";
  }
  return out;
}

// The inputs of a decoding step.
struct DecodingStep {
  explicit DecodingStep(const char* graph = "step",
                        const char* cache_meta = "f32[8,4]")
      : b(graph, standard_library()),
        cache(add_input(b, InputKind::kBuffer, "cache", cache_meta)),
        at(add_input(b, InputKind::kUser, "at", "i64[1]")),
        token(add_input(b, InputKind::kUser, "token", "f32[1,4]")) {}

  ValueId unary(const char* op, ValueId x, const char* name) {
    return add_op(b, op, {{"", TensorArg{0}}}, {x}, name);
  }
  ValueId write(ValueId into, const char* name) {
    return written(b, into, at, token, name);
  }
  ValueId dropped(ValueId x, const char* name) {
    return add_op(b, "aten.dropout.default",
                  {{"", TensorArg{0}}, {"p", 0.5}, {"train", false}}, {x},
                  name);
  }
  DecodingStep& update(ValueId target, ValueId by) {
    b.add_output({.value = by, .kind = OutputKind::kUpdate, .target = target});
    return *this;
  }
  DecodingStep& output(ValueId value) {
    b.add_output({.value = value});
    return *this;
  }
  std::string in_place() { return written_in_place(std::move(b)); }

  GraphBuilder b;
  ValueId cache;
  ValueId at;
  ValueId token;
};

TEST_CASE("a buffer that is updated is written in place, write after write") {
  DecodingStep step;
  const ValueId first = step.write(step.cache, "first");
  const ValueId second = step.write(first, "second");
  const ValueId y = step.unary("aten.neg.default", second, "y");
  CHECK(step.output(y).update(step.cache, second).in_place() ==
        "first second ");
}

TEST_CASE("a buffer that is not updated keeps its values") {
  DecodingStep step;
  const ValueId next = step.write(step.cache, "next");
  CHECK(step.output(step.unary("aten.neg.default", next, "y")).in_place() ==
        "");
}

TEST_CASE(
    "a tensor that is read again, or through a view, is not overwritten") {
  for (const char* op : {"aten.neg.default", "aten.t.default"}) {
    CAPTURE(op);
    DecodingStep step;
    const ValueId view = step.unary("aten.t.default", step.cache, "view");
    const ValueId next = step.write(step.cache, "next");
    const ValueId old = step.unary(op, view, "old");
    CHECK(step.output(old).update(step.cache, next).in_place() == "");
  }
}

// PyTorch's dropout returns its operand outside of training.
TEST_CASE("an operator that may return its operand keeps the memory") {
  for (const bool is_read_later : {false, true}) {
    DecodingStep step;
    const ValueId same = step.dropped(step.cache, "same");
    const ValueId sum = step.unary("aten.sum.default", same, "sum");
    const ValueId next = step.write(step.cache, "next");
    if (is_read_later) {
      step.output(step.unary("aten.neg.default", same, "later"));
    } else {
      step.output(step.unary("aten.neg.default", next, "later"));
    }
    // The sum is read by no later node.
    CHECK(sum.valid());
    CHECK(step.update(step.cache, next).in_place() ==
          (is_read_later ? "" : "next "));
  }
}

TEST_CASE("a result that leaves the program has memory of its own") {
  DecodingStep step;
  const ValueId next = step.write(step.cache, "next");
  CHECK(step.output(next).update(step.cache, next).in_place() == "");

  DecodingStep viewed;
  const ValueId written = viewed.write(viewed.cache, "next");
  const ValueId view = viewed.unary("aten.t.default", written, "view");
  CHECK(viewed.output(view).update(viewed.cache, written).in_place() == "");

  // Copied into the other buffer, it could be lost before it is read.
  DecodingStep swapped;
  const ValueId other =
      add_input(swapped.b, InputKind::kBuffer, "other", "f32[8,4]");
  const ValueId crossed = swapped.write(swapped.cache, "next");
  const ValueId y = swapped.unary("aten.neg.default", other, "y");
  CHECK(swapped.update(other, crossed).update(swapped.cache, y).in_place() ==
        "");
}

TEST_CASE("a part of a tensor and repeated elements are not written in place") {
  DecodingStep part("part", "f32[16,4]");
  const ValueId rows = add_op(part.b, "aten.slice.Tensor",
                              {{"", TensorArg{0}},
                               {"dim", std::int64_t{0}},
                               {"start", std::int64_t{0}},
                               {"end", std::int64_t{8}}},
                              {part.cache}, "rows");
  const ValueId next = part.write(rows, "next");
  const ValueId whole =
      add_op(part.b, "aten.cat.default",
             {{"", std::vector<TensorArg>{{0}, {1}}}, {"dim", std::int64_t{0}}},
             {next, next}, "whole");
  CHECK(part.update(part.cache, whole).in_place() == "");

  DecodingStep repeated("repeated", "f32[1,4]");
  const ValueId wide =
      add_op(repeated.b, "aten.expand.default",
             {{"", TensorArg{0}}, {"size", std::vector<std::int64_t>{8, 4}}},
             {repeated.cache}, "wide");
  const ValueId made = repeated.write(wide, "next");
  const ValueId sum = add_op(repeated.b, "aten.sum.dim_IntList",
                             {{"", TensorArg{0}},
                              {"dim", std::vector<std::int64_t>{0}},
                              {"keepdim", true}},
                             {made}, "sum");
  CHECK(repeated.update(repeated.cache, sum).in_place() == "");
}

}  // namespace
}  // namespace shardprop
