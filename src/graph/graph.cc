#include <shardprop/graph/graph.h>

#include "graph/graph_body.h"

#include <algorithm>
#include <utility>

namespace shardprop {

Graph::Graph(std::unique_ptr<Body> body) : body_(std::move(body)) {}
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;
Graph::~Graph() = default;

const std::string& Graph::name() const { return body_->name; }
const std::string& Graph::device() const { return body_->device; }
std::span<const Node> Graph::nodes() const { return body_->nodes; }
std::span<const Value> Graph::values() const { return body_->values; }
std::span<const Buffer> Graph::buffers() const { return body_->buffers; }

const Node& Graph::node(NodeId id) const { return body_->nodes[id.index()]; }
const Value& Graph::value(ValueId id) const {
  return body_->values[id.index()];
}
const Buffer& Graph::buffer(BufferId id) const {
  return body_->buffers[id.index()];
}

std::span<const GraphInput> Graph::inputs() const { return body_->inputs; }
std::span<const GraphOutput> Graph::outputs() const { return body_->outputs; }
std::span<const Symbol> Graph::symbols() const { return body_->symbols; }
std::span<const Guard> Graph::guards() const { return body_->guards; }
std::span<const ReadingNote> Graph::notes() const { return body_->notes; }

std::optional<NodeId> Graph::find_node(std::string_view name) const {
  const auto found = body_->node_names.find(std::string(name));
  if (found == body_->node_names.end()) return std::nullopt;
  return found->second;
}

std::optional<ValueId> Graph::find_value(std::string_view name) const {
  const std::string key(name);
  for (const auto* names : {&body_->value_names, &body_->qualified_names}) {
    const auto found = names->find(key);
    if (found != names->end()) return found->second;
  }
  return std::nullopt;
}

namespace {

std::optional<ValueId> found(const std::unordered_map<ValueId, ValueId>& of,
                             ValueId input) {
  const auto at = of.find(input);
  if (at == of.end()) return std::nullopt;
  return at->second;
}

}  // namespace

std::optional<ValueId> Graph::gradient_of(ValueId input) const {
  return found(body_->gradients, input);
}

std::optional<ValueId> Graph::update_of(ValueId input) const {
  return found(body_->updates, input);
}

bool Graph::has_backward() const {
  return std::any_of(outputs().begin(), outputs().end(),
                     [](const GraphOutput& output) {
                       return output.kind == OutputKind::kGradient;
                     });
}

std::vector<bool> Graph::ancestors(std::span<const NodeId> of) const {
  std::vector<std::size_t> seeds;
  seeds.reserve(of.size());
  for (const NodeId id : of) seeds.push_back(id.index());
  return body_->data_flow.ancestors(seeds);
}

std::uint64_t Graph::hash() const { return body_->hash; }

}  // namespace shardprop
