// Copies parts of a collective whose data exceeds the caches.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/collective/local_tensor.h>

namespace shardprop::collective {

// Copies like copy(), with stores that bypass the caches if both sides are
// contiguous and `bulk` is true. The kernels know only the size of one call;
// `bulk` refers to the entire collective.
Result<void> copy_part(const LocalTensor& from, const LocalTensor& to,
                       bool bulk);

}  // namespace shardprop::collective
