#include "graph/analysis/graph_structure.h"

#include "graph/content_hash.h"

#include <shardprop/base/hash.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace shardprop {
namespace {

std::int64_t full_bytes(const TensorMeta& meta) {
  std::int64_t elements = 1;
  for (const std::int64_t size : meta.shape()) elements *= size;
  return elements * item_size(meta.dtype());
}

}  // namespace

GraphStructure::GraphStructure(const Graph& graph)
    : graph_(graph), num_nodes_(graph.nodes().size()) {
  add_signatures();
  add_edges();
  add_depths();
}

bool GraphStructure::is_parameter(Element element) const {
  return !is_node(element) &&
         graph_.inputs()[element - num_nodes_].kind == InputKind::kParameter;
}

bool GraphStructure::is_second_run(Element element) const {
  return is_node(element) && graph_.nodes()[element].runs_again();
}

// The hash includes whether a result is the gradient or the update of a
// parameter or buffer, because both end in the layout of an input. Other outputs
// are not part of it: the last block of a model without a head produces one, and
// so may the backward pass of the first block.
void GraphStructure::add_signatures() {
  std::unordered_map<ValueId, OutputKind> bound;
  for (const GraphOutput& output : graph_.outputs()) {
    if (output.target.valid() &&
        graph_.value(output.target).input_kind != InputKind::kUser) {
      bound.emplace(output.value, output.kind);
    }
  }
  for (const Node& node : graph_.nodes()) {
    ContentHash hash;
    std::int64_t bytes = 0;
    hash.add(std::string_view(node.op_name()));
    hash.add(static_cast<std::uint64_t>(node.phase));
    for (const Argument& argument : node.op.args) hash.add(argument);
    for (const ValueId output : node.outputs) {
      const auto target = bound.find(output);
      hash.add(target == bound.end()
                   ? 0
                   : 1 + static_cast<std::uint64_t>(target->second));
      hash.add(graph_.value(output).meta);
      bytes += full_bytes(graph_.value(output).meta);
    }
    signatures_.push_back(hash.state());
    bytes_.push_back(bytes);
    backward_.push_back(node.phase == Phase::kBackward);
  }
  for (const GraphInput& input : graph_.inputs()) {
    const Value& value = graph_.value(input.value);
    ContentHash hash;
    hash.add(static_cast<std::uint64_t>(input.kind));
    hash.add(value.meta);
    signatures_.push_back(hash.state());
    bytes_.push_back(full_bytes(value.meta));
    backward_.push_back(!value.consumers.empty() &&
                        std::all_of(value.consumers.begin(),
                                    value.consumers.end(), [&](const Use& use) {
                                      return graph_.node(use.node).phase ==
                                             Phase::kBackward;
                                    }));
  }
}

void GraphStructure::add_edges() {
  std::unordered_map<ValueId, Element> inputs;
  for (std::size_t i = 0; i < graph_.inputs().size(); ++i) {
    inputs.emplace(graph_.inputs()[i].value,
                   static_cast<Element>(num_nodes_ + i));
  }
  const auto first_run = [&](NodeId node) {
    const Node& of = graph_.node(node);
    return of.runs_again() ? of.second_run_of : node;
  };
  std::vector<std::vector<Reader>> readers(size());
  for (std::size_t n = 0; n < num_nodes_; ++n) {
    first_operand_.push_back(operands_.size());
    const Node& node = graph_.nodes()[n];
    if (node.runs_again()) continue;
    for (std::size_t o = 0; o < node.inputs.size(); ++o) {
      const Value& value = graph_.value(node.inputs[o]);
      const auto producer =
          value.is_input()
              ? inputs.at(value.id)
              : static_cast<Element>(first_run(value.producer).index());
      operands_.push_back({producer, value.output_index});
      readers[producer].push_back({static_cast<Element>(n),
                                   static_cast<std::uint32_t>(o),
                                   value.output_index});
    }
  }
  first_operand_.resize(size() + 1, operands_.size());
  for (const std::vector<Reader>& of_element : readers) {
    first_reader_.push_back(readers_.size());
    readers_.insert(readers_.end(), of_element.begin(), of_element.end());
  }
  first_reader_.push_back(readers_.size());
}

// Operands come before their readers in the schedule.
void GraphStructure::add_depths() {
  depths_.assign(size(), 0);
  for (Element n = 0; n < num_nodes_; ++n) {
    for (const Operand& operand : operands(n)) {
      depths_[n] = std::max(depths_[n], depths_[operand.producer]);
    }
    ++depths_[n];
    by_depth_.push_back(n);
  }
  std::stable_sort(
      by_depth_.begin(), by_depth_.end(),
      [&](Element a, Element b) { return depths_[a] < depths_[b]; });
}

std::vector<std::uint64_t> GraphStructure::labels(int radius) const {
  std::vector<std::uint64_t> now = signatures_;
  std::vector<std::uint64_t> next(size());
  for (int round = 0; round < radius; ++round) {
    for (Element e = 0; e < size(); ++e) {
      std::uint64_t label = now[e];
      for (const Operand& operand : operands(e)) {
        label =
            hash_mix(hash_mix(label, now[operand.producer]), operand.output);
      }
      // A sum does not depend on the order of the readers.
      std::uint64_t sum = 0;
      for (const Reader& reader : readers(e)) {
        sum += hash_mix(hash_mix(now[reader.reader], reader.operand),
                        reader.output);
      }
      next[e] = hash_mix(label, sum);
    }
    std::swap(now, next);
  }
  return now;
}

}  // namespace shardprop
