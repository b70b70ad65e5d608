// The matrix products inside one operator on the busiest rank.
#pragma once

#include <shardprop/mesh/product_cost.h>
#include <shardprop/strategy/local_context.h>

namespace shardprop {

// What the device is busy for: the products' tiles where the index space says
// what is a row, a column and summed over (einsums, convolutions), the
// operations themselves where a kernel tiles differently (attention).
ProductCost product_work(const LocalContext& context, const Topology& topology);

}  // namespace shardprop
