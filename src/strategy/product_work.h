// Computes the work of the matmuls inside one operator on the busiest rank.
#pragma once

#include <shardprop/mesh/product_cost.h>
#include <shardprop/strategy/local_context.h>

namespace shardprop {

// Returns the class of the dtype that is multiplied: the dtype of the first
// operand. This operand is a multiplied tensor or a bias of the same dtype, but
// not a statistic or the result. Convolutions of f32 run in TF32, because
// PyTorch allows it to cuDNN by default (torch.backends.cudnn.allow_tf32).
// Other matmuls do not.
MathClass math_class(const OpSchema& op, ProductKind product);
// Returns the flops for which the device is busy with matmuls, and their extra
// bytes. If the index space defines rows, columns and a summed factor (einsums,
// convolutions), the flops are those of the tiles. Otherwise they are the flops
// of the points alone. The flops of attention are scaled by its own rate.
ProductCost product_work(const LocalContext& context, const Topology& topology);

}  // namespace shardprop
