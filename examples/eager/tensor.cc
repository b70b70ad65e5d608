#include "tensor.h"

#include <shardprop/execute/executor.h>
#include <shardprop/placement/local_region.h>
#include <shardprop/redistribute/planner.h>

#include <algorithm>
#include <string>
#include <utility>

namespace eager {

using shardprop::Argument;
using shardprop::fail;
using shardprop::LocalTensor;
using shardprop::Result;
using shardprop::TensorSpec;

Rank::Rank(shardprop::Communicator& communicator,
           const shardprop::CachingPropagator& cache)
    : communicator_(communicator),
      propagator_(cache.propagator()),
      reader_(cache.reader().value()) {}

Result<Tensor> Rank::call(std::string_view op,
                          const std::vector<Value>& arguments) {
  std::vector<shardprop::GivenArgument> given;
  std::vector<shardprop::TensorMeta> metas;
  std::vector<TensorSpec> specs;
  std::vector<Tensor> tensors;
  for (const Value& value : arguments) {
    if (const auto* tensor = std::get_if<Tensor>(&value)) {
      given.push_back(
          {"", shardprop::TensorArg{static_cast<std::int32_t>(metas.size())}});
      metas.push_back(tensor->spec.meta());
      specs.push_back(tensor->spec);
      tensors.push_back(*tensor);
    } else {
      given.push_back({"", std::get<Argument>(value)});
    }
  }
  const auto function = propagator_.library()->find(op);
  if (function == nullptr) {
    return fail(shardprop::ErrorCode::kUnknownOperator,
                "there is no operator " + std::string(op));
  }
  auto schema = shardprop::make_op_schema(function, given, metas);
  if (!schema) return fail(std::move(schema).error());

  const auto sharding = reader_.propagate(*schema, specs);
  if (!sharding) return fail(sharding.error());
  const shardprop::OutputSharding& how = **sharding;
  for (const shardprop::InputMove& input : how.moves) {
    auto moved =
        move(tensors[input.input], *input.plan, how.inputs[input.input]);
    if (!moved) return fail(std::move(moved).error());
    tensors[input.input] = *std::move(moved);
  }
  // Sizes that each rank has its own of.
  std::vector<Argument> local = schema->args;
  const auto at = propagator_.mesh().coordinate_of(communicator_.rank());
  for (const shardprop::RankArgument& argument : how.rank_arguments) {
    const auto place = *function->argument_index(argument.name());
    const auto values = argument.at(*at);
    local[place] = argument.is_list() ? Argument(values) : Argument(values[0]);
  }
  if (!how.inside.empty()) {
    return fail(shardprop::ErrorCode::kNoStrategy,
                std::string(op) +
                    " has collectives inside, which this "
                    "example does not run");
  }
  std::vector<LocalTensor> operands;
  for (const Tensor& tensor : tensors) operands.push_back(tensor.local);
  auto result = run_locally(op, operands, local);
  if (!result) return fail(std::move(result).error());
  return Tensor{how.outputs[0], *std::move(result)};
}

Result<Tensor> Rank::move(const Tensor& tensor,
                          const shardprop::RedistributePlan& plan,
                          const TensorSpec& to) {
  const auto program = shardprop::RedistributeProgram::create(
      plan, tensor.spec, to, communicator_.rank());
  if (!program) return fail(program.error());
  auto moved = shardprop::run(*program, communicator_, tensor.local);
  if (!moved) return fail(std::move(moved).error());
  ++moves_;
  return Tensor{to, *std::move(moved)};
}

Result<Tensor> Rank::redistribute(const Tensor& tensor,
                                  const shardprop::Layout& layout) {
  const auto to =
      TensorSpec::create(tensor.spec.mesh(), layout, tensor.spec.meta());
  if (!to) return fail(to.error());
  const auto plan =
      shardprop::plan_redistribution(tensor.spec, *to, propagator_.topology());
  if (!plan) return fail(plan.error());
  return move(tensor, *plan, *to);
}

Result<std::vector<float>> Rank::whole(const Tensor& tensor) {
  const auto all = redistribute(
      tensor, shardprop::Layout::replicated(propagator_.mesh().ndim()));
  if (!all) return fail(all.error());
  const auto* from = all->local.data_as<float>();
  return std::vector<float>(from, from + all->local.numel());
}

Result<Tensor> Rank::cut(const TensorSpec& spec,
                         const std::vector<float>& whole) {
  auto all = LocalTensor::empty(spec.meta().shape(), shardprop::DType::kF32);
  if (!all) return fail(std::move(all).error());
  std::copy(whole.begin(), whole.end(), all->data_as<float>());
  const auto replicated = TensorSpec::create(
      spec.mesh(), shardprop::Layout::replicated(spec.mesh().ndim()),
      spec.meta());
  if (!replicated) return fail(replicated.error());
  return redistribute({*replicated, *all}, spec.layout());
}

}  // namespace eager
