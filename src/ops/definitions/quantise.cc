// This file defines operators that round numbers as if quantised, and masks of
// the clamped numbers.

#include "ops/definitions/families.h"
#include "ops/forms/mapped.h"

#include <string>

namespace shardprop {
namespace {

DType value_and_mask(const OpCall& call, std::size_t result) {
  return result == 0 ? call.first().dtype() : DType::kBool;
}

std::string by_channel(const OpCall& call, bool with_mask) {
  const int rank = call.first().rank();
  require(rank > 0, "a scalar has no channels");
  const int axis = call.dim("axis", rank);
  const std::string dims = dims_notation(rank, {});
  const std::string channel(1, dims[index(axis)]);
  return dims + ',' + channel + ',' + channel + "->" + dims +
         (with_mask ? ',' + dims : "");
}

OpDefinition of_channels(bool with_mask) {
  return mapped("by_channel(axis)",
                [with_mask](const OpCall& call) {
                  return by_channel(call, with_mask);
                })
      .typed(value_and_mask)
      .like("self")
      .nonempty();
}

}  // namespace

void define_quantise(Family f) {
  f.add("fake_quantize_per_tensor_affine", same_shape().like("self"));
  f.add({"fake_quantize_per_tensor_affine_cachemask",
         "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams"},
        same_shape(2).typed(value_and_mask).like("self"));
  f.add("fake_quantize_per_channel_affine", of_channels(false));
  f.add("fake_quantize_per_channel_affine_cachemask", of_channels(true));
}

}  // namespace shardprop
