#include "graph/analysis/blocks.h"

#include "graph/analysis/block_runs.h"

#include <shardprop/base/hash.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace shardprop {
namespace {

using Element = GraphStructure::Element;

// BlockAssembly lists the blocks of the runs, and the parts between them. Part
// r comes before run r.
class BlockAssembly {
 public:
  BlockAssembly(const Graph& graph, const GraphStructure& structure,
                const std::vector<RepeatedRun>& runs)
      : graph_(graph),
        structure_(structure),
        runs_(runs),
        run_of_(structure.size(), kNoRun),
        part_(structure.size(), 0) {
    for (std::size_t r = 0; r < runs.size(); ++r) {
      for (const auto& position : runs[r].positions) {
        for (const Element e : position) run_of_[e] = r;
      }
    }
    find_parts();
  }

  void list(std::vector<Block>& blocks, std::vector<BlockRun>& runs) const {
    const std::vector<Block> parts = part_blocks();
    for (std::size_t r = 0; r < parts.size(); ++r) {
      if (!parts[r].nodes.empty() || !parts[r].inputs.empty()) {
        blocks.push_back(parts[r]);
      }
      if (r == runs_.size()) break;
      runs.push_back({blocks.size(), runs_[r].num_blocks(), runs_[r].code});
      for (std::size_t b = 0; b < runs_[r].num_blocks(); ++b) {
        Block& block = blocks.emplace_back();
        block.run = r;
        block.place = b;
        for (const auto& position : runs_[r].positions) {
          add(position[b], block);
        }
      }
    }
  }

 private:
  static constexpr std::size_t kNoRun = ~std::size_t{0};

  void find_parts() {
    for (const Element n : structure_.by_depth()) {
      const bool backward = structure_.is_backward(n);
      if (backward) part_[n] = runs_.size();
      for (const auto& operand : structure_.operands(n)) {
        const Element from = operand.producer;
        if (!structure_.is_node(from) ||
            structure_.is_backward(from) != backward) {
          continue;
        }
        const std::size_t run = run_of_[from];
        if (backward) {
          part_[n] = std::min(part_[n], run == kNoRun ? part_[from] : run);
        } else {
          part_[n] = std::max(part_[n], run == kNoRun ? part_[from] : run + 1);
        }
      }
    }
    for (auto i = static_cast<Element>(structure_.num_nodes());
         i < structure_.size(); ++i) {
      part_[i] = runs_.size();
      for (const auto& reader : structure_.readers(i)) {
        const std::size_t run = run_of_[reader.reader];
        part_[i] =
            std::min(part_[i], run == kNoRun ? part_[reader.reader] : run);
      }
    }
  }

  void add(Element element, Block& block) const {
    if (structure_.is_node(element)) {
      block.nodes.emplace_back(element);
    } else {
      block.inputs.push_back(
          graph_.inputs()[element - structure_.num_nodes()].value);
    }
  }

  std::vector<Block> part_blocks() const {
    std::vector<Block> parts(runs_.size() + 1);
    for (const bool backward : {false, true}) {
      for (Element n = 0; n < structure_.num_nodes(); ++n) {
        if (run_of_[n] != kNoRun || structure_.is_backward(n) != backward ||
            structure_.is_second_run(n)) {
          continue;
        }
        add(n, parts[part_[n]]);
      }
    }
    for (auto i = static_cast<Element>(structure_.num_nodes());
         i < structure_.size(); ++i) {
      if (run_of_[i] == kNoRun && !structure_.readers(i).empty()) {
        add(i, parts[part_[i]]);
      }
    }
    return parts;
  }

  const Graph& graph_;
  const GraphStructure& structure_;
  const std::vector<RepeatedRun>& runs_;
  std::vector<std::size_t> run_of_;  // by element
  std::vector<std::size_t> part_;
};

// SecondRunPlaces gives second runs their positions in the blocks.
class SecondRunPlaces {
 public:
  SecondRunPlaces(const Graph& graph, const Blocks& blocks)
      : graph_(graph), blocks_(blocks), by_run_(blocks.runs().size()) {
    of_block_.resize(blocks.blocks().size());
  }

  // Precondition: all readers have a block.
  std::size_t block_of_reader(const Node& node) const {
    NodeId first;
    for (const ValueId output : node.outputs) {
      for (const Use& use : graph_.value(output).consumers) {
        if (!first.valid() || use.node.index() < first.index()) {
          first = use.node;
        }
      }
    }
    return blocks_.block_of(first.valid() ? first : node.second_run_of);
  }

  // The second runs come from the last one to the first.
  void add(const Node& node) {
    const std::size_t b = blocks_.block_of(node.id);
    const Block& block = blocks_.blocks()[b];
    std::size_t place = of_block_[b].size();
    if (block.run) {
      auto& places = by_run_[*block.run];
      place =
          places.try_emplace(key_of(node, block), places.size()).first->second;
    }
    if (place >= of_block_[b].size()) of_block_[b].resize(place + 1);
    of_block_[b][place] = node.id;
  }

  void list(std::vector<Block>& blocks) const {
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      Block& block = blocks[b];
      std::vector<NodeId> second = of_block_[b];
      if (block.run) {
        second.resize(by_run_[*block.run].size());
        block.code = blocks_.runs()[*block.run].code;
        for (const NodeId id : second) {
          block.code = hash_mix(block.code, id.valid() ? 1 : 0);
        }
      }
      block.nodes.insert(block.nodes.end(), second.begin(), second.end());
    }
  }

 private:
  // The first run as seen from the block: the distance to its block and its position
  // there, or the node itself if it is outside of the run.
  using Key = std::tuple<bool, std::size_t, std::size_t>;

  Key key_of(const Node& node, const Block& block) const {
    const NodeId first = node.second_run_of;
    const Block& there = blocks_.blocks()[blocks_.block_of(first)];
    if (there.run != block.run) return {false, first.index(), 0};
    return {true, block.place - there.place, blocks_.position_of(first)};
  }

  const Graph& graph_;
  const Blocks& blocks_;
  std::vector<std::map<Key, std::size_t>> by_run_;  // by run: the position
  std::vector<std::vector<NodeId>> of_block_;
};

}  // namespace

Blocks::Blocks(const Graph& graph) {
  const GraphStructure structure(graph);
  const std::vector<RepeatedRun> runs = repeated_runs(structure);
  BlockAssembly(graph, structure, runs).list(blocks_, runs_);
  index_blocks(graph);
  add_second_runs(graph);
}

Blocks::Blocks(const Graph& graph, std::span<const std::int64_t> weights,
               std::size_t parts)
    : Blocks(graph) {
  if (!runs_.empty()) return;
  divide(graph, weights, parts);
  index_blocks(graph);
}

std::optional<std::size_t> Blocks::block_of_input(ValueId input) const {
  return of_input_[input.index()];
}

// Node n of a phase is in the part that has the middle of its weight.
void Blocks::divide(const Graph& graph, std::span<const std::int64_t> weights,
                    std::size_t parts) {
  blocks_.assign(parts, {});
  for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
    double total = 0;
    for (const Node& node : graph.nodes()) {
      if (node.phase == phase) {
        total += static_cast<double>(weights[node.id.index()]);
      }
    }
    double before = 0;
    for (const Node& node : graph.nodes()) {
      if (node.phase != phase) continue;
      const auto weight = static_cast<double>(weights[node.id.index()]);
      const double share = total > 0 ? (before + weight / 2) / total : 0;
      before += weight;
      const std::size_t part = std::min(
          parts - 1,
          static_cast<std::size_t>(share * static_cast<double>(parts)));
      blocks_[phase == Phase::kForward ? part : parts - 1 - part]
          .nodes.push_back(node.id);
    }
  }
  std::vector<std::size_t> of_node(graph.nodes().size(), 0);
  for (std::size_t b = 0; b < parts; ++b) {
    for (const NodeId node : blocks_[b].nodes) of_node[node.index()] = b;
  }
  for (const GraphInput& input : graph.inputs()) {
    const auto& readers = graph.value(input.value).consumers;
    if (readers.empty()) continue;
    std::size_t first = parts - 1;
    for (const Use& use : readers) {
      first = std::min(first, of_node[use.node.index()]);
    }
    blocks_[first].inputs.push_back(input.value);
  }
  std::erase_if(blocks_, [](const Block& block) {
    return block.nodes.empty() && block.inputs.empty();
  });
}

void Blocks::add_second_runs(const Graph& graph) {
  SecondRunPlaces places(graph, *this);
  for (std::size_t n = graph.nodes().size(); n-- > 0;) {
    const Node& node = graph.nodes()[n];
    if (!node.runs_again()) continue;
    // The readers have their blocks by now.
    of_node_[n] = places.block_of_reader(node);
    places.add(node);
  }
  places.list(blocks_);
  index_blocks(graph);
}

void Blocks::index_blocks(const Graph& graph) {
  of_node_.assign(graph.nodes().size(), 0);
  positions_.assign(graph.nodes().size(), 0);
  of_input_.assign(graph.values().size(), std::nullopt);
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    for (std::size_t p = 0; p < blocks_[b].nodes.size(); ++p) {
      if (!blocks_[b].nodes[p].valid()) continue;
      of_node_[blocks_[b].nodes[p].index()] = b;
      positions_[blocks_[b].nodes[p].index()] = p;
    }
    for (const ValueId input : blocks_[b].inputs) {
      of_input_[input.index()] = b;
    }
  }
}

}  // namespace shardprop
