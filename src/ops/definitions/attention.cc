// Attention over batch and heads; over queries where no mask ties them to
// their place. Grouped queries: query heads are (groups, heads of a group),
// keys and values have the groups.

#include "ops/definitions/families.h"

#include <algorithm>
#include <array>

namespace shardprop {
namespace {

enum FactorOf : std::uint8_t {
  kBatch,
  kGroup,
  kHead,
  kQuery,
  kKey,
  kWidth,
  kValueWidth,
  kFactors
};
using DimsOfFactors = std::vector<std::vector<FactorOf>>;

const DimsOfFactors kQueryDims = {{kBatch}, {kGroup, kHead}, {kQuery}, {kWidth}};
const DimsOfFactors kKeyDims = {{kBatch}, {kGroup}, {kKey}, {kWidth}};
const DimsOfFactors kValueDims = {{kBatch}, {kGroup}, {kKey}, {kValueWidth}};
const DimsOfFactors kOutDims = {
    {kBatch}, {kGroup, kHead}, {kQuery}, {kValueWidth}};
const DimsOfFactors kBiasDims = {{kBatch}, {kGroup, kHead}, {kQuery}, {kKey}};
const DimsOfFactors kLogSumDims = {{kBatch}, {kGroup, kHead}, {kQuery}};

// query [batch, heads, q, e], key [batch, groups, k, e], value [..., k, v].
struct Attention {
  const TensorMeta& query;
  const TensorMeta& key;
  const TensorMeta& value;
};

Attention operands(const OpCall& call, bool rank4) {
  const Attention a{call.tensor("query"), call.tensor("key"),
                    call.tensor("value")};
  const int rank = a.query.rank();
  require(rank4 ? rank == 4 : rank >= 2, "the query has another rank");
  require(a.key.rank() == rank && a.value.rank() == rank,
          "query, key and value have different ranks");
  require(
      a.query.dtype() == a.key.dtype() && a.query.dtype() == a.value.dtype(),
      "query, key and value are of different dtypes");
  require(a.query.size(rank - 1) == a.key.size(rank - 1),
          "query and key have different head sizes");
  require(a.key.size(rank - 2) == a.value.size(rank - 2),
          "key and value have different lengths");
  for (int dim = 0; dim + 2 < rank; ++dim) {
    require(a.key.size(dim) == a.value.size(dim),
            "key and value have different batches or heads");
  }
  if (rank == 4) {
    require(a.query.size(0) == a.key.size(0), "the batches differ");
    require(a.key.size(1) > 0 ? a.query.size(1) % a.key.size(1) == 0
                              : a.query.size(1) == 0,
            "the key's heads do not divide the query's");
  }
  return a;
}

// Strides of what kernels write as [batch, length, heads, size] and is seen as
// [batch, heads, length, size].
Dims by_length(const Dims& shape, DType dtype) {
  const TensorMeta rows =
      make_meta(Dims{shape[0], shape[2], shape[1], shape[3]}, dtype);
  Dims strides = rows.strides();
  std::swap(strides[1], strides[2]);
  return strides;
}

// Dims of an operand written with the factors above; a dim whose size does not
// match is broadcast or padded, and stays whole.
class AttentionSpace {
 public:
  AttentionSpace(SpaceBuilder& builder, const Attention& a)
      : b_(builder),
        sizes_{a.query.size(0),
               a.key.size(1),
               a.key.size(1) == 0 ? 1 : a.query.size(1) / a.key.size(1),
               a.query.size(2),
               a.key.size(2),
               a.query.size(3),
               a.value.size(3)} {
    static constexpr char kLetters[] = {'b', 'g', 'r', 's', 't', 'd', 'v'};
    // The width of the values is a factor of its own only where it differs,
    // so that points count products once.
    for (std::size_t i = 0; i < kFactors; ++i) {
      if (i == kValueWidth) continue;
      ids_[i] = b_.factor(sizes_[i], kLetters[i]);
      b_.space.factor(ids_[i]).nonempty = true;  // kernels refuse empty tensors
    }
    block(kKey, "the softmax runs over it");
    block(kWidth, "queries and keys are contracted over it");
  }

  void block(FactorOf f, std::string reason) {
    b_.block({ids_[f]}, std::move(reason));
  }

  Operand operand(const Dims& shape, const DimsOfFactors& dims) const {
    Operand out;
    out.dims.resize(shape.size());
    if (shape.size() > dims.size()) return out;
    const std::size_t skipped = dims.size() - shape.size();
    for (std::size_t d = 0; d < shape.size(); ++d) {
      std::int64_t size = 1;
      bool has_factors = true;
      for (const FactorOf f : dims[d + skipped]) {
        size *= sizes_[f];
        has_factors = has_factors && f != kValueWidth;
      }
      if (size != shape[d] || !has_factors) continue;
      for (const FactorOf f : dims[d + skipped]) {
        if (sizes_[f] > 1) out.dims[d].push_back(ids_[f]);
      }
    }
    return out;
  }

 private:
  SpaceBuilder& b_;
  std::array<std::int64_t, kFactors> sizes_;
  std::array<FactorId, kFactors> ids_{};
};

// The dims of a tensor argument by its name; null for seeds and such.
const DimsOfFactors* dims_of_argument(std::string_view name) {
  if (name == "query") return &kQueryDims;
  if (name == "key") return &kKeyDims;
  if (name == "value") return &kValueDims;
  if (name == "out" || name == "grad_out" || name == "grad_out_") {
    return &kOutDims;
  }
  if (name == "attn_mask" || name == "attn_bias") return &kBiasDims;
  if (name == "logsumexp") return &kLogSumDims;
  return nullptr;
}

void bind_operands(SpaceBuilder& b, AttentionSpace& space,
                   const OpCall& call, const Attention& a) {
  const OpSchema& op = call.op();
  b.space.inputs.resize(op.inputs.size());
  const auto& arguments = op.function->arguments();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto* tensor = std::get_if<TensorArg>(&op.args[i]);
    if (tensor == nullptr || tensor->operand == TensorArg::kNone) continue;
    const std::size_t operand = index(tensor->operand);
    const TensorMeta& meta = op.inputs[operand];
    const DimsOfFactors* dims = dims_of_argument(arguments[i].name);
    b.space.inputs[operand] = dims == nullptr
                                  ? SpaceBuilder::whole(meta.rank())
                                  : space.operand(meta.shape(), *dims);
    // A padded one cannot be cut where the queries are.
    if (arguments[i].name == "logsumexp" &&
        (meta.rank() < 3 || meta.size(2) != a.query.size(2))) {
      space.block(kQuery, "its log-sum-exp is padded");
    }
  }
}

// One result: its shape, where its dims come from, and its layout in memory.
struct AttentionResult {
  Dims shape;
  const DimsOfFactors* dims = nullptr;  // none: the same on every rank
  std::optional<Dims> strides;
  std::optional<DType> dtype;
};

void add_result(SpaceBuilder& b, const AttentionSpace& space, AttentionResult result,
                Without lacking) {
  Operand operand = SpaceBuilder::whole(static_cast<int>(result.shape.size()));
  std::int64_t elements = 1;
  for (const std::int64_t size : result.shape) elements *= size;
  if (result.dims != nullptr) operand = space.operand(result.shape, *result.dims);
  const auto o = static_cast<int>(b.space.outputs.size());
  b.output(std::move(operand),
           {.shape = result.shape, .strides = result.strides,
            .dtype = result.dtype});
  b.space.seal();
  if (result.dims == nullptr || elements == 0) lacking = Without::same();
  for (std::size_t f = 0; f < b.space.factors.size(); ++f) {
    b.space.outputs_without[index(o)][f] = lacking;
  }
}

DType statistics_dtype(DType dtype) {
  return dtype == DType::kF64 ? DType::kF64 : DType::kF32;
}

using Results = std::vector<std::optional<AttentionResult>>;

// output, logsumexp, cum_seq_q, cum_seq_k, rng_state, unused, debug_attn_mask.
Results flash(const OpCall&, const Attention& a) {
  const Dims heads{a.query.size(0), a.query.size(1), a.query.size(2)};
  return {AttentionResult{heads, &kLogSumDims, {}, statistics_dtype(a.query.dtype())},
          std::nullopt,
          std::nullopt,
          AttentionResult{Dims{2}, nullptr, {}, DType::kU64},
          AttentionResult{Dims{}, nullptr, {}, DType::kU64},
          AttentionResult{Dims{0}, nullptr, {}, a.query.dtype()}};
}

Results flash_for_cpu(const OpCall&, const Attention& a) {
  // Written as [batch, length, heads].
  const Dims shape{a.query.size(0), a.query.size(1), a.query.size(2)};
  const DType dtype = statistics_dtype(a.query.dtype());
  const Dims rows = make_meta(Dims{shape[0], shape[2], shape[1]}, dtype).strides();
  return {AttentionResult{shape, &kLogSumDims, Dims{rows[0], rows[2], rows[1]}, dtype}};
}

// logsumexp (its length padded to 32, none where it is not wanted), philox seed
// and offset.
Results efficient(const OpCall& call, const Attention& a) {
  constexpr std::int64_t kAlignment = 32;
  const std::int64_t padded =
      add_sizes(a.query.size(2), kAlignment - 1) / kAlignment * kAlignment;
  const std::int64_t length = call.boolean("compute_log_sumexp") ? padded : 0;
  return {AttentionResult{Dims{a.query.size(0), a.query.size(1), length}, &kLogSumDims,
                 {}, DType::kF32},
          AttentionResult{Dims{}, nullptr, {}, DType::kI64},
          AttentionResult{Dims{}, nullptr, {}, DType::kI64}};
}

// logsumexp, cum_seq_q, cum_seq_k, philox seed and offset, debug_attn_mask.
Results cudnn(const OpCall& call, const Attention& a) {
  Results results(6);
  if (call.boolean("compute_log_sumexp")) {
    results[0] = AttentionResult{
        Dims{a.query.size(0), a.query.size(1), a.query.size(2), 1},
        nullptr, {}, DType::kF32};
  }
  for (const std::size_t seed : {std::size_t{3}, std::size_t{4}}) {
    results[seed] = AttentionResult{Dims{}, nullptr, {}, DType::kI64};
  }
  return results;
}

void say_what_it_costs(const OpCall& call, IndexSpace& space, double products) {
  const bool causal = call.boolean_or("is_causal", false);
  space.is_random = call.has("dropout_p") &&
                    call.op().float_arg("dropout_p").value_or(0) > 0;
  // Two flops a product and point; a causal mask skips half of each.
  space.flops_per_point = 2 * products * (causal ? 0.5 : 1.0);
}

void block_causal(const OpCall& call, AttentionSpace& space) {
  if (call.boolean_or("is_causal", false)) {
    space.block(kQuery, "a causal mask ties queries to their place");
  }
}

BoundForm bind_forward(const OpCall& call,
                       Results (*others)(const OpCall&, const Attention&)) {
  const Attention a = operands(call, true);
  SpaceBuilder b;
  AttentionSpace space(b, a);
  block_causal(call, space);
  bind_operands(b, space, call, a);
  Dims shape = a.query.shape();
  shape.back() = a.value.shape().back();
  // Kernels of GPUs write by length; that of the CPU as the query lies.
  const bool on_cpu = others == nullptr || others == flash_for_cpu;
  const Dims strides =
      on_cpu ? dense_like(a.query, shape, a.query.dtype()).strides()
             : by_length(shape, a.query.dtype());
  const DimsOfFactors& dims =
      a.value.size(3) == a.query.size(3) ? kQueryDims : kOutDims;
  add_result(b, space, {shape, &dims, strides, a.query.dtype()},
             Without::forbidden());
  const Results rest = others == nullptr ? Results{} : others(call, a);
  for (const std::optional<AttentionResult>& result : rest) {
    if (result) {
      // A padded one keeps the queries whole.
      add_result(b, space, *result, Without::forbidden());
    } else {
      b.not_produced();
    }
  }
  say_what_it_costs(call, b.space, 2);
  return b.bound();
}

// Without batch and heads told apart, nothing is sharded.
BoundForm bind_composite(const OpCall& call) {
  if (call.tensor("query").rank() == 4) return bind_forward(call, nullptr);
  const Attention a = operands(call, false);
  SpaceBuilder b;
  for (const TensorMeta& meta : call.op().inputs) {
    b.input(SpaceBuilder::whole(meta.rank()));
  }
  Dims shape = a.query.shape();
  shape.back() = a.value.shape().back();
  b.output(SpaceBuilder::whole(static_cast<int>(shape.size())),
           {.shape = shape});
  return b.bound();
}

// The gradient of a bias has rows padded to 16 elements.
Dims bias_strides(const TensorMeta& bias) {
  require(bias.rank() == 4, "the bias has another rank");
  constexpr std::int64_t kAlignment = 16;
  Dims padded = bias.shape();
  padded.back() =
      add_sizes(padded.back(), kAlignment - 1) / kAlignment * kAlignment;
  return make_meta(padded, bias.dtype()).strides();
}

BoundForm bind_backward(const OpCall& call) {
  const Attention a = operands(call, true);
  const bool masked = call.has("grad_input_mask");
  const std::vector<bool> mask =
      masked ? call.mask("grad_input_mask", 4)
             : std::vector<bool>{true, true, true};
  SpaceBuilder b;
  AttentionSpace space(b, a);
  block_causal(call, space);
  bind_operands(b, space, call, a);
  const std::pair<const TensorMeta*, const DimsOfFactors*> gradients[] = {
      {&a.query, &kQueryDims},
      {&a.key, &kKeyDims},
      {&a.value, a.value.size(3) == a.query.size(3) ? &kKeyDims : &kValueDims}};
  // Gradients sum over what their operand is broadcast along.
  const Without sum = Without::partial(ReduceOp::kSum);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto& [meta, dims] = gradients[i];
    if (!mask[i]) {
      b.not_produced();
      continue;
    }
    add_result(b, space,
               {meta->shape(), dims, by_length(meta->shape(), meta->dtype()),
                meta->dtype()},
               sum);
  }
  const TensorMeta* bias =
      masked ? call.optional_tensor("attn_bias") : nullptr;
  if (masked && (!mask[3] || bias == nullptr)) b.not_produced();
  if (masked && mask[3] && bias != nullptr) {
    add_result(b, space,
               {bias->shape(), &kBiasDims, bias_strides(*bias), bias->dtype()},
               sum);
  }
  say_what_it_costs(call, b.space, 5);
  return b.bound();
}

OpDefinition forward(Results (*others)(const OpCall&, const Attention&)) {
  return custom("attention(b(gr)sd,bgtd)", [others](const OpCall& call) {
    return bind_forward(call, others);
  });
}

}  // namespace

void define_attention(Family f) {
  f.add("scaled_dot_product_attention",
        custom("attention(b(gr)sd,bgtd)", bind_composite));
  f.add("_scaled_dot_product_flash_attention", forward(flash));
  f.add("_scaled_dot_product_flash_attention_for_cpu", forward(flash_for_cpu));
  f.add("_scaled_dot_product_efficient_attention", forward(efficient));
  f.add("_scaled_dot_product_cudnn_attention", forward(cudnn));
  f.add({"_scaled_dot_product_flash_attention_backward",
         "_scaled_dot_product_flash_attention_for_cpu_backward",
         "_scaled_dot_product_cudnn_attention_backward",
         "_scaled_dot_product_efficient_attention_backward"},
        custom("attention_backward(b(gr)sd,bgtd)", bind_backward));
}

}  // namespace shardprop
