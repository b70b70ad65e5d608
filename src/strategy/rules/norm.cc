// Norms. Statistics over a sharded dim are two small sums, exchanged inside
// the local program (synchronised batch norm is the same thing).

#include "strategy/rules/families.h"

#include <algorithm>
#include <utility>

namespace shardprop {
namespace {

struct Statistics {
  LocalRef centred;   // input minus mean, in f32 or wider
  LocalRef mean;      // dims kept
  LocalRef variance;  // biased, dims kept
  LocalRef rstd;
  std::int64_t count = 1;
};

DType statistics_dtype(DType dtype) {
  return item_size(dtype) < 4 ? DType::kF32 : dtype;
}

LocalRef cast(LocalProgram& program, LocalRef value, DType from, DType to) {
  if (from == to) return value;
  return program.op("aten._to_copy.default",
                    {{"self", value}, {"dtype", Argument(to)}});
}

// Mean and variance of the input over `dims`, whose factors may be sharded.
Statistics statistics(LocalProgram& program, const LocalContext& context,
                      const std::vector<std::int64_t>& dims, double eps) {
  const TensorMeta& meta = context.op.inputs[0];
  const DType dtype = statistics_dtype(meta.dtype());
  DimIndices mesh_dims;
  const Dims local =
      max_local_shape(context.input(0), context.mesh, meta.shape());
  std::int64_t bytes = context.max_local_input_elements(0) * item_size(dtype);
  Statistics out;
  for (const std::int64_t dim : dims) {
    const auto d = static_cast<std::size_t>(dim);
    out.count *= meta.shape()[d];
    bytes /= std::max<std::int64_t>(local[d], 1);
    for (const std::int8_t factor : context.map.inputs[0].dims[d]) {
      for (const std::int32_t m : context.mesh_dims(factor)) {
        mesh_dims.push_back(m);
      }
    }
  }
  std::sort(mesh_dims.begin(), mesh_dims.end());

  const auto average = [&](LocalRef value) {
    LocalRef sum =
        program.op("aten.sum.dim_IntList", {{"self", value},
                                            {"dim", Argument(dims)},
                                            {"keepdim", Argument(true)}});
    sum = program.all_reduce(sum, ReduceOp::kSum, mesh_dims, bytes);
    return program.op(
        "aten.div.Scalar",
        {{"self", sum}, {"other", Argument(static_cast<double>(out.count))}});
  };
  const LocalRef x = cast(program, {-1, 0}, meta.dtype(), dtype);
  out.mean = average(x);
  out.centred =
      program.op("aten.sub.Tensor", {{"self", x}, {"other", out.mean}});
  out.variance = average(program.op(
      "aten.mul.Tensor", {{"self", out.centred}, {"other", out.centred}}));
  const LocalRef shifted = program.op(
      "aten.add.Scalar", {{"self", out.variance}, {"other", Argument(eps)}});
  out.rstd = program.op("aten.rsqrt.default", {{"self", shifted}});
  return out;
}

// centred * rstd * weight + bias; `trailing` dims follow those of weight.
LocalRef scaled(LocalProgram& program, const OpSchema& op,
                const Statistics& stats, int trailing) {
  LocalRef value = program.op("aten.mul.Tensor",
                              {{"self", stats.centred}, {"other", stats.rstd}});
  for (const char* name : {"weight", "bias"}) {
    const auto operand = op.tensor_arg(name);
    if (!operand) continue;
    LocalRef term{-1, static_cast<std::int32_t>(*operand)};
    for (int i = 0; i < trailing; ++i) {
      term = program.op("aten.unsqueeze.default",
                        {{"self", term}, {"dim", Argument(std::int64_t{-1})}});
    }
    value = program.op(std::string_view(name) == "weight" ? "aten.mul.Tensor"
                                                          : "aten.add.Tensor",
                       {{"self", value}, {"other", term}});
  }
  return value;
}

int normalized_rank(const OpSchema& op) {
  return static_cast<int>(op.ints_arg("normalized_shape").value().size());
}

LocalProgram layer_norm_program(const LocalContext& context) {
  const OpSchema& op = context.op;
  const int rank = op.inputs[0].rank();
  std::vector<std::int64_t> dims;
  for (int dim = rank - normalized_rank(op); dim < rank; ++dim) {
    dims.push_back(dim);
  }
  LocalProgram program;
  const Statistics stats =
      statistics(program, context, dims, op.float_arg("eps").value_or(1e-5));
  const DType dtype = statistics_dtype(op.inputs[0].dtype());
  const LocalRef value = scaled(program, op, stats, 0);
  program.outputs = {cast(program, value, dtype, op.outputs[0].dtype())};
  if (op.outputs.size() == 3) {
    program.outputs.push_back(
        cast(program, stats.mean, dtype, op.outputs[1].dtype()));
    program.outputs.push_back(
        cast(program, stats.rstd, dtype, op.outputs[2].dtype()));
  }
  return program;
}

void layer_norm_by_program(const OpSchema& op, FactorMap& map) {
  const auto rank = static_cast<std::size_t>(op.inputs[0].rank());
  const auto first = rank - static_cast<std::size_t>(normalized_rank(op));
  for (std::size_t dim = first; dim < rank; ++dim) {
    for (const std::int8_t f : map.inputs[0].dims[dim]) {
      map.factors[static_cast<std::size_t>(f)].by_program = true;
      for (std::size_t o = 1; o < map.outputs.size(); ++o) {
        map.outputs_without[o][static_cast<std::size_t>(f)] =
            Placement::replicate();
      }
    }
  }
  map.program = layer_norm_program;
}

std::vector<std::int64_t> all_but_channels(int rank) {
  std::vector<std::int64_t> dims;
  for (int dim = 0; dim < rank; ++dim) {
    if (dim != 1) dims.push_back(dim);
  }
  return dims;
}

// (1 - momentum) * running + momentum * factor * now.
LocalRef moved(LocalProgram& program, LocalRef running, LocalRef now,
               double momentum, double factor) {
  const LocalRef old =
      program.op("aten.mul.Scalar",
                 {{"self", running}, {"other", Argument(1 - momentum)}});
  const LocalRef step =
      program.op("aten.mul.Scalar",
                 {{"self", now}, {"other", Argument(momentum * factor)}});
  return program.op("aten.add.Tensor", {{"self", old}, {"other", step}});
}

LocalProgram batch_norm_program(const LocalContext& context) {
  const OpSchema& op = context.op;
  const int rank = op.inputs[0].rank();
  const std::vector<std::int64_t> dims = all_but_channels(rank);
  const DType dtype = statistics_dtype(op.inputs[0].dtype());
  LocalProgram program;
  const Statistics stats =
      statistics(program, context, dims, op.float_arg("eps").value_or(1e-5));
  const LocalRef value = scaled(program, op, stats, rank - 2);
  program.outputs = {cast(program, value, dtype, op.outputs[0].dtype())};

  const auto per_channel = [&](LocalRef kept) {
    return program.op("aten.squeeze.dims",
                      {{"self", kept}, {"dim", Argument(dims)}});
  };
  const LocalRef mean = per_channel(stats.mean);
  const LocalRef variance = per_channel(stats.variance);
  program.outputs.push_back(mean);
  program.outputs.push_back(per_channel(stats.rstd));
  const double momentum = op.float_arg("momentum").value_or(0.1);
  const auto count = static_cast<double>(stats.count);
  const auto running = [&](const char* name) {
    return LocalRef{-1, static_cast<std::int32_t>(op.tensor_arg(name).value())};
  };
  program.outputs.push_back(
      moved(program, running("running_mean"), mean, momentum, 1));
  program.outputs.push_back(moved(program, running("running_var"), variance,
                                  momentum, count / (count - 1)));
  return program;
}

// n, c and spatial dims; everything per channel is whole over n and space.
Result<FactorMap> instantiate_batch_norm(const OpSchema& op) {
  FactorMap map;
  const TensorMeta& input = op.inputs[0];
  const bool training = op.bool_arg("training").value_or(false);
  Operand whole;
  for (int dim = 0; dim < input.rank(); ++dim) {
    DimFactors factors;
    if (input.size(dim) != 1) {
      const int f = map.add_factor(input.size(dim), dim == 0   ? 'n'
                                                    : dim == 1 ? 'c'
                                                               : 's');
      map.factors.back().by_program = training && dim != 1;
      // The operator itself refuses a tensor without channels.
      map.factors.back().nonempty = dim == 1;
      factors.push_back(static_cast<std::int8_t>(f));
    }
    whole.dims.push_back(std::move(factors));
  }
  const auto operand_of = [&](const TensorMeta& meta) {
    if (meta.rank() == input.rank()) return whole;
    Operand operand;
    operand.dims.resize(static_cast<std::size_t>(meta.rank()));
    if (meta.rank() == 1 && meta.size(0) == input.size(1)) {
      operand.dims[0] = whole.dims[1];
    }
    return operand;
  };
  for (const TensorMeta& meta : op.inputs) {
    map.inputs.push_back(operand_of(meta));
  }
  for (const TensorMeta& meta : op.outputs) {
    map.outputs.push_back(operand_of(meta));
  }
  map.seal();
  for (std::size_t o = 1; o < map.outputs.size(); ++o) {
    for (std::size_t f = 0; f < map.factors.size(); ++f) {
      map.outputs_without[o][f] = Placement::replicate();
    }
  }
  map.program = batch_norm_program;
  return map;
}

}  // namespace

void add_norm_rules(RuleBook& book) {
  const auto add = [&](const char* name, ShardingRule rule) {
    book.add("norm", name, std::move(rule));
  };
  add("aten._native_batch_norm_legit_functional.default",
      custom("batch_norm()", instantiate_batch_norm));
  add("aten.layer_norm.default",
      pointwise().refine("layer_norm()", layer_norm_by_program));
  add("aten.native_layer_norm.default",
      pointwise().refine("layer_norm()", layer_norm_by_program));
}

}  // namespace shardprop
