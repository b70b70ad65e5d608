// Repeated blocks are found by structure. Names and order of the nodes do not
// matter.
#include "graph/analysis/blocks.h"

#include "graph/block_model.h"
#include "graph/graph_fixture.h"
#include "support/property.h"
#include "support/result_checks.h"

#include <shardprop/graph/recompute.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;

// Returns the graph with other names and its nodes in another order.
Graph shuffled(const Graph& graph, std::mt19937& draw) {
  GraphBuilder builder("shuffled", testing::standard_library());
  std::vector<ValueId> of(graph.values().size());
  int count = 0;
  for (const GraphInput& input : graph.inputs()) {
    const Value& value = graph.value(input.value);
    of[value.id.index()] = value_of(
        builder.add_input({.kind = input.kind,
                           .name = "i" + std::to_string(count++),
                           .qualified_name = "q" + std::to_string(count),
                           .meta = value.meta,
                           .persistent = input.persistent}));
  }
  std::vector<std::size_t> missing;
  std::vector<std::size_t> ready;
  for (const Node& node : graph.nodes()) {
    std::set<NodeId> producers;
    for (const ValueId input : node.inputs) {
      if (!graph.value(input).is_input()) {
        producers.insert(graph.value(input).producer);
      }
    }
    missing.push_back(producers.size());
    if (producers.empty()) ready.push_back(node.id.index());
  }
  while (!ready.empty()) {
    const std::size_t pick = draw() % ready.size();
    const std::size_t n = ready[pick];
    ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(pick));
    const Node& node = graph.nodes()[n];
    NewNode copy;
    copy.name = "o" + std::to_string(count++);
    copy.op = node.op;
    for (const ValueId input : node.inputs) {
      copy.inputs.push_back(of[input.index()]);
    }
    const auto produced = value_of(builder.add_node(std::move(copy)));
    std::set<NodeId> readers;
    for (std::size_t o = 0; o < produced.size(); ++o) {
      of[node.outputs[o].index()] = produced[o];
      for (const Use& use : graph.value(node.outputs[o]).consumers) {
        readers.insert(use.node);
      }
    }
    for (const NodeId reader : readers) {
      if (--missing[reader.index()] == 0) ready.push_back(reader.index());
    }
  }
  for (const GraphOutput& output : graph.outputs()) {
    builder.add_output(
        {of[output.value.index()], output.kind,
         output.target.valid() ? of[output.target.index()] : ValueId()});
  }
  return value_of(std::move(builder).build());
}

// Checks what blocks.h promises.
void check_blocks(const Graph& graph, const Blocks& blocks) {
  std::vector<int> times(graph.nodes().size(), 0);
  for (std::size_t b = 0; b < blocks.blocks().size(); ++b) {
    const Block& block = blocks.blocks()[b];
    std::set<NodeId> done;
    for (std::size_t p = 0; p < block.nodes.size(); ++p) {
      const NodeId node = block.nodes[p];
      if (!node.valid()) continue;
      ++times[node.index()];
      CHECK(blocks.block_of(node) == b);
      CHECK(blocks.position_of(node) == p);
      for (const ValueId input : graph.node(node).inputs) {
        const NodeId producer = graph.value(input).producer;
        if (producer.valid() && blocks.block_of(producer) == b &&
            !graph.node(producer).runs_again() &&
            !graph.node(node).runs_again()) {
          CHECK(done.contains(producer));
        }
      }
      done.insert(node);
    }
    for (const ValueId input : block.inputs) {
      CHECK(blocks.block_of_input(input) == b);
    }
  }
  CHECK(std::all_of(times.begin(), times.end(), [](int n) { return n == 1; }));
  for (const BlockRun& run : blocks.runs()) {
    CHECK(run.count >= 2);
    for (std::size_t b = run.first; b + 1 < run.first + run.count; ++b) {
      const Block& here = blocks.blocks()[b];
      const Block& next = blocks.blocks()[b + 1];
      REQUIRE(here.nodes.size() == next.nodes.size());
      REQUIRE(here.inputs.size() == next.inputs.size());
      for (std::size_t p = 0; p < here.nodes.size(); ++p) {
        if (here.code == next.code) {
          CHECK(here.nodes[p].valid() == next.nodes[p].valid());
        }
        if (!here.nodes[p].valid() || !next.nodes[p].valid()) continue;
        const Node& node = graph.node(here.nodes[p]);
        const Node& other = graph.node(next.nodes[p]);
        CHECK(blocks.counterpart(node.id, b + 1) == other.id);
        CHECK(node.runs_again() == other.runs_again());
        CHECK(node.op_name() == other.op_name());
        CHECK(node.op.args == other.op.args);
        CHECK(node.op.inputs == other.op.inputs);
        CHECK(node.op.outputs == other.op.outputs);
        CHECK(node.phase == other.phase);
      }
    }
  }
}

// "1 + 3x5 + 1": the sizes of the blocks in nodes.
std::string summary(const Blocks& blocks) {
  std::string out;
  for (std::size_t b = 0; b < blocks.blocks().size(); ++b) {
    const Block& block = blocks.blocks()[b];
    if (block.run && block.place > 0) continue;
    if (!out.empty()) out += " + ";
    if (block.run) {
      out += std::to_string(blocks.runs()[*block.run].count) + "x";
    }
    out += std::to_string(block.nodes.size());
  }
  return out;
}

TEST_CASE("equal layers are one run, forward and backward") {
  for (const bool trains : {false, true}) {
    for (const std::size_t layers : {2, 3, 8}) {
      CAPTURE(trains);
      CAPTURE(layers);
      const Graph graph = BlockModel(trains).build(std::string(layers, 'd'));
      const Blocks blocks(graph);
      check_blocks(graph, blocks);
      REQUIRE(blocks.runs().size() == 1);
      CHECK(blocks.runs()[0].count == layers);
      // Five forward nodes, and ten backward nodes.
      CHECK(blocks.blocks()[1].nodes.size() == (trains ? 15 : 5));
      CHECK(blocks.blocks()[1].inputs.size() == 2);
      CHECK(blocks.blocks().size() == layers + 2);
    }
  }
}

TEST_CASE("an alternating pattern is a run of super-blocks") {
  for (const bool trains : {false, true}) {
    CAPTURE(trains);
    const Graph graph = BlockModel(trains).build("dmdmdmdm");
    const Blocks blocks(graph);
    check_blocks(graph, blocks);
    REQUIRE(blocks.runs().size() == 1);
    CHECK(blocks.runs()[0].count == 4);
    CHECK(blocks.blocks()[blocks.runs()[0].first].inputs.size() == 6);
  }
}

TEST_CASE("layers of two kinds in a row are two runs") {
  const Graph graph = BlockModel(true).build("ddddssss");
  const Blocks blocks(graph);
  check_blocks(graph, blocks);
  REQUIRE(blocks.runs().size() == 2);
  CHECK(blocks.runs()[0].count == 4);
  CHECK(blocks.runs()[1].count == 4);
  CHECK(blocks.runs()[0].code != blocks.runs()[1].code);
}

TEST_CASE("layers that all differ are no run, and can be divided by weight") {
  GraphFixture at;
  ValueId x = at.input("x", "f32[8,1]");
  for (int i = 1; i < 9; ++i) {
    const std::string meta =
        "f32[" + std::to_string(i) + "," + std::to_string(i + 1) + "]";
    x = at.op("aten.mm.default",
              {x, at.input(("w" + std::to_string(i)).c_str(), meta.c_str(),
                           InputKind::kParameter)});
  }
  at.output(x);
  const Graph graph = at.build();
  CHECK(Blocks(graph).runs().empty());
  CHECK(Blocks(graph).blocks().size() == 1);
  const std::vector<std::int64_t> equal(8, 7);
  const Blocks halves(graph, equal, 2);
  check_blocks(graph, halves);
  CHECK(summary(halves) == "4 + 4");
  CHECK(halves.blocks()[1].inputs.size() == 4);
  const std::vector<std::int64_t> one{0, 0, 90, 1, 1, 1, 1, 1};
  CHECK(summary(Blocks(graph, one, 4)) == "2 + 1 + 5");
}

TEST_CASE("names and the order of nodes do not matter") {
  std::mt19937 draw(5);
  for (const std::string pattern : {"dddd", "dmdmdm", "dddsss", "mmmmm"}) {
    for (const bool trains : {false, true}) {
      const Graph graph = BlockModel(trains).build(pattern);
      const Blocks blocks(graph);
      for (int i = 0; i < testing::scaled(4); ++i) {
        CAPTURE(pattern);
        const Graph other = shuffled(graph, draw);
        const Blocks found(other);
        check_blocks(other, found);
        CHECK(summary(found) == summary(blocks));
        REQUIRE(found.runs().size() == blocks.runs().size());
        for (std::size_t r = 0; r < blocks.runs().size(); ++r) {
          CHECK(found.runs()[r].code == blocks.runs()[r].code);
        }
      }
    }
  }
}

// Returns the number of second runs of each block, as "0 2 2 0".
std::string second_runs(const Graph& graph, const Blocks& blocks) {
  std::string out;
  for (const Block& block : blocks.blocks()) {
    const auto count =
        std::count_if(block.nodes.begin(), block.nodes.end(), [&](NodeId node) {
          return node.valid() && graph.node(node).runs_again();
        });
    out += (out.empty() ? "" : " ") + std::to_string(count);
  }
  return out;
}

TEST_CASE("second runs leave the blocks as they are") {
  const auto plain =
      std::make_shared<const Graph>(BlockModel(true).build("ddddd"));
  const Blocks of_plain(*plain);
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"full", "0 2 2 2 2 2 0"},
      {"full:2", "0 2 2 0 0 0 0"},
      {"full:4", "0 2 2 2 2 0 0"},
      {"selective", "0 1 1 1 1 1 0"}};
  for (const auto& [rule, counts] : expected) {
    for (const bool is_compiled : {false, true}) {
      CAPTURE(rule);
      CAPTURE(is_compiled);
      const auto graph = value_of(
          running_graph(plain, testing::standard_library(),
                        {is_compiled, value_of(Recompute::parse(rule))}));
      const Blocks blocks(*graph);
      check_blocks(*graph, blocks);
      REQUIRE(blocks.runs().size() == 1);
      CHECK(blocks.runs()[0].code == of_plain.runs()[0].code);
      CHECK(blocks.runs()[0].count == 5);
      if (!is_compiled) CHECK(second_runs(*graph, blocks) == counts);
    }
  }
}

TEST_CASE("blocks with the same second runs have one code") {
  const auto graph = value_of(running_graph(
      std::make_shared<const Graph>(BlockModel(true).build("ddddd")),
      testing::standard_library(),
      {.recompute = value_of(Recompute::parse("full:2"))}));
  const Blocks blocks(*graph);
  const auto code = [&](std::size_t b) { return blocks.blocks()[b].code; };
  CHECK(code(1) == code(2));
  CHECK(code(2) != code(3));
  CHECK(code(3) == code(4));
  CHECK(code(4) == code(5));
}

TEST_CASE("a graph without nodes has no blocks") {
  GraphFixture at;
  const ValueId x = at.input("x", "f32[8,1]");
  at.output(x);
  CHECK(Blocks(at.build()).blocks().empty());
}

}  // namespace
}  // namespace shardprop
