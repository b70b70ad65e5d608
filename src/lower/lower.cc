#include <shardprop/lower/lower.h>

#include "base/guard.h"
#include "base/try.h"
#include "graph/analysis/view_source.h"
#include "graph/analysis/whole_view.h"
#include "lower/broken_plan.h"
#include "lower/lifetimes.h"
#include "lower/lowering.h"
#include "lower/unsharded_plan.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace shardprop {
namespace lowering {
namespace {

// A program without updates writes nothing in place, so that its index spaces
// are not needed.
InPlace in_place(const Graph& graph, const OpLibrary& library) {
  std::vector<std::optional<IndexSpace>> spaces(graph.nodes().size());
  std::vector<const IndexSpace*> known(spaces.size(), nullptr);
  const bool has_updates =
      std::any_of(graph.outputs().begin(), graph.outputs().end(),
                  [](const GraphOutput& output) {
                    return output.kind == OutputKind::kUpdate;
                  });
  if (!has_updates) return InPlace(graph, known);
  for (const Node& node : graph.nodes()) {
    auto space = library.index_space(node.op);
    if (!space) continue;
    const std::size_t n = node.id.index();
    known[n] = &spaces[n].emplace(*std::move(space));
  }
  return InPlace(graph, known);
}

// Returns the copies that only the optimizer's step reads.
std::set<std::size_t> copies_of_step(const Plan& plan) {
  std::set<std::size_t> copies;
  for (const PlannedUpdate& update : plan.updates) {
    if (update.value.copy) copies.insert(*update.value.copy);
  }
  const auto read = [&](const PlannedInput& input) {
    if (input.copy) copies.erase(*input.copy);
  };
  for (const PlannedNode& node : plan.nodes) {
    for (const PlannedInput& input : node.inputs) read(input);
  }
  for (const PlannedUpdate& update : plan.updates) {
    if (update.gradient) read(*update.gradient);
  }
  for (const PlannedOutput& output : plan.outputs) read(output.value);
  for (const PlannedCopy& copy : plan.copies) {
    if (copy.source) copies.erase(*copy.source);
  }
  return copies;
}

}  // namespace

Lowering::Lowering(const Plan& plan, const Graph& graph,
                   const OpLibrary& library, const LowerOptions& options)
    : plan_(plan),
      graph_(graph),
      library_(library),
      options_(options),
      build_(program_),
      calls_(plan.mesh, library),
      chains_(plan.mesh, library, calls_.layouts()),
      in_place_(in_place(graph, library)) {
  program_.graph_name = plan.graph_name;
  program_.graph_hash = plan.graph_hash;
  program_.mesh = plan.mesh;
  program_.device = graph.device();
  for (const Value& value : graph.values()) {
    graph_values_.emplace(value.display_name(), value.id);
  }
  if (options.optimizer_step) return;
  unread_copies_ = copies_of_step(plan);
  for (const PlannedUpdate& update : plan.updates) {
    not_updated_.insert(update.parameter);
  }
}

Result<SpmdProgram> Lowering::run() {
  SP_CHECK(check_plan());
  SP_CHECK(add_inputs());
  SP_CHECK(plan_copies());
  for (std::size_t n = 0; n < plan_.nodes.size(); ++n) {
    SP_CHECK(make_copies(n));
    SP_CHECK(add_node(graph_.nodes()[n], plan_.nodes[n]));
  }
  for (const PlannedUpdate& update : plan_.updates) {
    SP_CHECK(make_copies(program_.nodes.size()));
    SP_CHECK(add_update(update));
  }
  SP_CHECK(make_copies(program_.nodes.size()));
  if (next_issue_ < issue_order_.size()) {
    return broken_plan("copy " + std::to_string(issue_order_[next_issue_]),
                       "it is produced after the end of the program");
  }
  if (next_wait_ < wait_order_.size()) {
    return broken_plan("copy " + std::to_string(wait_order_[next_wait_]),
                       "it is waited for after the end of the program");
  }
  program_.nodes.emplace_back();
  SP_CHECK(add_outputs());
  drop_unused_views(program_);
  SP_CHECK(add_frees(program_));
  return std::move(program_);
}

Result<void> Lowering::check_plan() const {
  if (plan_.graph_hash != hash_text(graph_.hash())) {
    return fail(
        Error{ErrorCode::kPlanOtherGraph,
              "the plan was made for another graph",
              {},
              {"plan: " + plan_.graph_name + " " + plan_.graph_hash,
               "graph: " + graph_.name() + " " + hash_text(graph_.hash())},
              "give the graph it was made for, or plan anew"});
  }
  if (!plan_.has_plan()) {
    return fail(Error{ErrorCode::kPlanNotRunnable,
                      "planning ended " +
                          std::string(solver::to_string(plan_.status)) +
                          ", without a plan to run",
                      plan_.graph_name,
                      {},
                      "give more memory, more devices or more time"});
  }
  if (plan_.nodes.size() != graph_.nodes().size()) {
    return broken_plan("nodes", "they are not as many as those of the graph");
  }
  if (!(summarize(plan_) == plan_.summary)) {
    return broken_plan("summary", "it is not the sum of copies and nodes");
  }
  return {};
}

Result<void> Lowering::add_inputs() {
  std::unordered_map<std::string, const PlannedValue*> planned;
  for (const PlannedValue& value : plan_.values) {
    planned.emplace(value.name, &value);
  }
  for (const GraphInput& input : graph_.inputs()) {
    const Value& value = graph_.value(input.value);
    const auto found = planned.find(value.display_name());
    if (found == planned.end() ||
        found->second->tensor.shape != value.meta.shape() ||
        !check_layout(found->second->tensor.layout, plan_.mesh, value.meta)) {
      return broken_plan(value.display_name(),
                         "the plan does not say how this input is laid out");
    }
    made_[value.display_name()] = build_.input(
        {input.kind, {}, {}, input.persistent}, value.display_name(),
        value.meta, found->second->tensor.layout);
  }
  return {};
}

Result<ProgramValueId> Lowering::made(const std::string& name,
                                      const std::string& where) const {
  const auto found = made_.find(name);
  if (found != made_.end()) return found->second;
  return broken_plan(where, "`" + name + "` is taken before it is made");
}

Result<ProgramValueId> Lowering::taken(const PlannedInput& input,
                                       const std::string& where) const {
  ProgramValueId id;
  if (input.copy) {
    const bool is_made =
        *input.copy < is_issued_.size() && is_issued_[*input.copy];
    if (!is_made || program_.copies[*input.copy].from != input.from) {
      return broken_plan(where, "copy " + std::to_string(*input.copy) +
                                    " is not there, or of another value");
    }
    id = program_.copies[*input.copy].value;
  } else {
    SP_ASSIGN(id, made(input.from, where));
  }
  if (program_.value(id).layout == input.layout) return id;
  return broken_plan(where, "`" + input.from + "` is taken as " +
                                to_string(input.layout) + " where it lies as " +
                                to_string(program_.value(id).layout));
}

Result<void> Lowering::add_node(const Node& node, const PlannedNode& planned) {
  const bool same_operands = planned.inputs.size() == node.inputs.size();
  if (planned.name != node.name || planned.op != node.op_name() ||
      !same_operands) {
    return broken_plan(planned.name.empty() ? node.name : planned.name,
                       "it is not the node `" + node.name + "` of the graph");
  }
  ProgramNode made{node.name,
                   node.op_name(),
                   node.module_path,
                   node.phase == Phase::kBackward,
                   {},
                   {}};
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (planned.inputs[i].from != graph_.value(node.inputs[i]).display_name()) {
      return broken_plan(node.name, "it takes `" + planned.inputs[i].from +
                                        "`, which is not its operand");
    }
    SP_ASSIGN(const ProgramValueId id, taken(planned.inputs[i], node.name));
    made.inputs.push_back(id);
  }
  build_.stand_at(program_.nodes.size());
  // Assertions run nothing, because their conditions held when the plan was
  // made.
  if (!node.outputs.empty()) {
    if (planned.assignment.empty()) {
      return fail(Error{ErrorCode::kPlanNotRunnable,
                        "the plan does not say how `" + node.name + "` runs",
                        node.name,
                        {},
                        "plan anew: it is of schema shardprop.plan/1"});
    }
    if (planned.outputs.size() != node.outputs.size()) {
      return broken_plan(node.name, "it makes another number of tensors");
    }
    SP_ASSIGN(const LocalCall* call, calls_.of(node, planned));
    if (call->is_random) {
      SP_CHECK(draw(node, planned, made.inputs, made.outputs));
    } else {
      std::vector<Target> targets;
      for (std::size_t o = 0; o < node.outputs.size(); ++o) {
        const Value& value = graph_.value(node.outputs[o]);
        targets.push_back({value.display_name(), value.meta,
                           planned.outputs[o].tensor.layout,
                           viewed_by(node, o, *call, made.inputs),
                           overwritten_by(node, o, made.inputs)});
      }
      SP_ASSIGN(made.outputs,
                run_call(*call, made.inputs, targets, &planned, node.name));
    }
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      made_[graph_.value(node.outputs[o]).display_name()] = made.outputs[o];
    }
  }
  program_.nodes.push_back(std::move(made));
  return {};
}

// Returns the operand that an output views; invalid if it views none.
ProgramValueId Lowering::viewed_by(
    const Node& node, std::size_t output, const LocalCall& call,
    const std::vector<ProgramValueId>& inputs) const {
  if (is_whole_view(graph_, node)) return inputs[0];
  if (!call.is_view) return {};
  const auto operand = viewed_operand(graph_, node, output);
  return operand ? inputs[*operand] : ProgramValueId();
}

// Returns the operand into whose memory an output is written; invalid if there
// is none.
ProgramValueId Lowering::overwritten_by(
    const Node& node, std::size_t output,
    const std::vector<ProgramValueId>& inputs) const {
  const auto operand = output == 0 ? in_place_.operand(node) : std::nullopt;
  return operand ? inputs[*operand] : ProgramValueId();
}

Result<void> Lowering::add_outputs() {
  std::unordered_map<std::string, std::size_t> inputs;
  for (std::size_t i = 0; i < program_.inputs.size(); ++i) {
    inputs.emplace(program_.value(program_.inputs[i].value).name, i);
  }
  std::vector<ProgramOutput> out;
  for (const PlannedOutput& output : plan_.outputs) {
    OutputKind kind = output.kind;
    if (not_updated_.contains(output.target)) {
      // The gradient replaces the updated parameter as the output.
      if (kind == OutputKind::kGradient) continue;
      kind = OutputKind::kGradient;
    }
    SP_ASSIGN(const ProgramValueId id,
              taken(output.value, "output " + output.value.from));
    ProgramOutput made{kind, id, {}};
    if (!output.target.empty()) {
      const auto found = inputs.find(output.target);
      if (found == inputs.end()) {
        return broken_plan("output " + output.value.from,
                           "`" + output.target + "` is not an input");
      }
      made.target = found->second;
    }
    out.push_back(made);
  }
  // The program already has the outputs that the optimizer's steps produce from
  // their state.
  out.insert(out.end(), program_.outputs.begin(), program_.outputs.end());
  program_.outputs = std::move(out);
  return {};
}

}  // namespace lowering

Result<SpmdProgram> lower(const Plan& plan, const Graph& graph,
                          const OpLibrary& library,
                          const LowerOptions& options) {
  return guarded(
      [&] { return lowering::Lowering(plan, graph, library, options).run(); });
}

Result<SpmdProgram> lower_unsharded(const Graph& graph,
                                    const OpLibrary& library,
                                    Optimizer optimizer) {
  return guarded(
      [&] { return lower(unsharded_plan(graph, optimizer), graph, library); });
}

}  // namespace shardprop
