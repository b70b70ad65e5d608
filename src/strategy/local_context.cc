// Computes the program and the scalars of each rank for a chosen strategy.

#include "base/index.h"
#include "strategy/derived_program.h"
#include "strategy/factor_shards.h"

#include <shardprop/placement/local_region.h>
#include <shardprop/strategy/local_context.h>

#include <algorithm>
#include <utility>

namespace shardprop {
namespace {

std::vector<FactorShards> all_shards(const LocalContext& context) {
  std::vector<FactorShards> shards;
  shards.reserve(context.space.factors.size());
  for (std::size_t f = 0; f < context.space.factors.size(); ++f) {
    shards.push_back(factor_shards(context, static_cast<int>(f)));
  }
  return shards;
}

// Returns a program that runs the operator itself, with its changed arguments
// as rank scalars.
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
  const auto operand = index(scalar.operand);
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
  return scalar.of(x);
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
  if (const Layout* of_all = shardings()) return of_all->cuts(factor);
  DimIndices out;
  for (std::size_t m = 0; m < strategy.assignment.size(); ++m) {
    if (strategy.assignment[m] != factor) continue;
    out.push_back(static_cast<std::int32_t>(m));
  }
  return out;
}

const Layout& LocalContext::input(int i) const {
  return layouts[strategy.inputs[index(i)]];
}

const Layout& LocalContext::output(int i) const {
  return layouts[strategy.outputs[index(i)]];
}

std::int64_t LocalContext::max_local_input_elements(int i) const {
  return elements(input(i), mesh, op.inputs[index(i)]);
}

std::int64_t LocalContext::max_local_output_elements(int i) const {
  return elements(output(i), mesh, op.outputs[index(i)]);
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
  return needs_program(context) ? derived_program(context).program
                                : operator_alone(context);
}

namespace {

// Returns the start of a rank's part of a dim. For a rank without elements, the
// start is the end of the dim.
std::int64_t offset_of(const Intervals& held, std::int64_t size) {
  if (held.size() > 1) {
    throw InternalError("an offset is asked of a dim held in pieces");
  }
  return held.empty() ? size : held[0].begin;
}

std::int64_t elements_of(const Intervals& held) {
  std::int64_t count = 0;
  for (const Interval& piece : held) count += piece.size();
  return count;
}

std::int64_t local_size(const Layout& layout, const DeviceMesh& mesh,
                        int tensor_dim, std::int64_t size,
                        const Coordinate& at) {
  return elements_of(local_intervals(layout, mesh, tensor_dim, size, at));
}

FactorSharding sharding_of(int factor, const LocalContext& context) {
  if (const Layout* of_all = context.shardings()) {
    return FactorShardings(*of_all).of(factor);
  }
  Placements placements(context.strategy.assignment.size());
  for (const std::int32_t m : context.mesh_dims(factor)) {
    placements[index(m)] = Placement::shard(0);
  }
  auto sharding = FactorSharding::create(std::move(placements));
  if (!sharding) throw InternalError("the sharding of a factor is malformed");
  return *std::move(sharding);
}

}  // namespace

std::int64_t RankArgument::value(const Entry& entry,
                                 const Coordinate& at) const {
  const RankScalar& scalar = entry.scalar;
  std::int64_t x = 0;
  switch (scalar.kind) {
    case RankScalar::Kind::kConstant:
      break;
    case RankScalar::Kind::kFactorSize:
      x = local_size(entry.layout, mesh_, 0, entry.size, at);
      break;
    case RankScalar::Kind::kLocalSize:
      x = local_size(entry.layout, mesh_, scalar.dim, entry.size, at);
      break;
    case RankScalar::Kind::kOffset:
      x = offset_of(
          local_intervals(entry.layout, mesh_, scalar.dim, entry.size, at),
          entry.size);
      break;
  }
  return scalar.of(x);
}

std::vector<std::int64_t> RankArgument::at(const Coordinate& at) const {
  std::vector<std::int64_t> values;
  values.reserve(entries_.size());
  for (const Entry& entry : entries_) values.push_back(value(entry, at));
  return values;
}

DimIndices RankArgument::mesh_dims() const {
  DimIndices out;
  for (std::int32_t m = 0; m < mesh_.ndim(); ++m) {
    for (const Entry& entry : entries_) {
      if (std::find(entry.cuts.begin(), entry.cuts.end(), m) ==
          entry.cuts.end()) {
        continue;
      }
      out.push_back(m);
      break;
    }
  }
  return out;
}

std::int64_t evaluate(const RankScalar& scalar, const LocalContext& context,
                      const Coordinate& at) {
  std::int64_t x = 0;
  switch (scalar.kind) {
    case RankScalar::Kind::kConstant:
      break;
    case RankScalar::Kind::kFactorSize:
      x = local_size(sharding_of(scalar.operand, context), context.mesh, 0,
                     context.space.factors[index(scalar.operand)].size, at);
      break;
    case RankScalar::Kind::kLocalSize:
    case RankScalar::Kind::kOffset: {
      const auto operand = index(scalar.operand);
      const TensorMeta& meta = scalar.of_output ? context.op.outputs[operand]
                                                : context.op.inputs[operand];
      const Layout& layout = scalar.of_output ? context.output(scalar.operand)
                                              : context.input(scalar.operand);
      const Intervals held = local_intervals(layout, context.mesh, scalar.dim,
                                             meta.size(scalar.dim), at);
      x = scalar.kind == RankScalar::Kind::kLocalSize
              ? elements_of(held)
              : offset_of(held, meta.size(scalar.dim));
      break;
    }
  }
  return scalar.of(x);
}

RankArgument::RankArgument(std::string name, bool is_list,
                           const std::vector<RankScalar>& values,
                           const LocalContext& context)
    : name_(std::move(name)), is_list_(is_list), mesh_(context.mesh) {
  for (const RankScalar& scalar : values) {
    Entry& entry = entries_.emplace_back();
    entry.scalar = scalar;
    if (scalar.kind == RankScalar::Kind::kConstant) continue;
    const auto operand = index(scalar.operand);
    if (scalar.kind == RankScalar::Kind::kFactorSize) {
      entry.size = context.space.factors[operand].size;
      entry.layout = sharding_of(scalar.operand, context);
      entry.cuts = context.mesh_dims(scalar.operand);
      continue;
    }
    entry.layout = scalar.of_output ? context.output(scalar.operand)
                                    : context.input(scalar.operand);
    entry.size = (scalar.of_output ? context.op.outputs[operand]
                                   : context.op.inputs[operand])
                     .size(scalar.dim);
    for (std::int32_t m = 0; m < mesh_.ndim(); ++m) {
      const Placement placement = entry.layout[m];
      if (placement.is_shard() && placement.dim() == scalar.dim) {
        entry.cuts.push_back(m);
      }
    }
  }
}

std::vector<RankArgument> rank_arguments(const LocalContext& context) {
  // If a dim is cut, the last rank never holds all of it, nor its beginning.
  const Coordinate first = context.mesh.coordinate_at_index(0);
  const Coordinate last =
      context.mesh.coordinate_at_index(context.mesh.size() - 1);
  std::vector<RankArgument> out;
  for (const LocalArgument& local : context.space.local_arguments) {
    std::vector<std::int64_t> whole;
    whole.reserve(local.values.size());
    for (const RankScalar& scalar : local.values) {
      whole.push_back(global_value(scalar, context));
    }
    RankArgument argument(local.name, local.is_list, local.values, context);
    if (argument.at(first) != whole || argument.at(last) != whole) {
      out.push_back(std::move(argument));
    }
  }
  return out;
}

double max_local_points(const LocalContext& context) {
  const std::vector<FactorShards> shards = all_shards(context);
  double points = 1;
  for (std::size_t f = 0; f < shards.size(); ++f) {
    const DimFactors& joins = context.space.factors[f].joins;
    if (!joins.empty() && shards[f].mesh_dims.empty()) continue;
    points *= static_cast<double>(shards[f].largest);
    for (const FactorId part : joins) {
      points /= static_cast<double>(shards[index(part)].largest);
    }
  }
  return points;
}

}  // namespace shardprop
