#include <shardprop/graph/recompute.h>

#include "base/parse_int.h"
#include "base/try.h"
#include "graph/analysis/blocks.h"
#include "graph/recompute/core_attention.h"
#include "graph/recompute/kept_values.h"
#include "graph/recompute/run_selection.h"
#include "graph/recompute/runs_of_regions.h"
#include "graph/recompute/second_runs.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

// By node: the number of its region, such as its block.
using Regions = std::vector<std::int32_t>;

// Returns whether a forward node of another region reads a result of the node.
bool leaves_region(const Graph& graph, const Regions& regions,
                   const Node& node) {
  const std::int32_t own = regions[node.id.index()];
  return std::any_of(
      node.outputs.begin(), node.outputs.end(), [&](ValueId output) {
        const std::vector<Use>& uses = graph.value(output).consumers;
        return std::any_of(uses.begin(), uses.end(), [&](const Use& use) {
          return graph.node(use.node).phase == Phase::kForward &&
                 regions[use.node.index()] != own;
        });
      });
}

Regions regions_of(const Graph& graph, const Blocks& blocks) {
  Regions out;
  for (const Node& node : graph.nodes()) {
    out.push_back(static_cast<std::int32_t>(blocks.block_of(node.id)));
  }
  return out;
}

// Weights finds values that do not depend on inputs of the user: parameters,
// buffers, and what is computed from them, such as their casts.
class Weights {
 public:
  explicit Weights(const Graph& graph) : is_weight_(graph.values().size()) {
    for (const GraphInput& input : graph.inputs()) {
      is_weight_[input.value.index()] = input.kind != InputKind::kUser;
    }
    for (const Node& node : graph.nodes()) {
      const bool reads_only_weights =
          std::all_of(node.inputs.begin(), node.inputs.end(),
                      [&](ValueId input) { return is_weight_[input.index()]; });
      for (const ValueId output : node.outputs) {
        is_weight_[output.index()] = reads_only_weights;
      }
    }
  }

  bool reads_weight(const Node& node) const {
    return std::any_of(
        node.inputs.begin(), node.inputs.end(),
        [&](ValueId input) { return is_weight_[input.index()]; });
  }

 private:
  std::vector<bool> is_weight_;  // by value
};

std::int64_t longest_row(std::span<const BlockRun> runs) {
  std::int64_t most = 0;
  for (const BlockRun& run : runs) {
    most = std::max(most, static_cast<std::int64_t>(run.count));
  }
  return most;
}

// Refuses a count of more blocks than there are: the rule was meant for another
// model.
Result<void> check_count(const Recompute& recompute, std::int64_t blocks) {
  if (recompute.first_blocks <= blocks) return {};
  return fail(
      {ErrorCode::kInvalidArgument,
       "`" + to_string(recompute) + "` names more blocks than there are",
       {},
       {"the longest row of equal blocks has " + std::to_string(blocks)},
       "name fewer, or `full` for all of them"});
}

Result<RunSelection> runs_of_blocks(const Graph& graph,
                                    const OpLibrary& library,
                                    const Recompute& recompute) {
  const Blocks blocks(graph);
  if (blocks.runs().empty()) {
    return fail(ErrorCode::kInvalidArgument,
                "the graph has no two equal blocks in a row",
                "leave out --recompute, or export at least two layers");
  }
  SP_CHECK(check_count(recompute, longest_row(blocks.runs())));
  RunSelection selection(graph, library);
  const Regions regions = regions_of(graph, blocks);
  const std::vector<bool> core =
      recompute.rule == Recompute::Rule::kCoreAttention
          ? core_attention(graph, selection.node_facts(), regions)
          : std::vector<bool>();
  const Weights weights(graph);
  std::vector<int> matmuls(blocks.blocks().size(), 0);
  for (const Node& node : graph.nodes()) {
    const std::size_t b = blocks.block_of(node.id);
    const Block& block = blocks.blocks()[b];
    if (!block.run) continue;
    if (recompute.first_blocks > 0 &&
        static_cast<std::int64_t>(block.place) >= recompute.first_blocks) {
      continue;
    }
    const OperatorFacts facts = selection.facts(node);
    if (recompute.rule == Recompute::Rule::kSelective &&
        node.phase == Phase::kForward) {
      if (facts.is_attention) continue;
      // The first matmul of a block is kept, the second runs again. Matmuls of two
      // activations, as in attention by single operators, all run again.
      if (facts.is_matmul && weights.reads_weight(node) &&
          ++matmuls[b] % 2 == 1) {
        continue;
      }
    }
    if (!core.empty() && node.phase == Phase::kForward &&
        !core[node.id.index()]) {
      continue;
    }
    if (node.phase == Phase::kForward && leaves_region(graph, regions, node)) {
      continue;
    }
    selection.add(node, facts, regions[node.id.index()]);
  }
  return selection;
}

Result<RunSelection> runs_of_rule(const Graph& graph, const OpLibrary& library,
                                  const Recompute& recompute) {
  switch (recompute.rule) {
    case Recompute::Rule::kModules:
      return runs_of_modules(graph, library, recompute.modules);
    case Recompute::Rule::kModel:
      return runs_of_marks(graph, library);
    default:
      return runs_of_blocks(graph, library, recompute);
  }
}

RunSelection runs_of_compiler(const Graph& graph, const OpLibrary& library) {
  const std::vector<bool> kept = kept_by_compiler(graph, library);
  RunSelection selection(graph, library);
  for (const Node& node : graph.nodes()) {
    const bool is_kept =
        std::all_of(node.outputs.begin(), node.outputs.end(),
                    [&](ValueId output) { return kept[output.index()]; });
    if (is_kept) continue;
    selection.add(node, selection.facts(node),
                  static_cast<std::int32_t>(node.id.index()));
  }
  return selection;
}

Result<std::shared_ptr<const Graph>> with_runs(
    std::shared_ptr<const Graph> graph, const OpLibrary& library,
    const RunSelection& selection) {
  if (selection.is_empty()) return graph;
  SP_ASSIGN(Graph running, with_second_runs(*graph, library, selection.runs()));
  return std::make_shared<const Graph>(std::move(running));
}

}  // namespace

Result<Recompute> Recompute::parse(std::string_view text) {
  if (text == "none") return Recompute{};
  if (text == "selective" || text == "selective:torchtitan") {
    return Recompute{Rule::kSelective};
  }
  if (text == "selective:megatron") return Recompute{Rule::kCoreAttention};
  if (text == "full") return Recompute{Rule::kFull};
  if (text == "model") return Recompute{Rule::kModel};
  constexpr std::string_view kFirst = "full:";
  if (text.starts_with(kFirst)) {
    const auto count = parse_int(text.substr(kFirst.size()));
    if (count && *count > 0) return Recompute{Rule::kFull, *count};
  }
  constexpr std::string_view kGlob = "modules:";
  if (text.starts_with(kGlob) && text.size() > kGlob.size()) {
    return Recompute{Rule::kModules, 0, std::string(text.substr(kGlob.size()))};
  }
  return fail({ErrorCode::kInvalidArgument,
               "`" + std::string(text) + "` is no rule of recomputation",
               {},
               {"found `" + std::string(text) +
                "`, expected none, selective, selective:megatron, full, "
                "full:N, modules:GLOB, model or auto"},
               "as in full:20"});
}

std::string to_string(const Recompute& recompute) {
  switch (recompute.rule) {
    case Recompute::Rule::kNone:
      break;
    case Recompute::Rule::kSelective:
      return "selective";
    case Recompute::Rule::kCoreAttention:
      return "selective:megatron";
    case Recompute::Rule::kModel:
      return "model";
    case Recompute::Rule::kModules:
      return "modules:" + recompute.modules;
    case Recompute::Rule::kFull:
      return recompute.first_blocks == 0
                 ? "full"
                 : "full:" + std::to_string(recompute.first_blocks);
  }
  return "none";
}

bool is_checkpointed(const Graph& graph) {
  return std::any_of(
      graph.nodes().begin(), graph.nodes().end(), [](const Node& node) {
        return node.phase == Phase::kForward && !node.checkpoint.region.empty();
      });
}

std::int64_t longest_row_of_blocks(const Graph& graph) {
  return longest_row(Blocks(graph).runs());
}

bool has_rows_of_equal_length(const Graph& graph) {
  const Blocks blocks(graph);
  return std::all_of(blocks.runs().begin(), blocks.runs().end(),
                     [&](const BlockRun& run) {
                       return run.count == blocks.runs().front().count;
                     });
}

Result<std::shared_ptr<const Graph>> running_graph(
    std::shared_ptr<const Graph> graph, const OpLibrary& library,
    const Running& running) {
  const bool has_rule = running.recompute.rule != Recompute::Rule::kNone;
  if (!graph->has_backward()) {
    if (!has_rule) return graph;
    return fail(ErrorCode::kInvalidArgument,
                "the graph has no backward phase, for which operators would "
                "run again",
                "leave out --recompute");
  }
  if (has_rule) {
    const Recompute& rule = running.recompute;
    auto selection = runs_of_rule(*graph, library, rule);
    if (!selection) {
      return fail(std::move(selection).error().at("--recompute '" +
                                                  to_string(rule) + "'"));
    }
    SP_ASSIGN(graph, with_runs(std::move(graph), library, *selection));
  }
  if (!running.is_compiled) return graph;
  const RunSelection selection = runs_of_compiler(*graph, library);
  return with_runs(std::move(graph), library, selection);
}

}  // namespace shardprop
