// This file defines operators that round numbers as if quantised, and masks of
// the clamped numbers.

#include "ops/definitions/families.h"
#include "ops/definitions/words.h"
#include "ops/forms/mapped.h"

#include <string>

namespace shardprop {
namespace {

Notation by_channel(const OpCall& call, bool with_mask) {
  const int rank = call.first().rank();
  require(rank > 0, "a scalar has no channels");
  const int axis = call.dim("axis", rank);
  const Term dims = term_of_dims(rank);
  const Term channel = dims_from(axis, 1);
  Notation notation{{dims, channel, channel}, {dims}, {}, {}};
  if (with_mask) notation.outputs.push_back(dims);
  return notation;
}

OpDefinition of_channels(bool with_mask) {
  return form(with_mask ? "by_channel(axis,2)" : "by_channel(axis)")
      .typed("first,bool")
      .like({"self"})
      .nonempty();
}

}  // namespace

void words_of_quantise(RuleWords& words) {
  for (const bool with_mask : {false, true}) {
    words.form(mapped(with_mask ? "by_channel(axis,2)" : "by_channel(axis)",
                      [with_mask](const OpCall& call) {
                        return by_channel(call, with_mask);
                      }));
  }
}

void define_quantise(Family f) {
  f.add("fake_quantize_per_tensor_affine", same_shape().like({"self"}));
  f.add({"fake_quantize_per_tensor_affine_cachemask",
         "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams"},
        same_shape(2).typed("first,bool").like({"self"}));
  f.add("fake_quantize_per_channel_affine", of_channels(false));
  f.add("fake_quantize_per_channel_affine_cachemask", of_channels(true));
}

}  // namespace shardprop
