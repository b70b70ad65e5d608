#include "graph/recompute/runs_of_regions.h"

#include "base/glob.h"

#include <shardprop/graph/recompute.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

constexpr std::int32_t kOutside = -1;
// The region of a backward node whose forward node is not recorded.
constexpr std::int32_t kUnknown = -2;

// CheckpointRegions numbers the regions of a graph by their names.
class CheckpointRegions {
 public:
  void add(std::string_view name) {
    const auto next = static_cast<std::int32_t>(numbers_.size());
    of_node_.push_back(numbers_.try_emplace(name, next).first->second);
  }
  void add_outside() { of_node_.push_back(kOutside); }
  void add_unknown() { of_node_.push_back(kUnknown); }
  void add_as(NodeId node) { of_node_.push_back(of(node)); }

  bool empty() const { return numbers_.empty(); }
  std::int32_t of(NodeId node) const { return of_node_[node.index()]; }

 private:
  std::map<std::string_view, std::int32_t> numbers_;
  std::vector<std::int32_t> of_node_;
};

// KeptOutside finds values that are kept although their region runs again: another
// region or a backward node outside reads them.
class KeptOutside {
 public:
  KeptOutside(const Graph& graph, const RunSelection& selection,
              const CheckpointRegions& regions)
      : graph_(graph), selection_(selection), regions_(regions) {}

  bool has_kept_result(const Node& node) const {
    return is_read(node, regions_.of(node.id));
  }

 private:
  using Uses = std::vector<Use>;

  bool is_read(const Node& node, std::int32_t own) const {
    return std::any_of(
        node.outputs.begin(), node.outputs.end(), [&](ValueId output) {
          const Uses& uses = graph_.value(output).consumers;
          const bool is_kept =
              std::any_of(uses.begin(), uses.end(), [&](const Use& use) {
                return is_kept_by(graph_.node(use.node), own);
              });
          return is_kept || may_be_kept(uses, own);
        });
  }

  bool is_kept_by(const Node& reader, std::int32_t own) const {
    const std::int32_t region = regions_.of(reader.id);
    if (region == own || region == kUnknown) return false;
    if (region != kOutside || reader.phase == Phase::kBackward) return true;
    return selection_.facts(reader).is_view && is_read(reader, own);
  }

  // A backward node without a record may belong to a forward reader outside.
  bool may_be_kept(const Uses& uses, std::int32_t own) const {
    const auto has_reader = [&](std::int32_t region) {
      return std::any_of(uses.begin(), uses.end(), [&](const Use& use) {
        return regions_.of(use.node) == region;
      });
    };
    return own != kOutside && has_reader(kUnknown) && has_reader(kOutside);
  }

  const Graph& graph_;
  const RunSelection& selection_;
  const CheckpointRegions& regions_;
};

RunSelection runs_of(const Graph& graph, const OpLibrary& library,
                     const CheckpointRegions& regions, bool heeds_policies) {
  RunSelection selection(graph, library);
  const KeptOutside outside(graph, selection, regions);
  for (const Node& node : graph.nodes()) {
    const std::int32_t region = regions.of(node.id);
    if (region == kOutside) continue;
    if (region == kUnknown && !selection.reads_second_run(node)) continue;
    if (heeds_policies && node.checkpoint.is_saved) continue;
    if (node.phase == Phase::kForward && outside.has_kept_result(node)) {
      continue;
    }
    selection.add(node, selection.facts(node), region);
  }
  return selection;
}

// Returns the path of the outermost module of the node that the glob matches.
std::optional<std::string_view> matched_module(const Node& node,
                                               std::string_view glob) {
  const std::string_view path = node.module_path;
  for (std::size_t end = 0; end < path.size();) {
    end = std::min(path.find('.', end + 1), path.size());
    if (matches_glob(glob, path.substr(0, end))) return path.substr(0, end);
  }
  return std::nullopt;
}

// A backward node whose forward node is known belongs to its region.
void add_backward(const Node& node, CheckpointRegions& regions) {
  if (node.forward_node.valid()) {
    regions.add_as(node.forward_node);
  } else {
    regions.add_unknown();
  }
}

CheckpointRegions regions_of_marks(const Graph& graph) {
  CheckpointRegions regions;
  for (const Node& node : graph.nodes()) {
    if (node.phase == Phase::kBackward) {
      add_backward(node, regions);
    } else if (node.checkpoint.region.empty()) {
      regions.add_outside();
    } else {
      regions.add(node.checkpoint.region);
    }
  }
  return regions;
}

CheckpointRegions regions_of_modules(const Graph& graph,
                                     std::string_view glob) {
  CheckpointRegions regions;
  for (const Node& node : graph.nodes()) {
    if (const auto module = matched_module(node, glob)) {
      regions.add(*module);
    } else if (node.phase == Phase::kBackward && node.module_path.empty()) {
      add_backward(node, regions);
    } else {
      regions.add_outside();
    }
  }
  return regions;
}

}  // namespace

Result<RunSelection> runs_of_modules(const Graph& graph,
                                     const OpLibrary& library,
                                     const std::string& glob) {
  const CheckpointRegions regions = regions_of_modules(graph, glob);
  if (regions.empty()) {
    return fail({ErrorCode::kInvalidArgument,
                 "no module of the graph matches `" + glob + "`",
                 {},
                 {},
                 "as in modules:*.mlp; explain lists the modules"});
  }
  return runs_of(graph, library, regions, false);
}

Result<RunSelection> runs_of_marks(const Graph& graph,
                                   const OpLibrary& library) {
  if (!is_checkpointed(graph)) {
    const auto operators = std::count_if(
        graph.nodes().begin(), graph.nodes().end(),
        [](const Node& node) { return node.phase == Phase::kForward; });
    return fail({ErrorCode::kInvalidArgument,
                 "the graph has no mark of torch.utils.checkpoint, which "
                 "--recompute model follows",
                 "graph `" + graph.name() + "`",
                 {"found " + std::to_string(operators) +
                  " forward operators without a mark, expected marks on some"},
                 "export the model with its checkpoint() calls by "
                 "shardprop.torch.export(mode=\"train\"), or use --recompute "
                 "auto"});
  }
  return runs_of(graph, library, regions_of_marks(graph), true);
}

}  // namespace shardprop
