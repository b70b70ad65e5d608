// What a rank runs and with which scalars, for a chosen strategy.

#include "strategy/derived_program.h"
#include "strategy/factor_shards.h"

#include <shardprop/placement/local_region.h>
#include <shardprop/strategy/local_context.h>

#include <algorithm>

namespace shardprop {
namespace {

std::vector<FactorShards> all_shards(const LocalContext& context) {
  std::vector<FactorShards> shards;
  shards.reserve(context.space.factors.size());
  for (std::size_t f = 0; f < context.space.factors.size(); ++f) {
    shards.push_back(factor_shards(context.space, context.mesh,
                                   context.strategy.assignment,
                                   static_cast<int>(f)));
  }
  return shards;
}

// The operator itself, its changed arguments as rank scalars.
LocalProgram operator_alone(const LocalContext& context) {
  LocalProgram program;
  std::vector<std::pair<std::string, LocalOp::Value>> args;
  const auto& declared = context.op.function->arguments();
  for (std::size_t i = 0; i < declared.size(); ++i) {
    const Argument& value = context.op.args[i];
    const auto& locals = context.space.local_arguments;
    const auto local = std::find_if(locals.begin(), locals.end(),
                                    [&](const LocalArgument& argument) {
                                      return argument.name == declared[i].name;
                                    });
    if (local != locals.end()) {
      args.emplace_back(declared[i].name,
                        local->is_list ? LocalOp::Value(local->values)
                                       : LocalOp::Value(local->values.front()));
    } else if (const auto* tensor = std::get_if<TensorArg>(&value);
               tensor != nullptr && tensor->operand != TensorArg::kNone) {
      args.emplace_back(declared[i].name, LocalRef{-1, tensor->operand});
    } else if (const auto* list = std::get_if<std::vector<TensorArg>>(&value)) {
      std::vector<LocalRef> refs;
      for (const TensorArg& element : *list) {
        refs.push_back({-1, element.operand});
      }
      args.emplace_back(declared[i].name, std::move(refs));
    } else if (!declared[i].has_default ||
               !(value == declared[i].default_value)) {
      args.emplace_back(declared[i].name, value);
    }
  }
  program.op(context.op.name(), std::move(args));
  for (std::size_t o = 0; o < context.op.outputs.size(); ++o) {
    program.outputs.push_back({0, static_cast<std::int32_t>(o)});
  }
  return program;
}

std::int64_t global_value(const RankScalar& scalar,
                          const LocalContext& context) {
  const auto operand = static_cast<std::size_t>(scalar.operand);
  std::int64_t x = 0;
  switch (scalar.kind) {
    case RankScalar::Kind::kConstant:
    case RankScalar::Kind::kOffset:
      break;
    case RankScalar::Kind::kLocalSize:
      x = scalar.of_output ? context.op.outputs[operand].size(scalar.dim)
                           : context.op.inputs[operand].size(scalar.dim);
      break;
    case RankScalar::Kind::kFactorSize:
      x = context.space.factors[operand].size;
      break;
  }
  return scalar.constant + scalar.scale * x;
}

std::int64_t elements(const Layout& layout, const DeviceMesh& mesh,
                      const TensorMeta& meta) {
  std::int64_t count = 1;
  for (const std::int64_t size : max_local_shape(layout, mesh, meta.shape())) {
    count *= size;
  }
  return count;
}

}  // namespace

DimIndices LocalContext::mesh_dims(int factor) const {
  return factor_shards(space, mesh, strategy.assignment, factor).mesh_dims;
}

const Layout& LocalContext::input(int i) const {
  return layouts[strategy.inputs[static_cast<std::size_t>(i)]];
}

const Layout& LocalContext::output(int i) const {
  return layouts[strategy.outputs[static_cast<std::size_t>(i)]];
}

std::int64_t LocalContext::max_local_input_elements(int i) const {
  return elements(input(i), mesh, op.inputs[static_cast<std::size_t>(i)]);
}

std::int64_t LocalContext::max_local_output_elements(int i) const {
  return elements(output(i), mesh, op.outputs[static_cast<std::size_t>(i)]);
}

bool needs_program(const LocalContext& context) {
  if (context.space.program == nullptr) return false;
  const std::vector<FactorShards> shards = all_shards(context);
  for (std::size_t f = 0; f < shards.size(); ++f) {
    const Factor& factor = context.space.factors[f];
    if (!shards[f].mesh_dims.empty() &&
        factor.program == ProgramUse::kWhenSharded) {
      return true;
    }
    if (!shards[f].even && factor.program == ProgramUse::kWhenUneven) {
      return true;
    }
  }
  return false;
}

LocalProgram local_program(const LocalContext& context) {
  return needs_program(context) ? derived_program(context)
                                : operator_alone(context);
}

std::int64_t evaluate(const RankScalar& scalar, const LocalContext& context,
                      const Coordinate& at) {
  std::int64_t x = 0;
  switch (scalar.kind) {
    case RankScalar::Kind::kConstant:
      break;
    case RankScalar::Kind::kFactorSize: {
      x = context.space.factors[static_cast<std::size_t>(scalar.operand)].size;
      for (const std::int32_t m : context.mesh_dims(scalar.operand)) {
        x = chunk(x, context.mesh.size(m), at[static_cast<std::size_t>(m)])
                .size();
      }
      break;
    }
    case RankScalar::Kind::kLocalSize:
    case RankScalar::Kind::kOffset: {
      const auto operand = static_cast<std::size_t>(scalar.operand);
      const TensorMeta& meta = scalar.of_output ? context.op.outputs[operand]
                                                : context.op.inputs[operand];
      const Layout& layout = scalar.of_output ? context.output(scalar.operand)
                                              : context.input(scalar.operand);
      const Intervals held = local_intervals(layout, context.mesh, scalar.dim,
                                             meta.size(scalar.dim), at);
      if (scalar.kind == RankScalar::Kind::kLocalSize) {
        for (const Interval& piece : held) x += piece.size();
      } else if (held.size() > 1) {
        throw InternalError("an offset is asked of a dim held in pieces");
      } else {
        // A rank without elements compares as lying behind all of them.
        x = held.empty() ? meta.size(scalar.dim) : held[0].begin;
      }
      break;
    }
  }
  return scalar.constant + scalar.scale * x;
}

std::vector<RankArgument> rank_arguments(const LocalContext& context) {
  std::vector<RankArgument> out;
  for (const LocalArgument& local : context.space.local_arguments) {
    std::vector<std::int64_t> whole;
    whole.reserve(local.values.size());
    for (const RankScalar& scalar : local.values) {
      whole.push_back(global_value(scalar, context));
    }
    RankArgument argument{local.name, local.is_list, {}};
    bool differs = false;
    for (std::int64_t i = 0; i < context.mesh.size(); ++i) {
      const Coordinate at = context.mesh.coordinate_at_index(i);
      std::vector<std::int64_t> values;
      values.reserve(local.values.size());
      for (const RankScalar& scalar : local.values) {
        values.push_back(evaluate(scalar, context, at));
      }
      differs = differs || values != whole;
      argument.values.push_back(std::move(values));
    }
    if (differs) out.push_back(std::move(argument));
  }
  return out;
}

double max_local_points(const LocalContext& context) {
  double points = 1;
  for (const FactorShards& shards : all_shards(context)) {
    points *= static_cast<double>(shards.largest);
  }
  return points;
}

}  // namespace shardprop
