// Turns the operators that a program calls into steps: selects the overload
// that accepts the values, and infers its results and its index space.

#include "base/quantities.h"
#include "ops/program/tracer.h"

#include <algorithm>

namespace shardprop {
namespace {

// Returns the operands in the order of the declared arguments.
std::vector<LocalRef> operands_of(const LocalOp& op,
                                  const FunctionSchema& function) {
  std::vector<LocalRef> refs;
  for (const ArgumentSchema& declared : function.arguments()) {
    for (const auto& [name, value] : op.args) {
      if (name != declared.name) continue;
      if (const auto* ref = std::get_if<LocalRef>(&value)) {
        refs.push_back(*ref);
      }
      if (const auto* list = std::get_if<std::vector<LocalRef>>(&value)) {
        for (const LocalRef& ref : *list) {
          if (ref.index != TensorArg::kNone) refs.push_back(ref);
        }
      }
    }
  }
  return refs;
}

void drop_defaults(LocalOp& op, const FunctionSchema& function) {
  std::erase_if(op.args, [&](const auto& named) {
    const auto* value = std::get_if<Argument>(&named.second);
    if (value == nullptr) return false;
    const auto at = function.argument_index(named.first);
    const ArgumentSchema& declared = function.arguments()[*at];
    return declared.has_default && declared.default_value == *value;
  });
}

}  // namespace

TraceValue Tracer::operation(const std::string& name, const Values& positional,
                             const Named& named) {
  std::vector<std::string> overloads = {name};
  if (!name.starts_with("aten.")) {
    overloads = library_.overloads("aten." + name);
  }
  Refusal refused;
  for (const std::string& overload : overloads) {
    const auto function = library_.find(overload);
    if (function == nullptr || function->is_mutating()) continue;
    if (auto done = apply(function, positional, named, refused)) return *done;
  }
  // Texts of errors are built here, since most calls are accepted.
  if (refused.overload == nullptr) {
    throw CallError{
        .message = "a program calls `" + name + "`, which is not an operator",
        .help = library_.suggest(name.starts_with("aten.") ? name
                                                           : "aten." + name)};
  }
  throw CallError{.message = "a program calls " + refused.message,
                  .help = "it is declared as " + to_string(*refused.overload)};
}

std::optional<TraceValue> Tracer::apply(
    const std::shared_ptr<const FunctionSchema>& function,
    const Values& positional, const Named& named, Refusal& refused) {
  DecompositionStep step;
  std::vector<GivenArgument> given;
  std::vector<TensorMeta> inputs;
  const auto refuse = [&](std::string message) {
    refused.message = std::move(message);
    refused.overload = function;
  };
  const auto add = [&](const std::string& argument, const TraceValue& value) {
    const auto* scalar = std::get_if<RankScalar>(&value);
    given.push_back(
        {argument, scalar != nullptr && !out_->per_rank
                       ? Argument(value_on_full_tensors(*scalar))
                       : as_argument(value, inputs, step.operands)});
    step.op.args.emplace_back(argument, as_local(value));
  };
  for (std::size_t i = 0; i < positional.size(); ++i) {
    if (i >= function->arguments().size()) {
      if (!refused.has_types) {
        refuse("`" + function->name() + "` with " +
               counted(positional.size(), "value"));
      }
      return std::nullopt;
    }
    add(function->arguments()[i].name, positional[i]);
  }
  for (const auto& [argument, value] : named) {
    const auto at = function->argument_index(argument);
    if (!at) {
      if (!refused.has_types) {
        refuse("`" + function->name() + "` with `" + argument + "`");
      }
      return std::nullopt;
    }
    const bool may_lack = function->arguments()[*at].has_default;
    if (!may_lack || !is_none(value)) add(argument, value);
  }
  auto schema = make_op_schema(function, std::move(given), std::move(inputs));
  if (!schema) {
    if (!refused.has_types) refuse(schema.error().message);
    return std::nullopt;
  }
  refused.has_types = true;
  step.operands = operands_of(step.op, *function);
  auto results = library_.infer_results(*schema);
  if (!results) {
    refuse(results.error().message);
    return std::nullopt;
  }
  set_results(*schema, *std::move(results));
  if (schema->outputs.empty()) {
    refuse("`" + function->name() + "`, which makes no tensor here");
    return std::nullopt;
  }
  if (!out_->per_rank) {
    auto space = library_.index_space(*schema);
    if (!space) {
      throw CallError{.message = space.error().message,
                      .help = space.error().help};
    }
    step.space = std::make_shared<const IndexSpace>(*std::move(space));
  }
  step.op.name = function->name();
  drop_defaults(step.op, *function);
  const TensorMeta result = schema->outputs.front();
  step.schema = *std::move(schema);
  return add_step(std::move(step), result);
}

std::int64_t Tracer::value_on_full_tensors(const RankScalar& scalar) const {
  if (scalar.kind != RankScalar::Kind::kLocalSize) return scalar.of(0);
  const auto& metas = scalar.of_output ? op_.outputs : op_.inputs;
  return scalar.of(metas[index(scalar.operand)].size(scalar.dim));
}

TensorValue Tracer::add_step(DecompositionStep step, const TensorMeta& result) {
  out_->steps.push_back(std::move(step));
  return {{static_cast<std::int32_t>(out_->steps.size()) - 1, 0}, result};
}

}  // namespace shardprop
