#include "plan/problem/fusion.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/index.h"
#include "base/union_find.h"
#include "plan/tuning.h"

namespace shardprop {
namespace {

bool has_factor(const IndexSpace& space, FactorKind kind) {
  return std::any_of(space.factors.begin(), space.factors.end(),
                     [&](const Factor& factor) { return factor.kind == kind; });
}

bool stands_alone(Fusing fusing) {
  return fusing == Fusing::kCuts || fusing == Fusing::kAlone;
}

// Returns whether the node makes a tensor of one number. It reads no elements.
bool is_fill(const Graph& graph, ValueId value) {
  if (graph.value(value).is_input()) return false;
  const Node& node = graph.node(graph.value(value).producer);
  return !node.op.function->is_random() &&
         (node.inputs.empty() ||
          node.op.function->base_name().ends_with("_like"));
}

// Returns whether the node writes one number to one place of each row of a fresh
// tensor, as the gradient of a loss does. A compiler selects it by element.
bool selects_by_element(const Graph& graph, const Node& node) {
  if (node.inputs.size() != 2 || !is_fill(graph, node.inputs[0])) return false;
  const Dims& into = node.op.inputs[0].shape();
  const Dims& places = node.op.inputs[1].shape();
  if (into.size() != places.size()) return false;
  int others = 0;
  for (std::size_t d = 0; d < into.size(); ++d) {
    if (into[d] == places[d]) continue;
    if (places[d] != 1) return false;
    ++others;
  }
  return others == 1;
}

// Returns whether the decomposition of one operator produced both nodes.
bool are_of_one_operator(const Node& a, const Node& b) {
  return !a.decomposed_from.empty() && a.decomposed_from == b.decomposed_from &&
         a.forward_node == b.forward_node && a.phase == b.phase;
}

// Returns whether a compiler knows what the operator computes. Operators of other
// libraries are calls of their own kernels.
bool is_known_to_compiler(const Node& node) {
  const std::string& name = node.op_name();
  return name.starts_with("aten.") || name.starts_with("prims.");
}

}  // namespace

Fusing fusing_of(const Graph& graph, const Node& node, const IndexSpace& space,
                 bool is_understood, bool is_in_place, KernelRule rule) {
  if (space.is_free) return Fusing::kView;
  const bool cuts = space.flops_per_point > 0 ||
                    has_factor(space, FactorKind::kScanned) ||
                    space.inputs.size() > tuning::kMostFusedInputs ||
                    !is_understood || !is_known_to_compiler(node);
  if (cuts) return Fusing::kCuts;
  if (space.writes_into == IndexSpace::kNothing ||
      (rule == KernelRule::kCompiler && selects_by_element(graph, node))) {
    return Fusing::kCompute;
  }
  // A write to fixed places selects, by element, the old or the new value, and
  // can be fused. A write into an input of the program is cheaper in place.
  const Value& into = graph.value(node.inputs[index(space.writes_into)]);
  const bool is_buffer =
      graph.value(graph.buffer(into.buffer).base()).is_input();
  return is_buffer || is_in_place || has_factor(space, FactorKind::kIndexed)
             ? Fusing::kAlone
             : Fusing::kCompute;
}

FusionGroups::FusionGroups(const Graph& graph,
                           const std::vector<Fusing>& fusing, KernelRule rule)
    : graph_(graph),
      group_(graph.nodes().size(), kAlone),
      launches_(graph.nodes().size(), false),
      reads_(graph.nodes().size()),
      producer_group_(graph.buffers().size(), kAlone),
      leaves_(graph.buffers().size(), false) {
  find_groups(fusing, rule);
  find_reads(fusing);
}

void FusionGroups::find_groups(const std::vector<Fusing>& fusing,
                               KernelRule rule) {
  const std::size_t nodes = graph_.nodes().size();
  UnionFind joined(nodes);
  std::size_t run = 0;  // start of the present run
  for (std::size_t n = 0; n < nodes; ++n) {
    if (fusing[n] == Fusing::kCuts) run = n + 1;
    if (stands_alone(fusing[n])) continue;
    for (const ValueId input : graph_.nodes()[n].inputs) {
      const Value& value = graph_.value(input);
      if (value.is_input()) continue;
      const std::size_t producer = value.producer.index();
      if (producer < run || stands_alone(fusing[producer])) continue;
      if (rule == KernelRule::kCompiler ||
          are_of_one_operator(graph_.nodes()[n], graph_.nodes()[producer])) {
        joined.join(n, producer);
      }
    }
  }
  std::vector<std::int32_t> computing(nodes, 0);
  for (std::size_t n = 0; n < nodes; ++n) {
    if (fusing[n] == Fusing::kCompute) ++computing[joined.root(n)];
  }
  std::vector<std::int32_t> number(nodes, kAlone);
  for (std::size_t n = 0; n < nodes; ++n) {
    const std::size_t root = joined.root(n);
    if (stands_alone(fusing[n]) || computing[root] < 2) continue;
    const bool first = number[root] == kAlone;
    if (first) number[root] = static_cast<std::int32_t>(size_++);
    group_[n] = number[root];
  }
  std::vector<bool> launched(size_, false);
  for (std::size_t n = 0; n < nodes; ++n) {
    if (group_[n] == kAlone || fusing[n] != Fusing::kCompute) continue;
    const auto group = index(group_[n]);
    launches_[n] = !launched[group];
    launched[group] = true;
  }
}

void FusionGroups::find_reads(const std::vector<Fusing>& fusing) {
  for (const Value& value : graph_.values()) {
    const ValueId base = graph_.buffer(value.buffer).base();
    if (base != value.id || value.is_input()) continue;
    producer_group_[value.buffer.index()] = group_[value.producer.index()];
  }
  std::set<std::pair<std::int32_t, ValueId>> read;
  for (const Node& node : graph_.nodes()) {
    const std::size_t n = node.id.index();
    const bool computes = fusing[n] != Fusing::kView;
    std::vector<double>& reads = reads_[n];
    reads.assign(node.inputs.size(), 0);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const Value& value = graph_.value(node.inputs[i]);
      if (is_inside(value.buffer, group_[n])) continue;
      if (computes) leaves_[value.buffer.index()] = true;
      if (group_[n] == kAlone || !computes) continue;
      // A kernel reads a tensor once. Views that keep all of it are the same
      // tensor. It reads an expanded value by the elements that its memory has.
      const Value& base = graph_.value(graph_.buffer(value.buffer).base());
      const bool is_whole = value.meta.numel() == base.meta.numel();
      if (!read.emplace(group_[n], is_whole ? base.id : value.id).second) {
        continue;
      }
      reads[i] =
          value.meta.numel() == 0
              ? 0
              : std::min(1.0, static_cast<double>(base.meta.numel()) /
                                  static_cast<double>(value.meta.numel()));
    }
  }
  for (const GraphOutput& output : graph_.outputs()) {
    leaves_[graph_.value(output.value).buffer.index()] = true;
  }
}

bool FusionGroups::is_inside(BufferId buffer, std::int32_t group) const {
  return group != kAlone && producer_group_[buffer.index()] == group;
}

KernelPart FusionGroups::part(const Node& node) const {
  KernelPart part;
  part.launches = launches_[node.id.index()];
  part.reads = reads_[node.id.index()];
  for (const ValueId output : node.outputs) {
    part.writes.push_back(!stays_inside(output));
  }
  return part;
}

bool FusionGroups::stays_inside(ValueId value) const {
  return !leaves_[graph_.value(value).buffer.index()];
}

}  // namespace shardprop
