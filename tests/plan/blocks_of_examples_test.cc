// The repeated blocks of the example graphs.
#include "graph/analysis/blocks.h"

#include "support/result_checks.h"
#include "support/standard_library.h"

#include <doctest/doctest.h>
#include <shardprop/io/load_graph.h>

#include <map>
#include <string>

namespace shardprop {
namespace {

using testing::value_of;

// "3 + 2x5/7 + 4": a block of 3 nodes, a run of two blocks of 5 forward and 7
// backward nodes each, and a block of 4.
std::string described(const Graph& graph, const Blocks& blocks) {
  std::string out;
  for (const Block& block : blocks.blocks()) {
    if (block.run && block.place > 0) continue;
    if (!out.empty()) out += " + ";
    if (!block.run) {
      out += std::to_string(block.nodes.size());
      continue;
    }
    std::size_t backward = 0;
    for (const NodeId node : block.nodes) {
      backward += graph.node(node).phase == Phase::kBackward ? 1 : 0;
    }
    out += std::to_string(blocks.runs()[*block.run].count) + "x" +
           std::to_string(block.nodes.size() - backward);
    if (backward > 0) out += "/" + std::to_string(backward);
  }
  return out;
}

TEST_CASE("the layers of the example graphs are runs of equal blocks") {
  const std::map<std::string, std::string> expected = {
      {"llama3_8b_train", "32 + 32x77/147 + 79"},
      {"llama3_8b_infer", "15 + 32x77 + 12"},
      {"gpt2_124m_train", "30 + 12x37/100 + 79"},
      {"mixtral_infer", "15 + 32x128 + 12"},
      {"deepseek_moe_train", "16 + 2x135/200 + 79"},
      {"vit_b16_infer", "8 + 12x41 + 3"},
      {"t5_small_train", "99 + 6x54/118 + 48 + 6x97/187 + 120"},
      {"resnet50_train", "2020"},
      {"tiny/llama3_train", "28 + 2x71/143 + 73"},
      {"tiny/mlp_dynamic", "7"},
  };
  for (const auto& [name, runs] : expected) {
    CAPTURE(name);
    const Graph graph = value_of(load_graph(
        "examples/graphs/" + name + ".json.gz", testing::standard_library()));
    CHECK(described(graph, Blocks(graph)) == runs);
  }
}

}  // namespace
}  // namespace shardprop
