// Second runs of forward operators, and the values that a compiled program keeps.
#include <shardprop/graph/recompute.h>

#include "graph/block_model.h"
#include "graph/graph_fixture.h"
#include "graph/marked_graph.h"
#include "graph/recompute/kept_values.h"
#include "graph/recompute/min_cut.h"
#include "graph/recompute/second_runs.h"
#include "support/result_checks.h"

#include <doctest/doctest.h>

#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

using testing::code_of;
using testing::value_of;

std::shared_ptr<const Graph> running_of(Graph graph, std::string_view rule,
                                        bool is_compiled = false) {
  const Running running{is_compiled, value_of(Recompute::parse(rule))};
  return value_of(running_graph(std::make_shared<const Graph>(std::move(graph)),
                                testing::standard_library(), running));
}

// The forward values that the backward phase reads.
std::set<std::string> kept(const Graph& graph) {
  const std::size_t last = last_forward(graph);
  std::set<std::string> out;
  for (const Node& node : graph.nodes()) {
    if (node.id.index() <= last) continue;
    for (const ValueId input : node.inputs) {
      const ValueId base = graph.buffer(graph.value(input).buffer).base();
      const Value& value = graph.value(base);
      if (!value.is_input() && value.producer.index() <= last) {
        out.insert(value.name);
      }
    }
  }
  return out;
}

std::size_t second_runs(const Graph& graph) {
  std::size_t count = 0;
  for (const Node& node : graph.nodes()) count += node.runs_again() ? 1 : 0;
  return count;
}

TEST_CASE("of several least cuts, the one next to the sink is found") {
  MinCut cut(4);
  cut.add_edge(0, 1, 5);
  cut.add_edge(1, 2, 2);
  cut.add_edge(2, 3, 2);
  CHECK(cut.reaches_sink(0, 3) == std::vector<bool>{false, false, false, true});
}

TEST_CASE("no cut is found where no edge may be cut") {
  MinCut cut(3);
  cut.add_edge(0, 1, MinCut::kUncut);
  cut.add_edge(1, 2, MinCut::kUncut);
  CHECK(cut.reaches_sink(0, 2).empty());
}

TEST_CASE("a rule is the text that it prints") {
  for (const char* text : {"none", "selective", "selective:megatron", "full",
                           "full:3", "modules:*.mlp", "model"}) {
    CHECK(to_string(value_of(Recompute::parse(text))) == text);
  }
  for (const char* text :
       {"", "all", "full:0", "full:", "full:x", "modules:"}) {
    CHECK(code_of(Recompute::parse(text)) == ErrorCode::kInvalidArgument);
  }
}

// A layer is x + mm(mm(x, u)^2, v). Its backward phase reads x, mm(x, u) and its
// square.
TEST_CASE("with full, the inputs of each block are kept and nothing else") {
  const Graph plain = BlockModel(true).build("dddd");
  CHECK(kept(plain).size() == 12);
  const auto full = running_of(BlockModel(true).build("dddd"), "full");
  // The inputs of the four layers; the backward phase of the head reads nothing.
  CHECK(kept(*full).size() == 4);
  // The first matmul and the square of each layer. The second matmul feeds the next
  // block only.
  CHECK(second_runs(*full) == 8);
  CHECK(kept(*running_of(BlockModel(true).build("dddd"), "full:1")).size() ==
        10);
}

TEST_CASE("a count of more blocks than there are is refused") {
  const auto running = [](const char* rule) {
    return running_graph(
        std::make_shared<const Graph>(BlockModel(true).build("ddss")),
        testing::standard_library(),
        {.recompute = value_of(Recompute::parse(rule))});
  };
  CHECK(running("full:2"));
  const auto more = running("full:9");
  REQUIRE_FALSE(more);
  CHECK(more.error().code == ErrorCode::kInvalidArgument);
  CHECK(more.error().message == "`full:9` names more blocks than there are");
  CHECK(more.error().location == "--recompute 'full:9'");
  const auto none = running("modules:no_such_module");
  REQUIRE_FALSE(none);
  CHECK(none.error().location == "--recompute 'modules:no_such_module'");
}

TEST_CASE("the longest row of blocks is counted") {
  CHECK(longest_row_of_blocks(BlockModel(true).build("dddd")) == 4);
  CHECK(longest_row_of_blocks(BlockModel(true).build("ddddsssss")) == 5);
  CHECK(longest_row_of_blocks(BlockModel(true).build("ds")) == 0);
  CHECK(has_rows_of_equal_length(BlockModel(true).build("dddd")));
  CHECK(has_rows_of_equal_length(BlockModel(true).build("ddddssss")));
  CHECK_FALSE(has_rows_of_equal_length(BlockModel(true).build("ddddsssss")));
}

TEST_CASE("a second run comes before its first reader, once for a block") {
  const auto full = running_of(BlockModel(true).build("ddd"), "full");
  for (const Node& node : full->nodes()) {
    if (!node.runs_again()) continue;
    const Node& first = full->node(node.second_run_of);
    CHECK(node.name == first.name + "_again");
    CHECK(node.phase == Phase::kBackward);
    CHECK(first.phase == Phase::kForward);
    CHECK(node.op_name() == first.op_name());
    CHECK(node.drawn_by() == first.drawn_by());
  }
}

TEST_CASE("with selective, every second matmul runs again") {
  const auto runs = running_of(BlockModel(true).build("dddd"), "selective");
  // The first matmul of a block is kept, its square runs again.
  CHECK(kept(*runs).size() == 8);
  CHECK(second_runs(*runs) == 4);
}

TEST_CASE("with model, a region of torch.utils.checkpoint keeps its inputs") {
  const Graph plain = BlockModel(true).build("dddd");
  const auto full = running_of(BlockModel(true).build("dddd"), "full");
  const auto all = running_of(with_marked_layers(plain, 4), "model");
  CHECK(kept(*all) == kept(*full));
  CHECK(second_runs(*all) == second_runs(*full));
  const auto two = running_of(with_marked_layers(plain, 2), "model");
  CHECK(kept(*two).size() == 8);
  CHECK(second_runs(*two) == 4);
  // The hash of a program does not depend on marks.
  CHECK(with_marked_layers(plain, 2).hash() ==
        with_marked_layers(plain, 0).hash());
}

TEST_CASE("with model, what a selective policy saves is kept") {
  const Graph plain = BlockModel(true).build("dddd");
  const auto saves_matmul = [](int place) { return place == 0; };
  const auto runs =
      running_of(with_marked_layers(plain, 4, saves_matmul), "model");
  CHECK(kept(*runs).size() == 8);
  CHECK(second_runs(*runs) == 4);
}

TEST_CASE("model needs a graph with marks") {
  const Running model{false, value_of(Recompute::parse("model"))};
  const auto refused =
      running_graph(std::make_shared<const Graph>(BlockModel(true).build("dd")),
                    testing::standard_library(), model);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kInvalidArgument);
  CHECK(refused.error().location == "--recompute 'model': graph `test`");
  CHECK(refused.error().notes ==
        std::vector<std::string>{
            "found 12 forward operators without a mark, expected marks on "
            "some"});
  CHECK(refused.error().help.find("shardprop.torch.export") !=
        std::string::npos);
  CHECK_FALSE(is_checkpointed(BlockModel(true).build("dd")));
}

// a = relu(x) and y = a @ w. The gradients need a > 0 and a.
TEST_CASE(
    "a result of a region that runs again is kept where another reads it") {
  GraphFixture at;
  const ValueId x = at.input("x", "f32[64,32]");
  const ValueId w = at.input("w", "f32[32,48]", InputKind::kParameter);
  const ValueId g = at.input("g", "f32[64,48]");
  const ValueId h = at.op("aten.exp.default", {x});
  const ValueId a = at.op("aten.sigmoid.default", {h});
  at.output(at.op("aten.mm.default", {a, w}));
  const ValueId ta =
      at.op("aten.permute.default", {a}, {{"dims", ints({1, 0})}});
  at.builder.add_output(
      {at.op("aten.mm.default", {ta, g}), OutputKind::kGradient, w});
  const ValueId tw =
      at.op("aten.permute.default", {w}, {{"dims", ints({1, 0})}});
  const ValueId ga = at.op("aten.mm.default", {g, tw});
  const ValueId gh = at.op("aten.sigmoid_backward.default", {ga, a});
  at.builder.add_output(
      {at.op("aten.mul.Tensor", {gh, h}), OutputKind::kGradient, x});
  const Graph plain = at.build();
  const auto marked = [&](bool is_matmul_inside) {
    return with_marks(plain, [&](const Node& node) -> NodeMarks {
      const bool is_inside = node.name == "exp" || node.name == "sigmoid" ||
                             (node.name == "mm" && is_matmul_inside);
      if (is_inside) return {{"0"}, {}};
      if (node.name == "sigmoid_backward") return {{}, "sigmoid"};
      if (node.name == "mul") return {{}, "exp"};
      if (node.phase == Phase::kBackward) return {{}, "mm"};
      return {};
    });
  };
  // The backward node of the matmul keeps the result of the region.
  const auto outside = running_of(marked(false), "model");
  CHECK(kept(*outside) == std::set<std::string>{"sigmoid"});
  CHECK(second_runs(*outside) == 1);
  const auto inside = running_of(marked(true), "model");
  CHECK(kept(*inside).empty());
  CHECK(second_runs(*inside) == 2);
}

TEST_CASE("a rule needs a backward phase and equal blocks") {
  const Running full{false, value_of(Recompute::parse("full"))};
  const auto refusal = [&](Graph graph) {
    return code_of(
        running_graph(std::make_shared<const Graph>(std::move(graph)),
                      testing::standard_library(), full));
  };
  CHECK(refusal(BlockModel(false).build("ddd")) == ErrorCode::kInvalidArgument);
  CHECK(refusal(BlockModel(true).build("ds")) == ErrorCode::kInvalidArgument);
}

TEST_CASE("a program without second runs is the graph itself") {
  const auto graph =
      std::make_shared<const Graph>(BlockModel(false).build("dd"));
  CHECK(value_of(running_graph(graph, testing::standard_library(),
                               {.is_compiled = true})) == graph);
}

// y = relu(x) @ w, z = exp(y). The gradient of z is a product with exp(y), and w's
// needs relu(x) in memory.
TEST_CASE("a compiled program keeps what the backward phase needs in memory") {
  GraphFixture at;
  const ValueId x = at.input("x", "f32[64,32]");
  const ValueId w = at.input("w", "f32[32,48]", InputKind::kParameter);
  const ValueId g = at.input("g", "f32[64,48]");
  const ValueId r = at.op("aten.relu.default", {x});
  const ValueId y = at.op("aten.mm.default", {r, w});
  const ValueId s = at.op("aten.sigmoid.default", {y});
  const ValueId z = at.op("aten.exp.default", {s});
  at.output(z);
  const ValueId gz = at.op("aten.mul.Tensor", {g, z});
  const ValueId gs = at.op("aten.sigmoid_backward.default", {gz, s});
  const ValueId t =
      at.op("aten.permute.default", {r}, {{"dims", ints({1, 0})}});
  at.builder.add_output(
      {at.op("aten.mm.default", {t, gs}), OutputKind::kGradient, w});
  const auto runs = running_of(at.build(), "none", true);
  // The matmul's result instead of two values that follow from it.
  CHECK(kept(*runs) == std::set<std::string>{"relu", "mm"});
  CHECK(second_runs(*runs) == 2);
}

}  // namespace
}  // namespace shardprop
