#include "plan/problem/counterparts.h"

#include "base/index.h"
#include "plan/problem/problem_data.h"

#include <algorithm>
#include <set>
#include <utility>

namespace shardprop {

Counterparts::Counterparts(const ProblemData& data)
    : data_(data),
      blocks_(data.graph),
      second_runs_(data.graph.nodes().size()) {
  for (const Node& node : data.graph.nodes()) {
    if (node.runs_again()) second_runs_[node.second_run_of.index()] = node.id;
  }
  for (const Block& block : blocks_.blocks()) {
    for (std::size_t p = 0; p < block.inputs.size(); ++p) {
      input_positions_[block.inputs[p]] = p;
    }
  }
  for (std::size_t v = 0; v < data.variables.size(); ++v) {
    places_.push_back(place_of(data.variables[v]));
  }
}

std::vector<PlanVariableId> Counterparts::firsts() const {
  std::map<Key, std::vector<PlanVariableId>> known;  // one a set of choices
  std::vector<PlanVariableId> first;
  std::set<std::pair<Key, std::size_t>> seen;
  for (std::size_t v = 0; v < data_.variables.size(); ++v) {
    const PlanVariableId id(v);
    first.push_back(id);
    if (!places_[v]) continue;
    Key key = key_of(id);
    // A block may have several outputs of one value.
    while (!seen.insert({key, places_[v]->block}).second) key.push_back(0);
    std::vector<PlanVariableId>& firsts = known[key];
    for (const PlanVariableId other : firsts) {
      if (have_same_choices(*data_.variables[v].choices,
                            *variable(other).choices)) {
        first.back() = other;
        break;
      }
    }
    if (first.back() == id) firsts.push_back(id);
  }
  return first;
}

std::vector<std::vector<std::int64_t>> Counterparts::slots() const {
  std::vector<std::vector<std::int64_t>> out;
  for (const BlockRun& run : blocks_.runs()) {
    auto blocks = blocks_.blocks().subspan(run.first, run.count);
    while (!blocks.empty()) {
      std::size_t count = 1;
      while (count < blocks.size() && blocks[count].code == blocks[0].code) {
        ++count;
      }
      for (std::size_t p = 0; p < blocks[0].nodes.size(); ++p) {
        if (!blocks[0].nodes[p].valid()) continue;
        std::vector<std::int64_t>& slots = out.emplace_back();
        for (const Block& block : blocks.first(count)) {
          slots.push_back(static_cast<std::int64_t>(block.nodes[p].index()));
        }
      }
      blocks = blocks.subspan(count);
    }
  }
  return out;
}

const PlanVariable& Counterparts::variable(PlanVariableId id) const {
  return data_.variables[id.index()];
}
const PlanBuffer& Counterparts::buffer_of(ValueId value) const {
  return data_.buffers[data_.values[value.index()].buffer.index()];
}

PlanVariableId Counterparts::first_run(PlanVariableId id) const {
  const PlanVariable& of = variable(id);
  if (of.kind != PlanVariable::Kind::kOperator) return id;
  const Node& node = data_.graph.node(NodeId(of.index));
  return node.runs_again() ? data_.of_node[node.second_run_of.index()] : id;
}

std::optional<Counterparts::Place> Counterparts::place_in(
    std::size_t block, std::size_t position) const {
  const Block& found = blocks_.blocks()[block];
  if (!found.run) return std::nullopt;
  return Place{*found.run, found.place, position};
}

std::optional<Counterparts::Place> Counterparts::place_of_value(
    ValueId id) const {
  const Value& value = data_.graph.value(id);
  if (!value.is_input()) {
    return place_in(blocks_.block_of(value.producer),
                    blocks_.position_of(value.producer));
  }
  const auto block = blocks_.block_of_input(id);
  if (!block) return std::nullopt;
  return place_in(*block, input_positions_.at(id));
}

std::optional<Counterparts::Place> Counterparts::place_of(
    const PlanVariable& variable) const {
  switch (variable.kind) {
    case PlanVariable::Kind::kInput:
      return place_of_value(variable.makes[0]);
    case PlanVariable::Kind::kOutput:
      return place_of_value(variable.uses[0]);
    case PlanVariable::Kind::kOperator: {
      const NodeId node(variable.index);
      return place_in(blocks_.block_of(node), blocks_.position_of(node));
    }
  }
  return std::nullopt;
}

Counterparts::Key Counterparts::key_of(PlanVariableId id) const {
  const PlanVariable& own = variable(id);
  const Place& place = *places_[id.index()];
  Key key{index(own.kind), place.run, place.position};
  switch (own.kind) {
    case PlanVariable::Kind::kInput:
      break;
    case PlanVariable::Kind::kOutput:
      key.push_back(data_.graph.value(own.uses[0]).output_index);
      key.push_back(index(data_.graph.outputs()[own.index].kind));
      break;
    case PlanVariable::Kind::kOperator: {
      const Node& node = data_.graph.node(NodeId(own.index));
      add_neighbours(
          node.runs_again() ? data_.graph.node(node.second_run_of) : node,
          place, key);
      break;
    }
  }
  return key;
}

void Counterparts::add_neighbours(const Node& node, const Place& place,
                                  Key& key) const {
  const PlanVariable& own = variable(data_.of_node[node.id.index()]);
  for (const ValueId use : own.uses) {
    const PlanBuffer& buffer = buffer_of(use);
    key.push_back(buffer.operand);
    add_neighbour(first_run(buffer.producer), place, key);
  }
  const NodeId second = second_runs_[node.id.index()];
  for (const ValueId result : own.makes) {
    std::vector<Key> readers;
    add_readers(result, place, readers);
    if (second.valid()) {
      const std::size_t output = data_.graph.value(result).output_index;
      add_readers(data_.graph.node(second).outputs[output], place, readers);
    }
    std::sort(readers.begin(), readers.end());
    key.push_back(readers.size());
    for (const Key& reader : readers) {
      key.insert(key.end(), reader.begin(), reader.end());
    }
  }
}

void Counterparts::add_readers(ValueId result, const Place& place,
                               std::vector<Key>& readers) const {
  for (const BufferUse& use : buffer_of(result).uses) {
    if (first_run(use.variable) != use.variable) continue;
    Key& key = readers.emplace_back();
    key.push_back(use.operand);
    add_neighbour(use.variable, place, key);
  }
}

void Counterparts::add_neighbour(PlanVariableId id, const Place& place,
                                 Key& key) const {
  const auto& there = places_[id.index()];
  if (!there || there->run != place.run) {
    key.insert(key.end(), {0, id.index()});
    return;
  }
  key.insert(key.end(), {1, index(variable(id).kind), there->position,
                         there->block - place.block});
}

}  // namespace shardprop
