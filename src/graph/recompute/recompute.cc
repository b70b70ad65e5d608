#include <shardprop/graph/recompute.h>

#include "base/parse_int.h"
#include "base/try.h"
#include "graph/analysis/blocks.h"
#include "graph/analysis/view_source.h"
#include "graph/recompute/kept_values.h"
#include "graph/recompute/second_runs.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

bool is_input_memory(const Graph& graph, ValueId value) {
  return graph.value(graph.buffer(graph.value(value).buffer).base()).is_input();
}

// OperatorFacts is what the rules ask about a node.
struct OperatorFacts {
  bool is_view = false;
  bool is_matmul = false;
  bool is_attention = false;
  bool runs_once = false;  // must not run twice
};

class NodeFacts {
 public:
  NodeFacts(const Graph& graph, const OpLibrary& library)
      : graph_(graph), library_(library), updates_(graph.buffers().size()) {
    for (const GraphOutput& output : graph.outputs()) {
      if (output.kind == OutputKind::kUpdate) {
        updates_[graph.value(output.value).buffer.index()] = true;
      }
    }
  }

  OperatorFacts of(const Node& node) const {
    OperatorFacts facts;
    facts.runs_once =
        node.outputs.empty() || gives_update(node) || has_size_of_data(node);
    Result<IndexSpace> space = library_.index_space(node.op);
    if (!space) return facts;
    facts.is_view = runs_as_view(*space);
    facts.is_attention = space->product == ProductKind::kAttention;
    facts.is_matmul = space->flops_per_point > 0 && !facts.is_attention;
    if (space->writes_into != IndexSpace::kNothing) {
      const ValueId written =
          node.inputs[static_cast<std::size_t>(space->writes_into)];
      facts.runs_once = facts.runs_once || is_input_memory(graph_, written);
    }
    return facts;
  }

 private:
  bool gives_update(const Node& node) const {
    return std::any_of(node.outputs.begin(), node.outputs.end(),
                       [&](ValueId output) {
                         return updates_[graph_.value(output).buffer.index()];
                       });
  }

  // torch.export names sizes that depend on data u0, u1, ...
  bool has_size_of_data(const Node& node) const {
    const auto is_of_data = [](const SymbolicDim& dim) {
      const std::vector<std::string> symbols = dim.size.symbols();
      return dim.size.is_opaque() || std::any_of(symbols.begin(), symbols.end(),
                                                 [](const std::string& name) {
                                                   return name.starts_with('u');
                                                 });
    };
    return std::any_of(node.outputs.begin(), node.outputs.end(),
                       [&](ValueId output) {
                         const Value& value = graph_.value(output);
                         return std::any_of(value.symbolic.begin(),
                                            value.symbolic.end(), is_of_data);
                       });
  }

  const Graph& graph_;
  const OpLibrary& library_;
  std::vector<bool> updates_;  // by buffer
};

// Collects the second runs of a graph. Nodes are added in the order of the graph.
class RunSelection {
 public:
  RunSelection(const Graph& graph, const OpLibrary& library)
      : graph_(graph), facts_(graph, library), last_(last_forward(graph)) {
    runs_.group.assign(graph.nodes().size(), SecondRuns::kOnce);
    runs_.moves.assign(graph.nodes().size(), false);
  }

  OperatorFacts facts(const Node& node) const { return facts_.of(node); }

  // Adds a node that need not be kept. A view of a kept value stays where it is.
  void add(const Node& node, const OperatorFacts& facts, std::int32_t group) {
    if (facts.runs_once || node.id.index() > last_) return;
    if (facts.is_view && !reads_second_run(node)) return;
    if (node.phase == Phase::kForward) {
      runs_.group[node.id.index()] = group;
    } else {
      runs_.moves[node.id.index()] = true;
    }
  }

  const SecondRuns& runs() const { return runs_; }
  bool is_empty() const {
    return std::none_of(runs_.group.begin(), runs_.group.end(),
                        [](std::int32_t g) { return g != SecondRuns::kOnce; });
  }

 private:
  bool reads_second_run(const Node& node) const {
    return std::any_of(node.inputs.begin(), node.inputs.end(),
                       [&](ValueId input) {
                         const Value& value = graph_.value(input);
                         if (value.is_input()) return false;
                         const std::size_t producer = value.producer.index();
                         return runs_.group[producer] != SecondRuns::kOnce ||
                                runs_.moves[producer];
                       });
  }

  const Graph& graph_;
  NodeFacts facts_;
  std::size_t last_;
  SecondRuns runs_;
};

// Returns whether a forward node of another block reads a result of the node.
bool leaves_block(const Graph& graph, const Blocks& blocks, const Node& node) {
  const std::size_t own = blocks.block_of(node.id);
  return std::any_of(
      node.outputs.begin(), node.outputs.end(), [&](ValueId output) {
        const std::vector<Use>& uses = graph.value(output).consumers;
        return std::any_of(uses.begin(), uses.end(), [&](const Use& use) {
          return graph.node(use.node).phase == Phase::kForward &&
                 blocks.block_of(use.node) != own;
        });
      });
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
  RunSelection selection(graph, library);
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
      // The first matmul of a block is kept, the second runs again.
      if (facts.is_matmul && ++matmuls[b] % 2 == 1) continue;
    }
    if (node.phase == Phase::kForward && leaves_block(graph, blocks, node)) {
      continue;
    }
    selection.add(node, facts, static_cast<std::int32_t>(b));
  }
  return selection;
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
  if (text == "selective") return Recompute{Rule::kSelective, 0};
  if (text == "full") return Recompute{Rule::kFull, 0};
  constexpr std::string_view kFirst = "full:";
  if (text.starts_with(kFirst)) {
    const auto count = parse_int(text.substr(kFirst.size()));
    if (count && *count > 0) return Recompute{Rule::kFull, *count};
  }
  return fail({ErrorCode::kInvalidArgument,
               "`" + std::string(text) + "` is no rule of recomputation",
               {},
               {"found `" + std::string(text) +
                "`, expected none, selective, full or full:N"},
               "as in full:20"});
}

std::string to_string(const Recompute& recompute) {
  switch (recompute.rule) {
    case Recompute::Rule::kNone:
      break;
    case Recompute::Rule::kSelective:
      return "selective";
    case Recompute::Rule::kFull:
      return recompute.first_blocks == 0
                 ? "full"
                 : "full:" + std::to_string(recompute.first_blocks);
  }
  return "none";
}

std::int64_t longest_row_of_blocks(const Graph& graph) {
  std::int64_t most = 0;
  for (const BlockRun& run : Blocks(graph).runs()) {
    most = std::max(most, static_cast<std::int64_t>(run.count));
  }
  return most;
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
    SP_ASSIGN(const RunSelection selection,
              runs_of_blocks(*graph, library, running.recompute));
    SP_ASSIGN(graph, with_runs(std::move(graph), library, selection));
  }
  if (!running.is_compiled) return graph;
  const RunSelection selection = runs_of_compiler(*graph, library);
  return with_runs(std::move(graph), library, selection);
}

}  // namespace shardprop
