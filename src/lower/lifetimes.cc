#include "lower/lifetimes.h"

#include "lower/broken_plan.h"

#include <algorithm>
#include <type_traits>
#include <utility>

namespace shardprop::lowering {
namespace {

// Calls visit(id) for every value that a step takes or makes.
template <class Visit>
void for_each_value(const ProgramStep& step, const Visit& visit) {
  if (const auto* op = std::get_if<ProgramOp>(&step.action)) {
    for (const auto& [name, value] : op->args) {
      if (const auto* id = std::get_if<ProgramValueId>(&value)) {
        if (id->valid()) visit(*id);
      } else if (const auto* list =
                     std::get_if<std::vector<ProgramValueId>>(&value)) {
        for (const ProgramValueId element : *list) {
          if (element.valid()) visit(element);
        }
      }
    }
    for (const ProgramValueId id : op->outputs) {
      if (id.valid()) visit(id);
    }
  } else if (const auto* collective =
                 std::get_if<ProgramCollective>(&step.action)) {
    visit(collective->input);
    visit(collective->output);
  }
}

constexpr std::size_t kNever = ~std::size_t{0};

}  // namespace

Result<void> add_frees(SpmdProgram& program) {
  const std::size_t values = program.values.size();
  std::vector<std::size_t> last(values, kNever);  // step
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    for_each_value(program.steps[s],
                   [&](ProgramValueId id) { last[id.index()] = s; });
  }
  std::vector<std::size_t> until(values, kNever);  // node
  for (std::size_t c = 0; c < program.copies.size(); ++c) {
    const ProgramCopy& copy = program.copies[c];
    std::size_t& held = until[copy.value.index()];
    held = held == kNever ? copy.freed_at : std::max(held, copy.freed_at);
  }
  std::vector<bool> stays(values, false);
  for (const ProgramInput& input : program.inputs) {
    stays[input.value.index()] = true;
  }
  for (const ProgramOutput& output : program.outputs) {
    stays[output.value.index()] = true;
  }
  std::vector<std::vector<ProgramValueId>> behind_step(program.steps.size());
  std::vector<std::vector<ProgramValueId>> behind_node(program.nodes.size());
  for (std::size_t v = 0; v < values; ++v) {
    if (stays[v] || last[v] == kNever) continue;
    const ProgramValueId id(v);
    if (until[v] == kNever) {
      behind_step[last[v]].push_back(id);
      continue;
    }
    if (until[v] >= program.nodes.size() ||
        program.steps[last[v]].node > until[v]) {
      return broken_plan(program.value(id).name,
                         "it is taken when it has been dropped");
    }
    behind_node[until[v]].push_back(id);
  }
  std::vector<ProgramStep> steps;
  steps.reserve(program.steps.size() + values);
  std::size_t node = 0;
  const auto end_nodes_before = [&](std::size_t next) {
    for (; node < next; ++node) {
      if (behind_node[node].empty()) continue;
      steps.push_back({ProgramFree{std::move(behind_node[node])}, node, {}});
    }
  };
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    end_nodes_before(program.steps[s].node);
    const std::size_t at = program.steps[s].node;
    steps.push_back(std::move(program.steps[s]));
    if (behind_step[s].empty()) continue;
    steps.push_back({ProgramFree{std::move(behind_step[s])}, at, {}});
  }
  end_nodes_before(program.nodes.size());
  program.steps = std::move(steps);
  return {};
}

}  // namespace shardprop::lowering
