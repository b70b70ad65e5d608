// Convolutions over batch, channels and groups; pooling over batch and
// channels. Space would take a halo exchange and stays whole.

#include "strategy/rules/families.h"

#include <utility>

namespace shardprop {
namespace {

constexpr char kHalo[] = "it would need a halo exchange";

struct ConvolutionFactors {
  int n, group, in, out;
};

DimFactors dim_of(const FactorMap& map, std::initializer_list<int> factors) {
  DimFactors out;
  for (const int f : factors) {
    if (map.factors[static_cast<std::size_t>(f)].size != 1) {
      out.push_back(static_cast<std::int8_t>(f));
    }
  }
  return out;
}

// Input channels are (groups, in), output channels (groups, out). The weight
// holds one side whole and of the other one group's share; transposed
// convolutions have the sides swapped.
struct ConvolutionDims {
  FactorMap& map;
  ConvolutionFactors f;
  bool transposed;

  Operand with_space(std::vector<DimFactors> dims, int rank) const {
    dims.resize(static_cast<std::size_t>(rank));
    return {std::move(dims)};
  }
  Operand input(const TensorMeta& meta) const {
    return with_space({dim_of(map, {f.n}), dim_of(map, {f.group, f.in})},
                      meta.rank());
  }
  Operand output(const TensorMeta& meta) const {
    return with_space({dim_of(map, {f.n}), dim_of(map, {f.group, f.out})},
                      meta.rank());
  }
  Operand weight(const TensorMeta& meta) const {
    return transposed
               ? with_space(
                     {dim_of(map, {f.group, f.in}), dim_of(map, {f.out})},
                     meta.rank())
               : with_space(
                     {dim_of(map, {f.group, f.out}), dim_of(map, {f.in})},
                     meta.rank());
  }
  Operand bias() const { return {{dim_of(map, {f.group, f.out})}}; }
};

ConvolutionDims convolution_dims(FactorMap& map, const OpSchema& op,
                                 const TensorMeta& input,
                                 const TensorMeta& weight,
                                 const TensorMeta& output) {
  const std::int64_t groups = op.int_arg("groups").value_or(1);
  ConvolutionFactors f{};
  f.n = map.add_factor(input.size(0), 'n');
  f.group = map.add_factor(groups, 'g');
  f.in = map.add_factor(input.size(1) / groups, 'c');
  f.out = map.add_factor(output.size(1) / groups, 'o');
  for (Factor& factor : map.factors) factor.nonempty = true;
  for (int d = 2; d < weight.rank(); ++d) {
    map.add_factor(output.size(d), 's');
    map.factors.back().blocked = kHalo;
    map.add_factor(weight.size(d), 'k');
    map.factors.back().blocked = kHalo;
  }
  map.local_arguments.push_back(
      {"groups", false, {RankScalar::factor_size(f.group)}});
  map.flops_per_point = 2;
  return {map, f, op.bool_arg("transposed").value_or(false)};
}

bool is_batched(const TensorMeta& input, const TensorMeta& weight) {
  return input.rank() == weight.rank() && input.rank() > 2;
}

auto unbatched(const OpSchema& op) {
  return fail(ErrorCode::kNoStrategy,
              op.name() + " takes an input [batch, channels, space...]");
}

Result<FactorMap> instantiate_convolution(const OpSchema& op) {
  const TensorMeta& input = op.inputs[0];
  const TensorMeta& weight = op.inputs[1];
  if (!is_batched(input, weight)) return unbatched(op);
  FactorMap map;
  const ConvolutionDims dims =
      convolution_dims(map, op, input, weight, op.outputs[0]);
  map.inputs = {dims.input(input), dims.weight(weight)};
  const bool biased = op.inputs.size() == 3;
  if (biased) map.inputs.push_back(dims.bias());
  map.outputs = {dims.output(op.outputs[0])};
  map.seal();
  const Placement sum = Placement::partial(ReduceOp::kSum);
  const auto in = static_cast<std::size_t>(dims.f.in);
  map.outputs_without[0][in] = sum;
  if (biased) map.inputs_without[2][in] = sum;
  for (const std::size_t linear : {std::size_t{0}, std::size_t{1}}) {
    Carry carry;
    carry.inputs.resize(op.inputs.size());
    carry.inputs[linear] = sum;
    if (biased) carry.inputs[2] = sum;
    carry.outputs = {sum};
    map.carries.push_back(std::move(carry));
  }
  return map;
}

Result<FactorMap> instantiate_convolution_backward(const OpSchema& op) {
  const TensorMeta& grad = op.inputs[0];
  const TensorMeta& input = op.inputs[1];
  const TensorMeta& weight = op.inputs[2];
  if (!is_batched(input, weight)) return unbatched(op);
  FactorMap map;
  const ConvolutionDims dims = convolution_dims(map, op, input, weight, grad);
  map.inputs = {dims.output(grad), dims.input(input), dims.weight(weight)};
  const auto* mask = std::get_if<std::vector<bool>>(&op.arg("output_mask"));
  std::vector<int> kinds;  // 0 input, 1 weight, 2 bias
  for (int kind = 0; mask != nullptr && kind < 3; ++kind) {
    if ((*mask)[static_cast<std::size_t>(kind)]) kinds.push_back(kind);
  }
  if (kinds.size() != op.outputs.size()) {
    return fail(ErrorCode::kNoStrategy,
                op.name() + " returns other gradients than its mask asks for");
  }
  for (std::size_t o = 0; o < kinds.size(); ++o) {
    map.outputs.push_back(kinds[o] == 0   ? dims.input(op.outputs[o])
                          : kinds[o] == 1 ? dims.weight(op.outputs[o])
                                          : dims.bias());
  }
  map.seal();
  const Placement sum = Placement::partial(ReduceOp::kSum);
  for (std::size_t o = 0; o < kinds.size(); ++o) {
    for (const int f : {dims.f.n, dims.f.group, dims.f.in, dims.f.out}) {
      // The bias has nothing to do with input channels: every rank has all.
      map.outputs_without[o][static_cast<std::size_t>(f)] =
          kinds[o] == 2 && f == dims.f.in ? Placement::replicate() : sum;
    }
  }
  map.carries.push_back({{sum, Placement(), Placement()},
                         std::vector<Placement>(op.outputs.size(), sum)});
  // Each gradient is a convolution of its own.
  map.flops_per_point = 2.0 * static_cast<double>(kinds.size());
  return map;
}

// Batch and channels are alike everywhere; space stays whole.
Result<FactorMap> instantiate_pool(const OpSchema& op) {
  FactorMap map;
  const int leading = op.inputs[0].rank() - 2;
  std::vector<DimFactors> shared;
  for (int d = 0; d < leading; ++d) {
    DimFactors factors;
    if (op.inputs[0].size(d) != 1) {
      factors.push_back(static_cast<std::int8_t>(
          map.add_factor(op.inputs[0].size(d), d == 0 ? 'n' : 'c')));
      map.factors.back().nonempty = true;
    }
    shared.push_back(std::move(factors));
  }
  const auto operand_of = [&](const TensorMeta& meta) {
    Operand operand{shared};
    operand.dims.resize(static_cast<std::size_t>(meta.rank()));
    return operand;
  };
  for (const TensorMeta& meta : op.inputs) {
    map.inputs.push_back(operand_of(meta));
  }
  for (const TensorMeta& meta : op.outputs) {
    map.outputs.push_back(operand_of(meta));
  }
  return map;
}

}  // namespace

void add_convolution_rules(RuleBook& book) {
  const auto add = [&](const char* name, ShardingRule rule) {
    book.add("convolution", name, std::move(rule));
  };
  add("aten.convolution.default",
      custom("n(gc)s,(go)c,+(go)->n(go)s", instantiate_convolution));
  add("aten.convolution_backward.default",
      custom("n(go)s,n(gc)s,(go)c->n(gc)s,(go)c,(go)",
             instantiate_convolution_backward));
  add("aten.max_pool2d_with_indices.default",
      custom("pool()", instantiate_pool));
  add("aten.max_pool2d_with_indices_backward.default",
      custom("pool()", instantiate_pool).linear_in("grad_output"));
}

}  // namespace shardprop
