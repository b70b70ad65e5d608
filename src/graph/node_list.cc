#include "graph/node_list.h"

#include "base/index.h"
#include "base/try.h"

#include <algorithm>
#include <utility>

namespace shardprop {

NodeList::NodeList(std::string name) : body_(std::make_unique<Graph::Body>()) {
  body_->name = std::move(name);
}

namespace {

tl::unexpected<Error> doubled(const std::string& name, const char* what) {
  return fail(ErrorCode::kDuplicateName,
              std::string("two ") + what + " are named `" + name + "`");
}

// Reserves a half, a quarter, ... of the expected size. The list then doubles
// for the last time long before the end and ends as large as needed.
template <class Element>
void append_to(std::vector<Element>& list, Element added,
               std::size_t expected) {
  if (list.size() == list.capacity() && list.size() < expected) {
    std::size_t room = expected;
    while (room / 2 > list.size()) room /= 2;
    list.reserve(room);
  }
  list.push_back(std::move(added));
}

}  // namespace

ValueId NodeList::add_value(Value value, ValueId view_of) {
  const ValueId id(body_->values.size());
  value.id = id;
  value.view_of = view_of;
  if (view_of.valid()) {
    value.buffer = body_->value(view_of).buffer;
  } else {
    value.buffer = BufferId(body_->buffers.size());
    body_->buffers.push_back({value.buffer, {}});
  }
  body_->buffers[value.buffer.index()].values.push_back(id);
  value_names_.emplace(value.name, id);
  append_to(body_->values, std::move(value), expected_values_);
  return id;
}

Result<ValueId> NodeList::add_input(NewInput input) {
  if (value_names_.contains(input.name)) return doubled(input.name, "values");
  Value value;
  value.name = input.name;
  value.qualified_name =
      input.qualified_name.empty() ? input.name : input.qualified_name;
  if (is_taken(value.qualified_name)) {
    value.qualified_name = unique_node_name(value.qualified_name + ".input");
  }
  if (shown_names_.contains(value.name)) value.name = value.qualified_name;
  shown_names_.insert(value.qualified_name);
  value.aliases = std::move(input.aliases);
  value.meta = std::move(input.meta);
  value.symbolic = std::move(input.symbolic);
  value.input_kind = input.kind;
  const ValueId id = add_value(std::move(value), input.shares_storage_with);
  body_->inputs.push_back({id, input.kind, input.persistent});
  return id;
}

Result<void> NodeList::check_names(const NewNode& node) const {
  if (node_names_.contains(node.name)) return doubled(node.name, "nodes");
  std::unordered_set<std::string_view> own;
  for (const std::string& name : node.output_names) {
    if (value_names_.contains(name) || !own.insert(name).second) {
      return doubled(name, "values");
    }
  }
  return {};
}

// A generated node is renamed if the source program uses its name.
void NodeList::make_way(const std::string& name) {
  NodeId id;
  if (const auto node = node_names_.find(name); node != node_names_.end()) {
    id = node->second;
  } else if (const auto value = value_names_.find(name);
             value != value_names_.end()) {
    id = body_->value(value->second).producer;
  }
  if (!id.valid() || !generated_[id.index()]) return;
  Node& node = body_->nodes[id.index()];
  const std::string now = unique_node_name(node.name);
  node_names_.erase(node.name);
  node_names_.emplace(now, id);
  node.name = now;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    Value& value = body_->values[node.outputs[i].index()];
    value_names_.erase(value.name);
    value.name = node.outputs.size() == 1
                     ? now
                     : unique_node_name(now + '_' + std::to_string(i));
    value_names_.emplace(value.name, value.id);
  }
}

std::string NodeList::unique_node_name(std::string_view wanted) {
  std::string name(wanted);
  if (!is_taken(name)) return name;
  // The suffix continues from the last one, because a program may request one
  // name very often.
  int& suffix = last_suffix_[name];
  do {
    name = std::string(wanted) + '_' + std::to_string(++suffix);
  } while (is_taken(name));
  return name;
}

bool NodeList::is_taken(const std::string& name) const {
  return node_names_.contains(name) || value_names_.contains(name) ||
         shown_names_.contains(name);
}

// A parameter may have the same name as a node, such as `t` for a
// transposition. The node is then called `t.node`, which no program uses as the
// name of a later node.
void NodeList::rename_as_no_input(NewNode& node) {
  const std::string own = node.name;
  if (shown_names_.contains(own)) {
    node.name = unique_node_name(own + ".node");
    renamed_.emplace(own, NodeId(body_->nodes.size()));
  }
  for (std::string& name : node.output_names) {
    if (!shown_names_.contains(name)) continue;
    name = name == own ? node.name : unique_node_name(name + ".node");
  }
}

Result<std::vector<ValueId>> NodeList::append(NewNode added,
                                              const ViewedOperands& viewed) {
  if (added.name.empty()) {
    added.name = unique_node_name(added.op.function->base_name());
  }
  const std::size_t count = added.op.outputs.size();
  if (added.output_names.empty()) {
    for (std::size_t i = 0; i < count; ++i) {
      added.output_names.push_back(
          count == 1 ? added.name : added.name + '_' + std::to_string(i));
    }
  }
  make_way(added.name);
  for (const std::string& name : added.output_names) make_way(name);
  SP_CHECK(check_names(added));
  rename_as_no_input(added);
  Node node;
  node.id = NodeId(body_->nodes.size());
  for (std::size_t i = 0; i < count; ++i) {
    Value value;
    value.name = std::move(added.output_names[i]);
    value.meta = added.op.outputs[i];
    if (i < added.output_symbolic.size()) {
      value.symbolic = std::move(added.output_symbolic[i]);
    }
    value.producer = node.id;
    value.output_index = static_cast<std::uint32_t>(i);
    const ValueId view_of =
        i < viewed.size() && viewed[i] ? added.inputs[*viewed[i]] : ValueId();
    node.outputs.push_back(add_value(std::move(value), view_of));
  }
  for (const auto* names : {&node_names_, &renamed_}) {
    const auto forward = names->find(added.forward_node);
    if (forward != names->end()) node.forward_node = forward->second;
    const auto first = names->find(added.second_run_of);
    if (first != names->end()) node.second_run_of = first->second;
  }
  node.name = std::move(added.name);
  node.op = std::move(added.op);
  node.inputs = std::move(added.inputs);
  node.symbolic = std::move(added.symbolic);
  node.module_path = std::move(added.module_path);
  node.module_class = std::move(added.module_class);
  node.source = std::move(added.source);
  node.decomposed_from = std::move(added.decomposed_from);
  node.checkpoint = std::move(added.checkpoint);
  node.draws_as = added.draws_as;
  node_names_.emplace(node.name, node.id);
  generated_.push_back(false);
  std::vector<ValueId> outputs = node.outputs;
  append_to(body_->nodes, std::move(node), expected_nodes_);
  return outputs;
}

std::vector<ValueId> NodeList::append_generated(NewNode node,
                                                const ViewedOperands& viewed) {
  node.name = unique_node_name(node.name.empty() ? node.op.function->base_name()
                                                 : node.name);
  node.output_names.clear();
  for (std::size_t i = 0;
       node.op.outputs.size() > 1 && i < node.op.outputs.size(); ++i) {
    node.output_names.push_back(
        unique_node_name(node.name + '_' + std::to_string(i)));
  }
  auto outputs = append(std::move(node), viewed);
  if (!outputs) throw InternalError("a generated name is not unique");
  generated_.back() = true;
  return *std::move(outputs);
}

namespace {

template <class Id>
Id moved(Id id, const std::vector<Id>& to) {
  return id.valid() ? to[id.index()] : id;
}

}  // namespace

void NodeList::drop_unused_generated() {
  std::vector<bool> used(body_->values.size(), false);
  for (const GraphOutput& output : body_->outputs) {
    used[output.value.index()] = true;
  }
  std::vector<bool> keep(body_->nodes.size(), true);
  for (std::size_t i = body_->nodes.size(); i-- > 0;) {
    const Node& node = body_->nodes[i];
    keep[i] = !generated_[i] ||
              std::any_of(node.outputs.begin(), node.outputs.end(),
                          [&](ValueId v) { return used[v.index()]; });
    if (!keep[i]) continue;
    for (const ValueId input : node.inputs) used[input.index()] = true;
  }
  if (std::find(keep.begin(), keep.end(), false) == keep.end()) return;

  std::vector<NodeId> new_node(body_->nodes.size());
  std::vector<ValueId> new_value(body_->values.size());
  std::vector<BufferId> new_storage(body_->buffers.size());
  std::vector<Node> nodes;
  std::vector<Value> values;
  std::vector<Buffer> buffers;
  for (std::size_t i = 0; i < keep.size(); ++i) {
    if (!keep[i]) continue;
    new_node[i] = NodeId(nodes.size());
    nodes.push_back(std::move(body_->nodes[i]));
    nodes.back().id = new_node[i];
  }
  for (Value& value : body_->values) {
    if (value.producer.valid() && !keep[value.producer.index()]) continue;
    const std::size_t old_storage = value.buffer.index();
    new_value[value.id.index()] = ValueId(values.size());
    value.id = ValueId(values.size());
    value.producer = moved(value.producer, new_node);
    // The viewed value comes earlier and stays, because this view reads its
    // producer's input.
    value.view_of = moved(value.view_of, new_value);
    if (!new_storage[old_storage].valid()) {
      new_storage[old_storage] = BufferId(buffers.size());
      buffers.push_back({BufferId(buffers.size()), {}});
    }
    value.buffer = new_storage[old_storage];
    buffers[value.buffer.index()].values.push_back(value.id);
    values.push_back(std::move(value));
  }
  for (Node& node : nodes) {
    for (ValueId& id : node.inputs) id = moved(id, new_value);
    for (ValueId& id : node.outputs) id = moved(id, new_value);
    node.forward_node = moved(node.forward_node, new_node);
    node.second_run_of = moved(node.second_run_of, new_node);
  }
  for (GraphInput& input : body_->inputs) {
    input.value = moved(input.value, new_value);
  }
  for (GraphOutput& output : body_->outputs) {
    output.value = moved(output.value, new_value);
    output.target = moved(output.target, new_value);
  }
  body_->nodes = std::move(nodes);
  body_->values = std::move(values);
  body_->buffers = std::move(buffers);
  node_names_.clear();
  value_names_.clear();
  for (const Node& node : body_->nodes) node_names_.emplace(node.name, node.id);
  for (const Value& value : body_->values) {
    value_names_.emplace(value.name, value.id);
  }
}

void NodeList::link_consumers() {
  body_->data_flow = DataFlow(body_->nodes.size());
  for (const Node& node : body_->nodes) {
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      Value& value = body_->value(node.inputs[i]);
      value.consumers.push_back({node.id, static_cast<std::uint32_t>(i)});
      if (value.producer.valid()) {
        body_->data_flow.add_edge(value.producer.index(), node.id.index());
      }
    }
  }
}

void NodeList::note_targets() {
  for (const GraphOutput& output : body_->outputs) {
    if (output.kind == OutputKind::kGradient) {
      body_->gradients.emplace(output.target, output.value);
    }
    if (output.kind == OutputKind::kUpdate) {
      body_->updates.emplace(output.target, output.value);
    }
  }
}

void NodeList::mark_phases() {
  std::vector<std::size_t> gradients;
  std::vector<std::size_t> others;
  for (const GraphOutput& output : body_->outputs) {
    const NodeId producer = body_->value(output.value).producer;
    if (!producer.valid()) continue;
    (output.kind == OutputKind::kGradient ? gradients : others)
        .push_back(producer.index());
  }
  const std::vector<bool> forward = body_->data_flow.ancestors(others);
  const std::vector<bool> backward = body_->data_flow.ancestors(gradients);
  for (Node& node : body_->nodes) {
    const std::size_t i = node.id.index();
    bool is_backward = !forward[i] && backward[i];
    if (!forward[i] && !backward[i]) {
      // The node leads to no output: it has the phase of the nodes that produce
      // its inputs.
      is_backward =
          std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
            const NodeId producer = body_->value(id).producer;
            return producer.valid() &&
                   body_->node(producer).phase == Phase::kBackward;
          });
    }
    node.phase = is_backward ? Phase::kBackward : Phase::kForward;
  }
}

void NodeList::index_names() {
  body_->node_names = std::move(node_names_);
  body_->value_names = std::move(value_names_);
  for (const Value& value : body_->values) {
    if (!value.qualified_name.empty()) {
      body_->qualified_names.emplace(value.qualified_name, value.id);
    }
    for (const std::string& alias : value.aliases) {
      body_->qualified_names.emplace(alias, value.id);
    }
  }
}

std::unique_ptr<Graph::Body> NodeList::finish() {
  drop_unused_generated();
  link_consumers();
  note_targets();
  mark_phases();
  index_names();
  body_->hash = hash_graph(*body_);
  return std::move(body_);
}

}  // namespace shardprop
