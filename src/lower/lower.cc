#include <shardprop/lower/lower.h>

#include "base/guard.h"
#include "base/try.h"
#include "lower/broken_plan.h"
#include "lower/lifetimes.h"
#include "lower/lowering.h"
#include "lower/unsharded_plan.h"
#include "plan/storages.h"

#include <type_traits>
#include <utility>

namespace shardprop {
namespace lowering {
namespace {

ProgramInputKind kind_of(InputKind kind) {
  switch (kind) {
    case InputKind::kParameter:
      return ProgramInputKind::kParameter;
    case InputKind::kBuffer:
      return ProgramInputKind::kBuffer;
    case InputKind::kConstant:
      return ProgramInputKind::kConstant;
    case InputKind::kUser:
      return ProgramInputKind::kUser;
  }
  return ProgramInputKind::kUser;
}

ProgramOutputKind kind_of(OutputKind kind) {
  switch (kind) {
    case OutputKind::kUser:
      return ProgramOutputKind::kUser;
    case OutputKind::kLoss:
      return ProgramOutputKind::kLoss;
    case OutputKind::kGradient:
      return ProgramOutputKind::kGradient;
    case OutputKind::kUpdate:
      return ProgramOutputKind::kUpdate;
  }
  return ProgramOutputKind::kUser;
}

}  // namespace

Lowering::Lowering(const Plan& plan, const Graph& graph,
                   const OpLibrary& library)
    : plan_(plan),
      graph_(graph),
      build_(program_),
      calls_(plan.mesh, library),
      chains_(plan.mesh, library, calls_.layouts()) {
  program_.graph_name = plan.graph_name;
  program_.graph_hash = plan.graph_hash;
  program_.mesh = plan.mesh;
  for (const Value& value : graph.values()) {
    graph_values_.emplace(value.display_name(), value.id);
  }
}

Result<SpmdProgram> Lowering::run() {
  SP_CHECK(check_plan());
  SP_CHECK(add_inputs());
  for (std::size_t n = 0; n < plan_.nodes.size(); ++n) {
    SP_CHECK(make_copies(n));
    SP_CHECK(add_node(graph_.nodes()[n], plan_.nodes[n]));
  }
  for (const PlannedUpdate& update : plan_.updates) {
    SP_CHECK(make_copies(program_.nodes.size()));
    SP_CHECK(add_update(update));
  }
  SP_CHECK(make_copies(program_.nodes.size()));
  if (next_copy_ < plan_.copies.size()) {
    return broken_plan("copy " + std::to_string(next_copy_),
                       "it is made behind one that is made later");
  }
  program_.nodes.emplace_back();
  SP_CHECK(add_outputs());
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
                      "there is no plan to run: it is " +
                          std::string(solver::to_string(plan_.status)),
                      plan_.graph_name,
                      {},
                      "give more memory, more devices or more time"});
  }
  if (plan_.nodes.size() != graph_.nodes().size()) {
    return broken_plan("nodes", "they are not those of its graph");
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
                         "it says not how it is laid out");
    }
    made_[value.display_name()] = build_.input(
        {kind_of(input.kind), {}, {}, input.persistent}, value.display_name(),
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
    const bool is_made = *input.copy < program_.copies.size();
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
    return broken_plan(planned.name,
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
  // Assertions run nothing: what they ask held when the plan was made.
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
      const bool is_view = StorageForest::keeps_every_element(graph_, node);
      std::vector<Target> targets;
      for (std::size_t o = 0; o < node.outputs.size(); ++o) {
        const Value& value = graph_.value(node.outputs[o]);
        targets.push_back({value.display_name(), value.meta,
                           planned.outputs[o].tensor.layout,
                           is_view ? made.inputs[0] : ProgramValueId()});
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

namespace {

// The values of a call while it runs: inputs, and the results of each step.
class CallValues {
 public:
  explicit CallValues(const std::vector<ProgramValueId>& inputs)
      : inputs_(inputs) {}
  void add(std::vector<ProgramValueId> results) {
    results_.push_back(std::move(results));
  }
  ProgramValueId operator[](const LocalRef& ref) const {
    if (ref.index == TensorArg::kNone) return {};
    const auto index = static_cast<std::size_t>(ref.index);
    return ref.step < 0 ? inputs_[index]
                        : results_[static_cast<std::size_t>(ref.step)][index];
  }

 private:
  const std::vector<ProgramValueId>& inputs_;
  std::vector<std::vector<ProgramValueId>> results_;
};

ProgramArgument argument(const LocalCall::Argument& argument,
                         const CallValues& values) {
  return std::visit(
      [&](const auto& held) -> ProgramArgument {
        using T = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<T, LocalRef>) {
          return values[held];
        } else if constexpr (std::is_same_v<T, std::vector<LocalRef>>) {
          std::vector<ProgramValueId> ids;
          for (const LocalRef& ref : held) ids.push_back(values[ref]);
          return ids;
        } else if constexpr (std::is_same_v<T, Argument>) {
          // The operator's own arguments name its operands.
          if (const auto* tensor = std::get_if<TensorArg>(&held)) {
            return values[{-1, tensor->operand}];
          }
          if (const auto* list = std::get_if<std::vector<TensorArg>>(&held)) {
            std::vector<ProgramValueId> ids;
            for (const TensorArg& one : *list) {
              ids.push_back(values[{-1, one.operand}]);
            }
            return ids;
          }
          return held;
        } else {
          return held;
        }
      },
      argument);
}

// A collective inside a local program, as the plan priced it.
Result<RedistributeStep> inside(const LocalCollective& collective,
                                const PlannedNode* planned, std::size_t index,
                                const std::string& where) {
  const bool is_planned =
      planned != nullptr && index < planned->inside.size() &&
      planned->inside[index].kind == collective.kind &&
      planned->inside[index].reduce_op == collective.op &&
      planned->inside[index].mesh_dims == collective.mesh_dims;
  if (!is_planned) {
    return broken_plan(where,
                       "the collectives inside are not those of its program");
  }
  if (collective.kind != CollectiveKind::kAllReduce &&
      collective.kind != CollectiveKind::kAllGather) {
    return fail(Error{ErrorCode::kNotLowered,
                      "a local program has a collective of kind " +
                          std::string(to_string(collective.kind)),
                      where,
                      {},
                      {}});
  }
  RedistributeStep step;
  static_cast<CollectiveStep&>(step) = planned->inside[index];
  return step;
}

}  // namespace

Result<std::vector<ProgramValueId>> Lowering::run_call(
    const LocalCall& call, const std::vector<ProgramValueId>& inputs,
    const std::vector<Target>& targets, const PlannedNode* planned,
    const std::string& where) {
  const auto new_value = [&](std::size_t output) {
    const Target& target = targets[output];
    return build_.value(target.name, target.meta, target.layout,
                        target.storage);
  };
  std::vector<ProgramValueId> made(targets.size());
  // A result of the call itself, if no other has taken it yet.
  const auto result = [&](std::size_t step, std::size_t index) {
    for (std::size_t o = 0; o < call.outputs.size(); ++o) {
      const LocalRef& ref = call.outputs[o];
      if (ref.step != static_cast<std::int32_t>(step) ||
          ref.index != static_cast<std::int32_t>(index) || made[o].valid()) {
        continue;
      }
      return made[o] = new_value(o);
    }
    return ProgramValueId();
  };
  CallValues values(inputs);
  std::size_t collectives = 0;
  for (std::size_t s = 0; s < call.steps.size(); ++s) {
    if (const auto* op = std::get_if<LocalCall::Op>(&call.steps[s])) {
      ProgramArguments args;
      for (const auto& [name, value] : op->args) {
        args.emplace_back(name, argument(value, values));
      }
      std::vector<ProgramValueId> results;
      for (std::size_t r = 0; r < op->results; ++r) {
        results.push_back(result(s, r));
        if (!results.back().valid() && call.steps.size() > 1) {
          results.back() = build_.local(where + ".l" + std::to_string(s));
        }
      }
      build_.op(op->name, std::move(args), results);
      values.add(std::move(results));
    } else {
      const auto& collective = std::get<LocalCollective>(call.steps[s]);
      SP_ASSIGN(RedistributeStep step,
                inside(collective, planned, collectives++, where));
      ProgramValueId reduced = result(s, 0);
      if (!reduced.valid()) {
        reduced = build_.local(where + ".l" + std::to_string(s));
      }
      build_.collective(std::move(step), values[collective.value], reduced);
      values.add({reduced});
    }
  }
  if (planned != nullptr && collectives != planned->inside.size()) {
    return broken_plan(where,
                       "the collectives inside are not those of its program");
  }
  for (std::size_t o = 0; o < made.size(); ++o) {
    if (made[o].valid()) continue;
    made[o] = new_value(o);
    build_.op("aten.alias.default", {{"self", values[call.outputs[o]]}},
              {made[o]});
  }
  return made;
}

Result<void> Lowering::add_outputs() {
  std::unordered_map<std::string, std::size_t> inputs;
  for (std::size_t i = 0; i < program_.inputs.size(); ++i) {
    inputs.emplace(program_.value(program_.inputs[i].value).name, i);
  }
  std::vector<ProgramOutput> out;
  for (const PlannedOutput& output : plan_.outputs) {
    SP_ASSIGN(const ProgramValueId id,
              taken(output.value, "output " + output.value.from));
    ProgramOutput made{kind_of(output.kind), id, {}};
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
  // What the optimizer's steps made of their state stands there already.
  out.insert(out.end(), program_.outputs.begin(), program_.outputs.end());
  program_.outputs = std::move(out);
  return {};
}

}  // namespace lowering

Result<SpmdProgram> lower(const Plan& plan, const Graph& graph,
                          const OpLibrary& library) {
  return guarded(
      [&] { return lowering::Lowering(plan, graph, library).run(); });
}

Result<SpmdProgram> lower_unsharded(const Graph& graph,
                                    const OpLibrary& library,
                                    Optimizer optimizer) {
  return guarded(
      [&] { return lower(unsharded_plan(graph, optimizer), graph, library); });
}

}  // namespace shardprop
