// Attention is sharded over batch and heads, and over queries and keys. A
// program shards the keys, and the queries of a causal mask, which depends on
// their position (attention_programs.h). With grouped queries, the heads of the
// query are (groups, heads of a group). Keys and values have only the groups. A
// program also shards the query heads over more ranks than there are groups.

#include "ops/definitions/families.h"
#include "ops/definitions/nn/attention_programs.h"
#include "ops/definitions/nn/attention_results.h"
#include "ops/definitions/words.h"
#include "ops/forms/attention_space.h"
#include "ops/forms/mapped.h"
#include "ops/forms/shared_form.h"

#include <algorithm>
#include <array>
#include <string>

namespace shardprop {
namespace {

using namespace attention;  // NOLINT(google-build-using-namespace)

bool drops(const OpCall& call) {
  return call.has("dropout_p") &&
         call.op().float_arg("dropout_p").value_or(0) > 0;
}

void say_what_it_costs(const OpCall& call, IndexSpace& space, double products) {
  const bool causal = call.boolean_or("is_causal", false);
  space.is_random = drops(call);
  // A product costs two flops per point; a causal mask skips half of them.
  space.flops_per_point = 2 * products * (causal ? 0.5 : 1.0);
  space.product = ProductKind::kAttention;
}

// Returns whether each rank may run on a block of keys. In the forward each
// block has a log-sum-exp of its own, and kOverBlocks combines them. The
// backward uses the combined one.
bool takes_blocks_of_keys(const OpCall& call) {
  return !call.boolean_or("is_causal", false) && !drops(call);
}

bool has_mask(const OpCall& call) {
  for (const std::string_view name : {"attn_mask", "attn_bias"}) {
    if (call.has(name) && call.optional_tensor(name) != nullptr) return true;
  }
  return false;
}

// `CausalRows` names how a program handles a rank's rows of a causal mask:
// 1. kNone: no program handles them.
// 2. kTwoCalls: two calls, which need as many keys as queries and two rows per
//    rank.
// 3. kMask: one call with a mask of its own.
enum class CausalRows : std::uint8_t { kNone, kTwoCalls, kMask };

// A causal mask depends on the position of a query. A program slices the keys
// that a rank's queries attend to.
void tie_queries(const OpCall& call, AttentionSpace& space, const Attention& a,
                 CausalRows by) {
  Factor& rows = space.query();
  if (!call.boolean_or("is_causal", false) ||
      rows.kind == FactorKind::kBlocked) {
    return;
  }
  const bool fits =
      by == CausalRows::kMask ||
      (by == CausalRows::kTwoCalls && size_of(a.query, 2) == size_of(a.key, 2));
  if (!fits || drops(call) || has_mask(call)) {
    space.block(kQuery, "a causal mask ties queries to their place");
    return;
  }
  rows.kind = FactorKind::kScanned;
  rows.program = ProgramUse::kWhenSharded;
  // Two calls need two rows per rank; a rank with tiles has more than two.
  if (by == CausalRows::kTwoCalls && rows.size == size_of(a.query, 2)) {
    rows.least = 2;
  }
}

// Kernels disagree on rows whose mask excludes every key of the block. The
// composite operator materializes its scores; they are smaller than the keys if
// there are few queries.
void share_keys(const OpCall& call, AttentionSpace& space, IndexSpace& made,
                const Attention& a, bool is_composite) {
  const bool few = size_of(a.query, 2) <= size_of(a.query, 3);
  if (!takes_blocks_of_keys(call) || (is_composite ? !few : has_mask(call))) {
    return;
  }
  space.key().program = ProgramUse::kWhenSharded;
  for (auto& without : made.outputs_without) {
    without[index(space.key_id())] = Without::same();
  }
}

BoundForm bind_forward(const OpCall& call,
                       Results (*others)(const OpCall&, const Attention&)) {
  const Attention a = operands(call);
  const bool pads = others == efficient && call.boolean("compute_log_sumexp");
  SpaceBuilder b;
  AttentionSpace space(b, a, pads ? tile_of(a) : 1);
  if (!drops(call)) space.join_heads();
  space.block(kKey, "the softmax runs over it");
  bind_operands(b, space, call, a);
  const bool is_composite = others == nullptr;
  const bool has_sums = call.boolean_or("compute_log_sumexp", true);
  tie_queries(call, space, a,
              is_composite ? CausalRows::kMask
              : has_sums   ? CausalRows::kTwoCalls
                           : CausalRows::kNone);
  Dims shape = a.query.shape();
  shape.back() = a.value.shape().back();
  // The efficient kernel writes by length; others keep the memory order of the query.
  const Dims strides =
      others == efficient
          ? by_length(shape, a.query.dtype())
          : dense_like(a.query, shape, a.query.dtype()).strides();
  const DimsOfFactors& dims =
      size_of(a.value, 3) == size_of(a.query, 3) ? kQueryDims : kOutDims;
  add_result(b, space, {shape, &dims, strides, a.query.dtype()},
             Without::forbidden());
  const Results rest = is_composite ? Results{} : others(call, a);
  for (const std::optional<AttentionResult>& result : rest) {
    if (result) {
      // A padded log-sum-exp prevents sharding of the queries.
      add_result(b, space, *result, Without::forbidden());
    } else {
      b.not_produced();
    }
  }
  if (has_sums) share_keys(call, space, b.space, a, is_composite);
  say_what_it_costs(call, b.space, 2);
  return b.bound();
}

// Returns whether the operands have batch and heads, and the number of key
// heads divides that of query heads. The other forms require this.
bool has_batch_and_heads(const OpCall& call) {
  const TensorMeta& query = call.tensor("query");
  const TensorMeta& key = call.tensor("key");
  const TensorMeta& value = call.tensor("value");
  return query.rank() == 4 && key.rank() == 4 && value.rank() == 4 &&
         size_of(query, 0) == size_of(key, 0) &&
         size_of(key, 0) == size_of(value, 0) &&
         size_of(key, 1) == size_of(value, 1) &&
         (size_of(key, 1) == 0 || size_of(query, 1) % size_of(key, 1) == 0);
}

// The dims before the sequences broadcast as in any product.
Notation broadcast_notation(const OpCall& call) {
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
  const DimUse rows =
      call.boolean_or("is_causal", false) ? DimUse::kFull : DimUse::kSharded;
  Term heads = Term().leading();
  if (grouped) heads.any();
  Term mask = Term::replicated();
  if (const TensorMeta* given = call.optional_tensor("attn_mask")) {
    const int rank = given->rank();
    const bool by_row = rank >= 2 && size_of(*given, rank - 2) ==
                                         size_of(query, query.rank() - 2);
    if (rank >= 2 && (!grouped || rank >= 3)) {
      mask = heads;
      if (by_row) {
        mask.add('s', rows);
      } else {
        mask.any();
      }
      mask.any();
    }
  }
  Term own = Term().leading();
  if (grouped) own.full({'h'});
  own.add('s', rows);
  return {{Term(own).full({'d'}), Term(heads).full({'t', 'd'}),
           Term(heads).full({'t', 'v'}), mask},
          {Term(own).full({'v'})},
          {},
          {}};
}

// Returns the number of products per point. Blocked dims without a factor count
// with their size.
double whole_work(const OpCall& call) {
  const auto size = [&](const char* operand, int from_end) {
    const TensorMeta& meta = call.tensor(operand);
    return static_cast<double>(size_of(meta, meta.rank() - from_end));
  };
  double work = size("key", 2) * (size("query", 1) + size("value", 1));
  if (call.boolean_or("is_causal", false)) work *= size("query", 2);
  if (call.boolean_or("enable_gqa", false)) work *= size("query", 3);
  return work;
}

OpDefinition composite_form() {
  const OpDefinition broadcasts =
      mapped("broadcast_attention()", broadcast_notation);
  return custom("attention(b(gr)sd,bgtd)", [broadcasts](const OpCall& call) {
    if (has_batch_and_heads(call)) return bind_forward(call, nullptr);
    BoundForm bound = broadcasts.bind(call);
    for (Factor& factor : bound.space.factors) factor.least = 1;
    say_what_it_costs(call, bound.space, 1);
    bound.space.flops_per_point *= whole_work(call);
    return bound;
  });
}

// The rows of a bias gradient are padded to 16 elements.
Dims bias_strides(const TensorMeta& bias) {
  require(bias.rank() == 4, "the bias has another rank");
  constexpr std::int64_t kAlignment = 16;
  Dims padded = bias.shape();
  padded.back() =
      add_sizes(padded.back(), kAlignment - 1) / kAlignment * kAlignment;
  return make_meta(padded, bias.dtype()).strides();
}

// `kernel` is empty (flash and cuDNN), "flash_for_cpu", "efficient" or "overrideable".
BoundForm bind_backward(const OpCall& call, std::string_view kernel) {
  const Attention a = operands(call);
  const bool masked = call.has("grad_input_mask");
  const std::vector<bool> mask = masked ? call.mask("grad_input_mask", 4)
                                        : std::vector<bool>{true, true, true};
  const bool pads = kernel == "efficient";
  const bool as_operand = kernel != "efficient" && kernel != "flash_for_cpu";
  SpaceBuilder b;
  AttentionSpace space(b, a, pads ? tile_of(a) : 1);
  const TensorMeta* bias = masked ? call.optional_tensor("attn_bias") : nullptr;
  const bool of_all = mask[0] && mask[1] && mask[2];
  const bool of_bias = masked && mask[3] && bias != nullptr;
  if (!drops(call) && of_all && !of_bias) space.join_heads();
  if (!takes_blocks_of_keys(call)) {
    space.block(kKey, "the softmax runs over it");
  }
  bind_operands(b, space, call, a);
  tie_queries(call, space, a,
              of_all ? CausalRows::kTwoCalls : CausalRows::kNone);
  const std::pair<const TensorMeta*, const DimsOfFactors*> gradients[] = {
      {&a.query, &kQueryDims},
      {&a.key, &kKeyDims},
      {&a.value,
       size_of(a.value, 3) == size_of(a.query, 3) ? &kKeyDims : &kValueDims}};
  // A gradient sums over the dims along which its operand is broadcast.
  const Without sum = Without::partial(ReduceOp::kSum);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto& [meta, dims] = gradients[i];
    if (!mask[i]) {
      b.not_produced();
      continue;
    }
    add_result(
        b, space,
        {meta->shape(), dims,
         as_operand ? dense_like(*meta, meta->shape(), meta->dtype()).strides()
                    : by_length(meta->shape(), meta->dtype()),
         meta->dtype()},
        sum);
  }
  if (masked && !of_bias) b.not_produced();
  if (of_bias) {
    add_result(
        b, space,
        {bias->shape(), &kBiasDims,
         as_operand ? dense_like(*bias, bias->shape(), bias->dtype()).strides()
                    : bias_strides(*bias),
         bias->dtype()},
        sum);
  }
  say_what_it_costs(call, b.space, 5);
  return b.bound();
}

OpDefinition kernel_form(std::string_view kernel,
                         Results (*others)(const OpCall&, const Attention&)) {
  return custom(
      "attention(b(gr)sd,bgtd," + std::string(kernel) + ")",
      [others](const OpCall& call) { return bind_forward(call, others); });
}

OpDefinition forward(std::string_view kernel) {
  return form("attention(b(gr)sd,bgtd," + std::string(kernel) + ")")
      .draws(Distribution::kAttention);
}

std::string backward_word(std::string_view kernel) {
  return "attention_backward(b(gr)sd,bgtd" +
         std::string(kernel.empty() ? "" : ",") + std::string(kernel) + ")";
}

OpDefinition backward(std::string_view kernel) {
  return form(backward_word(kernel)).draws(Distribution::kAttentionBackward);
}

void define_composite(Family f) {
  f.add("scaled_dot_product_attention",
        form("attention(b(gr)sd,bgtd)").per_rank(composite_program()));
}

void define_forward(Family f) {
  const auto add = [&](std::string_view word, const ForwardKernel& kernel) {
    f.add(std::string(kernel.name),
          in_dense_rows(forward(word).per_rank(forward_program(kernel))));
  };
  add("flash", {.name = "_scaled_dot_product_flash_attention",
                .options = ", return_debug_mask",
                .others = ", state, unused, debug"});
  add("flash_for_cpu", {.name = "_scaled_dot_product_flash_attention_for_cpu"});
  // The log-sum-exp is padded to full tiles, and a rank's rows are full tiles
  // too.
  add("efficient",
      {.name = "_scaled_dot_product_efficient_attention",
       .bias = "attn_bias, True, ",
       .others = ", seed, place",
       .weight = "unsqueeze(slice(w / s, 2, 0, local_size(query, 2)), -1)",
       .of_blocks = "slice_scatter(l, slice(n, 2, 0, local_size(query, 2)), "
                    "2, 0, local_size(query, 2))",
       .behind_first = "slice(slice(l1, 2, 1), 2, 0, d)",
       .of_second = "slice(l2, 2, 0, d)",
       .of_rows = "cat([slice(l1, 2, 0, 1), b], 2)"});
  add("cudnn", {.name = "_scaled_dot_product_cudnn_attention",
                .bias = "attn_bias, True, ",
                .options = ", return_debug_mask",
                .others = ", seed, place",
                .may_omit_sums = true,
                .weight = "(w / s)",
                .behind_first = "slice(squeeze(l1, -1), 2, 1)",
                .of_second = "squeeze(l2, -1)",
                .of_rows = "slice_scatter(l1, unsqueeze(b, -1), 2, 1)"});
  add("overrideable",
      {.name = "_scaled_dot_product_fused_attention_overrideable",
       .bias = "attn_bias, ",
       .options = ", return_debug_mask",
       .others = ", seed, place"});
}

void define_backward(Family f) {
  const auto add = [&](std::string_view word, const BackwardKernel& kernel) {
    f.add(std::string(kernel.name),
          in_dense_rows(backward(word).per_rank(backward_program(kernel))));
  };
  add("", {.name = "_scaled_dot_product_flash_attention_backward",
           .after_sums = "cum_seq_q, cum_seq_k, $Q, $K, dropout_p, $CAUSAL, "
                         "philox_seed, philox_offset"});
  add("flash_for_cpu",
      {.name = "_scaled_dot_product_flash_attention_for_cpu_backward"});
  add("efficient",
      {.name = "_scaled_dot_product_efficient_attention_backward",
       .before_out = "attn_bias, ",
       .after_sums =
           "philox_seed, philox_offset, dropout_p, grad_input_mask, $CAUSAL",
       .gradient = "grad_out_",
       .behind_first =
           "slice_scatter(logsumexp, slice(slice(logsumexp, 2, 1), 2, 0, d), "
           "2, 0, d)"});
  add("", {.name = "_scaled_dot_product_cudnn_attention_backward",
           .after_sums = "philox_seed, philox_offset, attn_bias, cum_seq_q, "
                         "cum_seq_k, $Q, $K, dropout_p, $CAUSAL"});
  add("overrideable",
      {.name = "_scaled_dot_product_fused_attention_overrideable_backward",
       .before_out = "attn_bias, grad_input_mask, ",
       .after_sums = "cum_seq_q, cum_seq_k, $Q, $K, dropout_p, $CAUSAL, "
                     "philox_seed, philox_offset"});
}

}  // namespace

void words_of_attention(RuleWords& words) {
  words.form(composite_form());
  words.form(kernel_form("flash", flash));
  words.form(kernel_form("flash_for_cpu", flash_for_cpu));
  words.form(kernel_form("efficient", efficient));
  words.form(kernel_form("cudnn", cudnn));
  words.form(kernel_form("overrideable", overrideable));
  for (const std::string_view kernel :
       {"", "flash_for_cpu", "efficient", "overrideable"}) {
    words.form(shared_form(backward_word(kernel), [kernel](const OpCall& call) {
      return bind_backward(call, kernel);
    }));
  }
}

void define_attention(Family f) {
  define_composite(f);
  define_forward(f);
  define_backward(f);
}

}  // namespace shardprop
