// Convolutions.

#include "ops/definitions/families.h"
#include "ops/forms/mapped.h"

namespace shardprop {
namespace {

// Time first, then the batch, then channels.
std::int64_t frames_after(const OpCall& call, char) {
  const std::int64_t pad = call.integer("pad");
  require(pad >= 0 && pad < (std::int64_t{1} << 40), "a pad is out of range");
  const std::int64_t frames = add_sizes(
      call.tensor("self").size(0), 2 * pad - call.tensor("weight").size(0) + 1);
  require(frames > 0, "the kernel is longer than the signal");
  return frames;
}

}  // namespace

void define_convolution(Family f) {
  f.add({"convolution", "_convolution", "conv1d", "conv2d", "conv3d",
         "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
         "_convolution_mode", "slow_conv3d"},
        convolved());
  f.add("convolution_backward", convolved_gradients());
  f.add("conv_tbc", in_order(mapped("[t]b[i],[k][i]o,o->[s]bo", frames_after)
                                 .nonempty()
                                 .multiplies(ProductKind::kConvolution)));
}

}  // namespace shardprop
