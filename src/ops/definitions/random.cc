// Draws: each element from the stream at its own place in the whole tensor.

#include "ops/definitions/families.h"
#include "ops/op_call.h"

namespace shardprop {

void define_random(Family f) {
  f.add({"uniform", "normal_functional", "exponential", "geometric",
         "log_normal", "cauchy", "random", "poisson"},
        same_shape().like("self").random());
  f.add({"normal.Tensor_float", "normal.Tensor_Tensor"}, pointwise().random());
  f.add("binomial",
        pointwise()
            .strided([](const OpCall&, const Dims& shape, DType dtype) {
              return make_meta(shape, dtype).strides();
            })
            .random());
  f.add("normal.float_Tensor", pointwise().random());
  f.add("normal.float_float", factory("size")
                                  .typed([](const OpCall& call, std::size_t) {
                                    return call.dtype_or("dtype", DType::kF32);
                                  })
                                  .random());
}

}  // namespace shardprop
