// Layers of attention that PyTorch runs as one operator if no gradient is
// requested. They are sharded over the batch; weights are replicated.

#include "ops/definitions/families.h"
#include "ops/definitions/words.h"
#include "ops/forms/mapped.h"
#include "ops/rules/fixed_notation.h"

#include <cstdint>

namespace shardprop {
namespace {

// Returns the term of the mask. It covers pairs of positions (0), positions of
// each sample (1), or pairs of positions of each head and sample (2).
Term mask_term(const OpCall& call) {
  const TensorMeta* mask = call.optional_tensor("mask");
  if (mask == nullptr) return Term::replicated();
  const std::int64_t kind = call.op().int_arg("mask_type").value_or(0);
  if (kind == 1 && mask->rank() == 2) return Term().add('b').full({'t'});
  if (kind == 2 && mask->rank() == 4) return Term().add('b').any().any().any();
  return Term::replicated();
}

Notation layer_notation(const OpCall& call) {
  require(call.tensor("src").rank() == 3,
          "the input is not a batch of sequences");
  const Term batch = Term().add('b').full({'t', 'e'});
  constexpr std::size_t kWeights = 12;
  Notation notation{{batch}, {batch}, {}, {}};
  notation.inputs.resize(1 + kWeights, Term::replicated());
  notation.inputs.push_back(mask_term(call));
  return notation;
}

Notation heads_notation(const OpCall& call) {
  require(call.tensor("query").rank() == 3,
          "the query is not a batch of sequences");
  const bool averages = call.boolean("average_attn_weights");
  static const Notation kHeads =
      fixed_notation("b{te},b{se},b{se},*,*,*,*,*->b{te},b{h:num_head}{ts}");
  Notation notation = kHeads;
  notation.inputs.back() = mask_term(call);
  if (!call.boolean("need_weights")) {
    notation.outputs[1] = Term::absent();
  } else if (averages) {
    notation.outputs[1] = Term().add('b').full({'t', 's'});
  }
  return notation;
}

}  // namespace

void words_of_encoder(RuleWords& words) {
  words.form(mapped("encoder_layer()", layer_notation));
  words.form(mapped("multi_head_attention()", heads_notation));
}

void define_encoder(Family f) {
  f.add("_transformer_encoder_layer_fwd", form("encoder_layer()").nonempty());
  f.add("_native_multi_head_attention",
        form("multi_head_attention()")
            .nonempty()
            .multiplies(ProductKind::kAttention));
}

}  // namespace shardprop
