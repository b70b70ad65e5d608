// A shallow model whose blocks are repeated equals the deep model.
#include <shardprop/graph/repeat_blocks.h>

#include "graph/analysis/blocks.h"
#include "graph/block_model.h"
#include "graph/layer_numbers.h"
#include "support/result_checks.h"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;

Result<Graph> repeated(const Graph& graph, std::vector<std::int64_t> counts) {
  return repeat_blocks(graph, testing::standard_library(), counts);
}

// A value is the n-th input, or a result of the n-th node.
struct Origin {
  bool is_input = false;
  std::size_t n = 0;
  std::size_t output = 0;
  friend bool operator==(const Origin&, const Origin&) = default;
};

Origin origin(const Graph& graph, ValueId id) {
  const Value& value = graph.value(id);
  if (!value.is_input()) {
    return {false, value.producer.index(), value.output_index};
  }
  std::size_t n = 0;
  while (graph.inputs()[n].value != id) ++n;
  return {true, n};
}

// The values that two graphs give, and the inputs that they belong to.
std::vector<std::pair<Origin, Origin>> gradients(const Graph& graph) {
  std::vector<std::pair<Origin, Origin>> out;
  for (const GraphInput& input : graph.inputs()) {
    if (const auto gradient = graph.gradient_of(input.value)) {
      out.emplace_back(origin(graph, input.value), origin(graph, *gradient));
    }
  }
  return out;
}

// Checks that the graphs differ in names only.
void check_same_program(const Graph& a, const Graph& b) {
  REQUIRE(a.inputs().size() == b.inputs().size());
  for (std::size_t i = 0; i < a.inputs().size(); ++i) {
    CHECK(a.inputs()[i].kind == b.inputs()[i].kind);
    CHECK(a.value(a.inputs()[i].value).meta ==
          b.value(b.inputs()[i].value).meta);
  }
  REQUIRE(a.nodes().size() == b.nodes().size());
  for (std::size_t n = 0; n < a.nodes().size(); ++n) {
    const Node& one = a.nodes()[n];
    const Node& other = b.nodes()[n];
    CAPTURE(one.name);
    CHECK(one.op_name() == other.op_name());
    CHECK(one.op.args == other.op.args);
    CHECK(one.op.outputs == other.op.outputs);
    CHECK(one.phase == other.phase);
    REQUIRE(one.inputs.size() == other.inputs.size());
    for (std::size_t i = 0; i < one.inputs.size(); ++i) {
      CHECK(origin(a, one.inputs[i]) == origin(b, other.inputs[i]));
    }
  }
  CHECK(a.outputs().size() == b.outputs().size());
  CHECK(gradients(a) == gradients(b));
}

std::string times(const std::string& pattern, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += pattern;
  return out;
}

TEST_CASE("few blocks that stand for many are the deep model") {
  for (const bool trains : {false, true}) {
    for (const std::string pattern : {"d", "m", "dm"}) {
      for (const std::size_t few : {2, 3, 4}) {
        for (const std::size_t many : {few, few + 1, std::size_t{9}}) {
          CAPTURE(trains);
          CAPTURE(pattern);
          CAPTURE(few);
          CAPTURE(many);
          const Graph shallow = BlockModel(trains).build(times(pattern, few));
          const Graph deep = BlockModel(trains).build(times(pattern, many));
          check_same_program(
              value_of(repeated(shallow, {static_cast<std::int64_t>(many)})),
              deep);
        }
      }
    }
  }
}

TEST_CASE("each row of equal blocks has its own number") {
  const Graph shallow = BlockModel(true).build("dddsss");
  const Graph deep = BlockModel(true).build("dddddssss");
  check_same_program(value_of(repeated(shallow, {5, 4})), deep);
}

TEST_CASE("a graph that cannot be made longer is refused") {
  const auto refused = [](Result<Graph> made) {
    REQUIRE_FALSE(made.has_value());
    CHECK(made.error().code == ErrorCode::kInvalidArgument);
    return made.error().message;
  };
  const Graph graph = BlockModel(true).build("ddd");
  CHECK(refused(repeated(graph, {2})) ==
        "a row of blocks cannot become shorter");
  CHECK(refused(repeated(graph, {4, 4})) ==
        "the graph has 1 row of equal blocks");
  CHECK(refused(repeated(BlockModel(true).build("ds"), {4})) ==
        "the graph has no two equal blocks in a row");
  CHECK(refused(repeated(BlockModel(false).build("ddd", true), {4}))
            .find("outside reads each block") != std::string::npos);
}

TEST_CASE("numbers in names go on, and later layers are numbered anew") {
  const LayerNumbers one({{"layers.1.wq", "layers.2.wq"}}, 3);
  CHECK(one.of_copy("layers.1.attn.0", 2) == "layers.3.attn.0");
  CHECK(one.of_original("layers.2.wq") == "layers.5.wq");
  CHECK(one.of_original("layers.0.wq") == "layers.0.wq");
  CHECK(one.of_original("head.2") == "head.2");
  // A block of two layers.
  const LayerNumbers two(
      {{"h.1.moe", "h.3.moe"}, {"h.0.mlp", "h.2.mlp"}, {"norm", "norm"}}, 2);
  CHECK(two.of_copy("h.1.moe", 1) == "h.3.moe");
  CHECK(two.of_copy("h.0.mlp", 2) == "h.4.mlp");
  CHECK(two.of_original("h.3.moe") == "h.7.moe");
  // Names without a number stay.
  const LayerNumbers none({{"a.x", "b.x"}}, 2);
  CHECK(none.of_copy("a.x", 1) == "a.x");
  CHECK(none.of_original("b.x") == "b.x");
}

}  // namespace
}  // namespace shardprop
