#pragma once

#include <shardprop/base/inline_vector.h>
#include <shardprop/base/result.h>

namespace shardprop::collective {

// Returns `dim` counted from the front. Error: kCollectiveDim.
Result<int> dim_of(const Dims& sizes, int dim);

}  // namespace shardprop::collective
