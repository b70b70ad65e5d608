#include "ops/definitions/families.h"

namespace shardprop {

void define_convolution(Family f) {
  f.add({"convolution", "_convolution", "conv1d", "conv2d", "conv3d",
         "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"},
        convolved());
  f.add("convolution_backward", convolved_gradients());
}

}  // namespace shardprop
