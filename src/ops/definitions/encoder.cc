// Layers of attention that PyTorch runs as one operator if no gradient is
// requested. They are sharded over the batch; weights are replicated.

#include "ops/definitions/families.h"
#include "ops/forms/mapped.h"

#include <string>

namespace shardprop {
namespace {

// Returns the term of the mask. It covers pairs of positions (0), positions of
// each sample (1), or pairs of positions of each head and sample (2).
std::string mask_term(const OpCall& call) {
  const TensorMeta* mask = call.optional_tensor("mask");
  if (mask == nullptr) return "*";
  const std::int64_t kind = call.op().int_arg("mask_type").value_or(0);
  if (kind == 1 && mask->rank() == 2) return "b[t]";
  if (kind == 2 && mask->rank() == 4) return "b[_][_][_]";
  return "*";
}

std::string weights(int count) {
  std::string terms;
  for (int i = 0; i < count; ++i) terms += "*,";
  return terms;
}

std::string layer_notation(const OpCall& call) {
  require(call.tensor("src").rank() == 3,
          "the input is not a batch of sequences");
  return "b[te]," + weights(12) + mask_term(call) + "->b[te]";
}

std::string heads_notation(const OpCall& call) {
  require(call.tensor("query").rank() == 3,
          "the query is not a batch of sequences");
  const bool averages = call.boolean("average_attn_weights");
  const std::string scores = !call.boolean("need_weights") ? "-"
                             : averages                    ? "b[ts]"
                                                           : "b[hts]";
  return "b[te],b[se],b[se]," + weights(4) + mask_term(call) + "->b[te]," +
         scores;
}

std::int64_t heads(const OpCall& call, char) {
  return call.integer("num_head");
}

}  // namespace

void define_encoder(Family f) {
  f.add("_transformer_encoder_layer_fwd",
        mapped("encoder_layer()", layer_notation).nonempty());
  f.add("_native_multi_head_attention",
        mapped("multi_head_attention()", heads_notation, heads)
            .nonempty()
            .multiplies(ProductKind::kAttention));
}

}  // namespace shardprop
