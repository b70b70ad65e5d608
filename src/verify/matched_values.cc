#include "verify/rank_run.h"

#include <unordered_set>
#include <utility>

namespace shardprop::verification {
namespace {

// The elements of such tensors are not initialized.
bool is_uninitialized(const std::string& op) {
  return op.starts_with("aten.empty") || op.starts_with("aten.new_empty");
}

std::vector<std::string> names_of(const SpmdProgram& model,
                                  const std::vector<ProgramValueId>& ids) {
  std::vector<std::string> out;
  for (const ProgramValueId id : ids) {
    out.push_back(id.valid() ? model.value(id).name : std::string());
  }
  return out;
}

// The last node that runs for a planned node has its value.
MatchedValues stated_values(const RankProgram& program,
                            const SpmdProgram& model) {
  std::unordered_map<std::string, const Node*> last;
  std::unordered_map<std::string, std::string> planned_for;
  for (const Node& node : program.graph->nodes()) {
    for (const ValueId id : node.outputs) {
      const std::string& name = program.graph->value(id).name;
      const auto found = program.planned_nodes.find(name);
      if (found == program.planned_nodes.end()) continue;
      last[found->second] = &node;
      planned_for[name] = found->second;
    }
  }
  MatchedValues out;
  out.is_stated = true;
  for (const ProgramNode& node : model.nodes) {
    const auto found = last.find(node.name);
    if (found == last.end() || is_uninitialized(node.op)) continue;
    const std::vector<std::string> names = names_of(model, node.outputs);
    const std::vector<ValueId>& made = found->second->outputs;
    for (std::size_t o = 0; o < names.size(); ++o) {
      const auto same = planned_for.find(names[o]);
      if (made.size() == names.size()) {
        out.names.emplace(program.graph->value(made[o]).name, names[o]);
      } else if (same != planned_for.end() && same->second == node.name) {
        out.names.emplace(names[o], names[o]);
      }
    }
  }
  return out;
}

MatchedValues values_of_equal_names(const RankProgram& program,
                                    const SpmdProgram& model) {
  std::unordered_map<std::string, const ProgramNode*> makers;
  for (const ProgramNode& node : model.nodes) {
    for (const std::string& name : names_of(model, node.outputs)) {
      makers.emplace(name, &node);
    }
  }
  MatchedValues out;
  for (const Node& node : program.graph->nodes()) {
    for (const ValueId id : node.outputs) {
      const std::string& name = program.graph->value(id).name;
      const auto found = makers.find(name);
      if (found == makers.end() || found->second->op != node.op_name() ||
          is_uninitialized(node.op_name())) {
        continue;
      }
      out.names.emplace(name, name);
    }
  }
  return out;
}

}  // namespace

MatchedValues matched_values(const RankProgram& program,
                             const SpmdProgram& model) {
  return program.planned_nodes.empty() ? values_of_equal_names(program, model)
                                       : stated_values(program, model);
}

}  // namespace shardprop::verification
