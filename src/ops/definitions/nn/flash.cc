// This file defines the flash kernels that PyTorch calls with operands [batch, length,
// heads, width], or with sequences one after another: [tokens, heads, width], whose ends
// `cum_seq_q` and `cum_seq_k` list. Heads and batches are sharded. Only the data tell to
// which sequence a token belongs, so that every rank has all tokens.

#include "ops/definitions/families.h"
#include "ops/definitions/words.h"
#include "ops/forms/mapped.h"

#include <algorithm>

namespace shardprop {
namespace {

// The operands are query, key, value, the ends of the sequences of queries and keys, the
// used lengths of keys, and the slopes of positions, one for each head. The results are
// output, log-sum-exp, state of random numbers, unused, and a mask for debugging.
constexpr std::string_view kForward =
    "if cum_seq_q and not return_debug_mask and not block_table: "
    "{t}(gr){d},{u}g{d},{u}g{d},_,_,_,(gr),*"
    "->{t}(gr){d},(gr){t},{x:2},,{y:0}"
    " | if cum_seq_q and not return_debug_mask and not block_table: "
    "{t}(gr){d},{u}g{d},{u}g{d},_,_,_,_(gr),*"
    "->{t}(gr){d},(gr){t},{x:2},,{y:0}"
    " | if not cum_seq_q and not return_debug_mask and not block_table: "
    "b{s}(gr){d},b{t}g{d},b{t}g{d},_,_,b,(gr),*"
    "->b{s}(gr){d},b(gr){s},{x:2},,{y:0}"
    " | if not cum_seq_q and not return_debug_mask and not block_table: "
    "b{s}(gr){d},b{t}g{d},b{t}g{d},_,_,b,b(gr),*"
    "->b{s}(gr){d},b(gr){s},{x:2},,{y:0}";

// Heads that share a key head add to its gradient. The declaration has no None for
// dense operands; their ends have no element.
constexpr std::string_view kBackward =
    "{t}(gr){d},{t}(gr){d},{u}g{d},{u}g{d},{t}(gr){d},(gr){t},_,_,*,*"
    "->{t}(gr){d},{u}g{d},{u}g{d}"
    " | b{s}(gr){d},b{s}(gr){d},b{t}g{d},b{t}g{d},b{s}(gr){d},b(gr){s},_,_,*,*"
    "->b{s}(gr){d},b{t}g{d},b{t}g{d}";

// The output has the memory order of the query; the other results have another rank.
Dims strides_as_query(const OpCall& call, const Dims& shape, DType dtype) {
  const TensorMeta& query = call.tensor("query");
  return shape == query.shape() ? dense_like(query, shape, dtype).strides()
                                : make_meta(shape, dtype).strides();
}

// Counts `products` products for each pair of a query and a key. Sequences one after
// another count as if all keys were in sequences of length `max_k`.
void count_pairs(const OpCall& call, IndexSpace& space, double products) {
  const TensorMeta& query = call.tensor("query");
  const TensorMeta& key = call.tensor("key");
  require(query.rank() >= 3 && key.rank() == query.rank(),
          "query and key hold no heads");
  const bool is_packed = query.rank() == 3;
  const std::int64_t keys =
      is_packed
          ? std::clamp<std::int64_t>(call.integer("max_k"), 0, size_of(key, 0))
          : size_of(key, 1);
  const bool causal = call.boolean("is_causal");
  space.flops_per_point =
      2 * products * (causal ? 0.5 : 1.0) *
      static_cast<double>(size_of(query, query.rank() - 3)) *
      static_cast<double>(keys) *
      static_cast<double>(size_of(query, query.rank() - 1));
  space.product = ProductKind::kAttention;
  space.is_random = call.op().float_arg("dropout_p").value_or(0) > 0;
}

}  // namespace

void words_of_flash(RuleWords& words) {
  words.strides("query", strides_as_query);
  words.modifier("attention_pairs(2)",
                 [](const OpCall& call, IndexSpace& space) {
                   count_pairs(call, space, 2);
                 });
  words.modifier("attention_pairs(5)",
                 [](const OpCall& call, IndexSpace& space) {
                   count_pairs(call, space, 5);
                 });
}

void define_flash(Family f) {
  f.add("_flash_attention_forward.default",
        in_dense_rows(mapped(kForward)
                          .typed("first,f32,u64,u64,first")
                          .strided("query")
                          .refine("attention_pairs(2)")
                          .same_without("b")
                          .same_without("g")
                          .same_without("r")
                          .nonempty()));
  f.add("_flash_attention_backward",
        in_dense_rows(mapped(kBackward)
                          .typed("query,key,value")
                          .like({"query", "key", "value"})
                          .refine("attention_pairs(5)")
                          .reduced_without(ReduceOp::kSum)
                          .nonempty()));
}

}  // namespace shardprop
