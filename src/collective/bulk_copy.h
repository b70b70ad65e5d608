// Copies that are parts of something larger than the caches hold.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/collective/local_tensor.h>

namespace shardprop::collective {

// copy(), with stores that bypass the caches where both sides are contiguous
// and `bulk` says that the whole is more: the kernels judge by the call alone.
Result<void> copy_part(const LocalTensor& from, const LocalTensor& to,
                       bool bulk);

}  // namespace shardprop::collective
