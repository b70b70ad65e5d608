// Attention over batch and heads; over queries, and where a causal mask ties
// them to their place by a program (attention_programs.h). Grouped queries:
// query heads are (groups, heads of a group), keys and values have the groups.

#include "ops/definitions/attention_programs.h"
#include "ops/definitions/families.h"
#include "ops/forms/attention_space.h"
#include "ops/forms/mapped.h"

#include <algorithm>
#include <array>
#include <string>

namespace shardprop {
namespace {

using namespace attention;  // NOLINT(google-build-using-namespace)

DType log_sum_dtype(DType dtype) {
  return dtype == DType::kF64 ? DType::kF64 : DType::kF32;
}

using Results = std::vector<std::optional<AttentionResult>>;

// output, logsumexp, cum_seq_q, cum_seq_k, rng_state, unused, debug_attn_mask.
Results flash(const OpCall&, const Attention& a) {
  const Dims heads{a.query.size(0), a.query.size(1), a.query.size(2)};
  return {
      AttentionResult{heads, &kLogSumDims, {}, log_sum_dtype(a.query.dtype())},
      std::nullopt,
      std::nullopt,
      AttentionResult{Dims{2}, nullptr, {}, DType::kU64},
      AttentionResult{Dims{}, nullptr, {}, DType::kU64},
      AttentionResult{Dims{0}, nullptr, {}, a.query.dtype()}};
}

Results flash_for_cpu(const OpCall&, const Attention& a) {
  // Written as [batch, length, heads].
  const Dims shape{a.query.size(0), a.query.size(1), a.query.size(2)};
  const DType dtype = log_sum_dtype(a.query.dtype());
  const Dims rows =
      make_meta(Dims{shape[0], shape[2], shape[1]}, dtype).strides();
  return {AttentionResult{shape, &kLogSumDims, Dims{rows[0], rows[2], rows[1]},
                          dtype}};
}

// What kernels pad the length of a log-sum-exp to.
constexpr std::int64_t kLogSumAlignment = 32;

// The queries that a rank holds come in tiles, so that it pads nothing either.
std::int64_t tile_of(const Attention& a) {
  const std::int64_t length = a.query.size(2);
  return length > 0 && length % kLogSumAlignment == 0 ? kLogSumAlignment : 1;
}

// logsumexp (its length padded to 32, none where it is not wanted), philox seed
// and offset.
Results efficient(const OpCall& call, const Attention& a) {
  const std::int64_t padded = add_sizes(a.query.size(2), kLogSumAlignment - 1) /
                              kLogSumAlignment * kLogSumAlignment;
  const std::int64_t length = call.boolean("compute_log_sumexp") ? padded : 0;
  return {AttentionResult{Dims{a.query.size(0), a.query.size(1), length},
                          &kLogSumDims,
                          {},
                          DType::kF32},
          AttentionResult{Dims{}, nullptr, {}, DType::kI64},
          AttentionResult{Dims{}, nullptr, {}, DType::kI64}};
}

// logsumexp, cum_seq_q, cum_seq_k, philox seed and offset, debug_attn_mask.
Results cudnn(const OpCall& call, const Attention& a) {
  Results results(6);
  if (call.boolean("compute_log_sumexp")) {
    results[0] = AttentionResult{
        Dims{a.query.size(0), a.query.size(1), a.query.size(2), 1},
        nullptr,
        {},
        DType::kF32};
  }
  for (const std::size_t seed : {std::size_t{3}, std::size_t{4}}) {
    results[seed] = AttentionResult{Dims{}, nullptr, {}, DType::kI64};
  }
  return results;
}

void say_what_it_costs(const OpCall& call, IndexSpace& space, double products) {
  const bool causal = call.boolean_or("is_causal", false);
  space.is_random =
      call.has("dropout_p") && call.op().float_arg("dropout_p").value_or(0) > 0;
  // Two flops a product and point; a causal mask skips half of each.
  space.flops_per_point = 2 * products * (causal ? 0.5 : 1.0);
  space.product = ProductKind::kAttention;
}

// Each rank may take a block of keys: with a log-sum-exp of its own in the
// forward (kOverBlocks puts them together), with that of all in the backward.
bool takes_blocks_of_keys(const OpCall& call) {
  return !call.boolean_or("is_causal", false) &&
         !(call.has("dropout_p") &&
           call.op().float_arg("dropout_p").value_or(0) > 0);
}

bool has_mask(const OpCall& call) {
  return call.has("attn_mask") && call.optional_tensor("attn_mask") != nullptr;
}

// A causal mask ties queries to their place, by which a program cuts the keys
// that a rank sees: two calls for each rank's rows, of which there are two.
void tie_queries(const OpCall& call, AttentionSpace& space, const Attention& a,
                 bool has_program) {
  Factor& rows = space.query();
  if (!call.boolean_or("is_causal", false) ||
      rows.kind == FactorKind::kBlocked) {
    return;
  }
  const bool drops =
      call.has("dropout_p") && call.op().float_arg("dropout_p").value_or(0) > 0;
  if (!has_program || drops || has_mask(call) ||
      a.query.size(2) != a.key.size(2)) {
    space.block(kQuery, "a causal mask ties queries to their place");
    return;
  }
  rows.kind = FactorKind::kScanned;
  rows.program = ProgramUse::kWhenSharded;
  rows.least = 2;
}

BoundForm bind_forward(const OpCall& call,
                       Results (*others)(const OpCall&, const Attention&)) {
  const Attention a = operands(call);
  const bool pads = others == efficient && call.boolean("compute_log_sumexp");
  SpaceBuilder b;
  AttentionSpace space(b, a, pads ? tile_of(a) : 1);
  space.block(kKey, "the softmax runs over it");
  bind_operands(b, space, call, a);
  const bool has_sums = others == flash || others == flash_for_cpu;
  tie_queries(call, space, a, has_sums);
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
  // Kernels disagree on rows that a mask leaves no key of the block.
  if (has_sums && !has_mask(call) && takes_blocks_of_keys(call)) {
    space.key().program = ProgramUse::kWhenSharded;
    for (auto& without : b.space.outputs_without) {
      without[index(space.key_id())] = Without::same();
    }
  }
  say_what_it_costs(call, b.space, 2);
  return b.bound();
}

// Whether batch and heads are told apart, and keys and values have as many or
// divide them: what the other forms are for.
bool has_batch_and_heads(const OpCall& call) {
  const TensorMeta& query = call.tensor("query");
  const TensorMeta& key = call.tensor("key");
  const TensorMeta& value = call.tensor("value");
  return query.rank() == 4 && key.rank() == 4 && value.rank() == 4 &&
         query.size(0) == key.size(0) && key.size(0) == value.size(0) &&
         key.size(1) == value.size(1) &&
         (key.size(1) == 0 || query.size(1) % key.size(1) == 0);
}

// Dims in front of the sequences that broadcast as those of any product.
std::string broadcast_notation(const OpCall& call) {
  const TensorMeta& query = call.tensor("query");
  const TensorMeta& key = call.tensor("key");
  const TensorMeta& value = call.tensor("value");
  require(query.rank() >= 2 && key.rank() >= 2 && value.rank() >= 2,
          "an operand is not a matrix");
  require(query.dtype() == key.dtype() && query.dtype() == value.dtype(),
          "query, key and value are of different dtypes");
  const bool grouped = call.boolean_or("enable_gqa", false);
  require(!grouped || (query.rank() > 2 && key.rank() > 2 && value.rank() > 2),
          "there are no heads");
  const std::string rows = call.boolean_or("is_causal", false) ? "[s]" : "s";
  const std::string heads = grouped ? "[_]" : "";
  std::string mask = "*";
  if (const TensorMeta* given = call.optional_tensor("attn_mask")) {
    const int rank = given->rank();
    const bool by_row =
        rank >= 2 && given->size(rank - 2) == query.size(query.rank() - 2);
    if (rank >= 2 && (!grouped || rank >= 3)) {
      mask = "..." + heads + (by_row ? rows : "_") + "_";
    }
  }
  const std::string own = "..." + std::string(grouped ? "[h]" : "") + rows;
  return own + "[d],..." + heads + "[td],..." + heads + "[t][v]," + mask +
         "->" + own + "[v]";
}

// The products of one point, whose dims that are held whole are no factors.
double whole_work(const OpCall& call) {
  const auto size = [&](const char* operand, int from_end) {
    const TensorMeta& meta = call.tensor(operand);
    return static_cast<double>(meta.size(meta.rank() - from_end));
  };
  double work = size("key", 2) * (size("query", 1) + size("value", 1));
  if (call.boolean_or("is_causal", false)) work *= size("query", 2);
  if (call.boolean_or("enable_gqa", false)) work *= size("query", 3);
  return work;
}

OpDefinition composite() {
  const OpDefinition broadcasts =
      mapped("attention(...sd,...td)", broadcast_notation);
  return custom("attention(b(gr)sd,bgtd)", [broadcasts](const OpCall& call) {
    if (has_batch_and_heads(call)) return bind_forward(call, nullptr);
    BoundForm bound = broadcasts.bind(call);
    for (Factor& factor : bound.space.factors) factor.least = 1;
    say_what_it_costs(call, bound.space, 1);
    bound.space.flops_per_point *= whole_work(call);
    return bound;
  });
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

BoundForm bind_backward(const OpCall& call, bool has_program) {
  const Attention a = operands(call);
  const bool masked = call.has("grad_input_mask");
  const std::vector<bool> mask = masked ? call.mask("grad_input_mask", 4)
                                        : std::vector<bool>{true, true, true};
  const bool pads =
      call.base_name() == "_scaled_dot_product_efficient_attention_backward";
  SpaceBuilder b;
  AttentionSpace space(b, a, pads ? tile_of(a) : 1);
  if (!takes_blocks_of_keys(call)) {
    space.block(kKey, "the softmax runs over it");
  }
  bind_operands(b, space, call, a);
  tie_queries(call, space, a, has_program);
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
  const TensorMeta* bias = masked ? call.optional_tensor("attn_bias") : nullptr;
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
  return custom("attention(b(gr)sd,bgtd)",
                [others](const OpCall& call) {
                  return bind_forward(call, others);
                })
      .refine("", draws(Distribution::kAttention));
}

OpDefinition backward(bool has_program) {
  return custom("attention_backward(b(gr)sd,bgtd)",
                [has_program](const OpCall& call) {
                  return bind_backward(call, has_program);
                })
      .refine("", draws(Distribution::kAttentionBackward));
}

}  // namespace

void define_attention(Family f) {
  f.add("scaled_dot_product_attention", composite());
  f.add("_scaled_dot_product_flash_attention",
        forward(flash).per_rank(
            forward_program({.name = "_scaled_dot_product_flash_attention",
                             .options = ", return_debug_mask",
                             .others = ", state, unused, mask"})));
  f.add("_scaled_dot_product_flash_attention_for_cpu",
        forward(flash_for_cpu)
            .per_rank(forward_program(
                {.name = "_scaled_dot_product_flash_attention_for_cpu",
                 .options = "",
                 .others = ""})));
  f.add("_scaled_dot_product_efficient_attention", forward(efficient));
  f.add("_scaled_dot_product_cudnn_attention", forward(cudnn));
  f.add("_scaled_dot_product_flash_attention_backward",
        backward(true).per_rank(backward_program(
            {.name = "_scaled_dot_product_flash_attention_backward",
             .takes_lengths = true})));
  f.add("_scaled_dot_product_flash_attention_for_cpu_backward",
        backward(true).per_rank(backward_program(
            {.name = "_scaled_dot_product_flash_attention_for_cpu_backward"})));
  f.add({"_scaled_dot_product_cudnn_attention_backward",
         "_scaled_dot_product_efficient_attention_backward"},
        backward(false));
}

}  // namespace shardprop
