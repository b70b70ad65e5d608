// The matrix products inside one operator on the busiest rank.
#pragma once

#include <shardprop/mesh/product_cost.h>
#include <shardprop/strategy/local_context.h>

namespace shardprop {

// What the device is busy for: the products' tiles where the index space says
// what is a row, a column and summed over (einsums, convolutions), the
// operations themselves where a kernel tiles differently; those of attention as
// many as others are done meanwhile.
// In the dtype that is multiplied: that of the first operand, which is one of
// the factors or a bias of their dtype, not a statistic or the result.
// Convolutions of f32 run in TF32, as PyTorch lets cuDNN do unless told
// otherwise (torch.backends.cudnn.allow_tf32); other products do not.
MathClass math_class(const OpSchema& op, ProductKind product);
ProductCost product_work(const LocalContext& context, const Topology& topology);

}  // namespace shardprop
