// The functions of programs that add steps: casts, positions, choices and the
// collectives of per-rank programs.

#include "ops/program/choice.h"
#include "ops/program/trace_dims.h"
#include "ops/program/tracer.h"

#include <algorithm>
#include <utility>

namespace shardprop {

std::optional<TraceValue> Tracer::step_function(const std::string& name,
                                                const Values& v) {
  if (name == "cast") return cast(v.at(0), v.at(1));
  if (name == "upcast") {
    // Casts to the dtype in which sums are computed.
    const DType dtype = tensor_of(v.at(0)).meta.dtype();
    const bool narrow = is_floating(dtype) && item_size(dtype) < 4;
    return narrow ? cast(v.at(0), Argument(DType::kF32)) : v.at(0);
  }
  if (name == "as_index") return cast(v.at(0), Argument(DType::kI64));
  if (name == "result") return result(v.at(0), integer_of(v.at(1)));
  if (name == "whole") {
    // The operator reduces a partial here, because a maximum rejects terms of a
    // sum.
    return operation("maximum", {v.at(0), v.at(0)}, {});
  }
  if (name == "places") {
    const TensorValue& x = tensor_of(v.at(0));
    return places(dim_size(x.meta, wrapped(x, v.at(1))),
                  of_the_rank("local_size", x, v.at(1)),
                  of_the_rank("offset", x, v.at(1)));
  }
  if (const auto condition = condition_named(name)) {
    return chosen(*condition, v);
  }
  if (name == "additive") {
    // A mask becomes a term that is added to scores: 0 if it is true, else
    // -inf.
    const bool is_mask = tensor_of(v.at(0)).meta.dtype() == DType::kBool;
    if (!is_mask) return v.at(0);
    return operation("log", {cast(v.at(0), Argument(DType::kF32))}, {});
  }
  if (name == "trailing") return trailing(v.at(0), integer_of(v.at(1)));
  if (name == "places_along") return places_along(v.at(0), v.at(1));
  if (name == "unkept") {
    // unkept(x, dims, keepdim) removes reduced dims, which are kept with size 1
    // until then.
    const bool keeps = number_of(v.at(2)).value_or(0) != 0;
    return keeps ? v.at(0)
                 : operation("aten.squeeze.dims", {v.at(0), v.at(1)}, {});
  }
  if (name == "all_gather" || name == "all_gather_unordered") {
    return collective(CollectiveKind::kAllGather, std::nullopt, v.at(0),
                      name == "all_gather");
  }
  const std::pair<std::string_view, ReduceOp> reductions[] = {
      {"all_reduce_sum", ReduceOp::kSum},
      {"all_reduce_max", ReduceOp::kMax},
      {"all_reduce_min", ReduceOp::kMin}};
  for (const auto& [function, op] : reductions) {
    if (name == function) {
      return collective(CollectiveKind::kAllReduce, op, v.at(0));
    }
  }
  return std::nullopt;
}

// cut_dim(x) is the dim of an input that the program shards.
TraceValue Tracer::cut_dim(const TensorValue& x) const {
  require(space_ != nullptr && x.ref.step < 0, "only inputs are cut");
  const auto& dims = space_->inputs[index(x.ref.index)].dims;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    for (const FactorId id : dims[d]) {
      if (space_->factor(id).program == ProgramUse::kWhenSharded) {
        return Argument(static_cast<std::int64_t>(d));
      }
    }
  }
  call_error("a program cuts no dim of an input");
}

// result(made, 2) is another result of the step that produced `made`, or None
// if the call does not produce it.
TraceValue Tracer::result(const TraceValue& made, std::int64_t slot) const {
  const LocalRef ref = tensor_of(made).ref;
  require(ref.step >= 0, "an argument has one value");
  const OpSchema& op = out_->steps[index(ref.step)].schema;
  require(slot >= 0 && std::cmp_less(slot, op.output_slots.size()),
          "a step has fewer results");
  const std::int32_t output = op.output_slots[index(slot)];
  if (output == OpSchema::kNotProduced) return Argument(NoneArg{});
  return TensorValue{{ref.step, output}, op.outputs[index(output)]};
}

TraceValue Tracer::cast(const TraceValue& value, const TraceValue& dtype) {
  const auto* argument = std::get_if<Argument>(&dtype);
  const auto* to = argument == nullptr ? nullptr : std::get_if<DType>(argument);
  require(to != nullptr, "cast() takes a dtype");
  if (tensor_of(value).meta.dtype() == *to) return value;
  return operation("_to_copy", {value}, {{"dtype", Argument(*to)}});
}

// if_cut(x, dim, there, elsewhere) is `there` if that dim of an input is
// sharded. choice.h has the other conditions.
TraceValue Tracer::chosen(Choice::If condition, const Values& v) {
  const TensorValue& x = tensor_of(v[0]);
  require(x.ref.step < 0 && x.meta.rank() > 0, "only dims of inputs are cut");
  const TensorValue& there = tensor_of(v[2]);
  return add_step(step_of({condition, x.ref.index, wrapped(x, v[1]), there.ref,
                           tensor_of(v[3]).ref}),
                  there.meta);
}

// by_program(x, dim) is true if the program of the call shards that dim of an
// input.
bool Tracer::runs_program(const TensorValue& x, int dim) const {
  require(space_ != nullptr && x.ref.step < 0 && x.meta.rank() > 0,
          "only dims of inputs are cut");
  const auto by_program = [&](FactorId id) {
    return space_->factor(id).program == ProgramUse::kWhenSharded;
  };
  const Operand& operand = space_->inputs[index(x.ref.index)];
  const auto joined = operand.joined_factor(dim);
  if (joined && by_program(*joined)) return true;
  const DimFactors& factors = operand.dims[index(dim)];
  return std::any_of(factors.begin(), factors.end(), by_program);
}

TraceValue Tracer::trailing(TraceValue value, std::int64_t count) {
  require(count <= kMostDimsOfProgram, "trailing() adds too many dims");
  for (std::int64_t i = 0; i < count; ++i) {
    value = operation("aten.unsqueeze.default",
                      {value, Argument(std::int64_t{-1})}, {});
  }
  return value;
}

// Returns the position of each element of the rank's part along these dims of
// the full input. The last dim varies fastest.
TraceValue Tracer::places_along(const TraceValue& value,
                                const TraceValue& dims) {
  const TensorMeta& x = tensor_of(value).meta;
  std::vector<std::int64_t> along = integers_of(dims);
  std::int64_t stride = 1;
  std::optional<TraceValue> places;
  for (auto dim = along.rbegin(); dim != along.rend(); ++dim) {
    const Values of_dim = {value, Argument(*dim)};
    TraceValue own =
        operation("arange", {*size_function("local_size", of_dim)}, {});
    own = combined("+", own, *size_function("offset", of_dim));
    if (stride != 1) own = combined("*", own, Argument(stride));
    own = trailing(own, x.rank() - 1 - *dim);
    places = places ? combined("+", own, *places) : own;
    stride = multiply_sizes(stride, x.size(wrap_dim(*dim, x.rank())));
  }
  require(places.has_value(), "places are counted along no dim");
  return *places;
}

// Returns the positions of the rank's part along a dim of that size, as a
// vector.
TraceValue Tracer::places(std::int64_t size, const RankScalar& local_size,
                          const RankScalar& offset) {
  const TraceValue held =
      operation("aten.arange.default", {Argument(size)}, {});
  out_->steps.back().op.args.front().second = local_size;
  return combined("+", held, offset);
}

// The collective runs over the mesh dims that shard the program's factors.
// Metas are those of one rank's value.
TraceValue Tracer::collective(CollectiveKind kind, std::optional<ReduceOp> op,
                              const TraceValue& value, bool in_order) {
  const TensorValue& x = tensor_of(value);
  DecompositionStep step;
  step.collective = RankCollective{kind, in_order, x.ref, op, x.meta, {}};
  return add_step(std::move(step), x.meta);
}

}  // namespace shardprop
