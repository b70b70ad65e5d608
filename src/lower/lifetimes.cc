#include "lower/lifetimes.h"

#include "lower/broken_plan.h"
#include "program/step_values.h"

#include <algorithm>
#include <utility>

namespace shardprop::lowering {
namespace {

// True if the step only shows memory that another value has.
bool is_view(const SpmdProgram& program, const ProgramStep& step) {
  if (!std::holds_alternative<ProgramOp>(step.action)) return false;
  bool views = false;
  bool makes = false;
  for_each_made(step, [&](ProgramValueId id) {
    const ProgramValueId buffer = program.value(id).buffer;
    const bool own =
        !buffer.valid() || buffer == id || program.value(id).overwrites.valid();
    (own ? makes : views) = true;
  });
  return views && !makes;
}

constexpr std::size_t kNever = ~std::size_t{0};

}  // namespace

void drop_unused_views(SpmdProgram& program) {
  std::vector<bool> taken(program.values.size(), false);
  const auto take = [&](ProgramValueId id) {
    if (id.valid()) taken[id.index()] = true;
  };
  for (const ProgramOutput& output : program.outputs) take(output.value);
  for (const ProgramCopy& copy : program.copies) take(copy.value);
  std::vector<bool> dropped(program.values.size(), false);
  std::vector<ProgramStep> kept;
  for (std::size_t s = program.steps.size(); s-- > 0;) {
    ProgramStep& step = program.steps[s];
    bool used = !is_view(program, step);
    for_each_made(step,
                  [&](ProgramValueId id) { used = used || taken[id.index()]; });
    if (used) {
      for_each_taken(step, take);
      kept.push_back(std::move(step));
    } else {
      for_each_made(step,
                    [&](ProgramValueId id) { dropped[id.index()] = true; });
    }
  }
  std::reverse(kept.begin(), kept.end());
  program.steps = std::move(kept);
  for (ProgramNode& node : program.nodes) {
    for (ProgramValueId& id : node.outputs) {
      if (id.valid() && dropped[id.index()]) id = {};
    }
  }
}

Result<void> add_frees(SpmdProgram& program) {
  const std::size_t values = program.values.size();
  std::vector<std::size_t> last(values, kNever);  // step
  // By value: the node in which the last wait ends a transfer to or from it.
  std::vector<std::size_t> waited_in(values, 0);
  std::vector<std::size_t> starts(values,
                                  kNever);  // overlapped step, by result
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    const ProgramStep& step = program.steps[s];
    const auto visit = [&](ProgramValueId id) { last[id.index()] = s; };
    for_each_taken(step, visit);
    for_each_made(step, [&](ProgramValueId id) {
      visit(id);
      if (step.is_overlapped) starts[id.index()] = s;
    });
    const auto* wait = std::get_if<ProgramWait>(&step.action);
    if (wait == nullptr) continue;
    const auto end = [&](ProgramValueId id) {
      visit(id);
      waited_in[id.index()] = step.node;
    };
    for (const ProgramValueId id : wait->values) {
      end(id);
      for_each_taken(program.steps[starts[id.index()]], end);
    }
  }
  std::vector<std::size_t> until(values, kNever);  // node
  for (std::size_t c = 0; c < program.copies.size(); ++c) {
    const ProgramCopy& copy = program.copies[c];
    if (!copy.value.valid()) continue;  // left out with the optimizer's step
    std::size_t& held = until[copy.value.index()];
    held = held == kNever ? copy.freed_at : std::max(held, copy.freed_at);
    held = std::max(held, waited_in[copy.value.index()]);
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
