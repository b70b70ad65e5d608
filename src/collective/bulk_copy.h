// Copies that are parts of something larger than the caches hold.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/collective/local_tensor.h>

#include <cstdint>

namespace shardprop::collective {

// Whether so many bytes, read and written by a rank, would push everything else
// out of the caches without being found there later.
bool is_bulk(std::int64_t bytes);

// copy(), with stores that bypass the caches where both sides are contiguous
// and `bulk` says that the whole is: the kernels judge by the call alone.
Result<void> copy_part(const LocalTensor& from, const LocalTensor& to,
                       bool bulk);

}  // namespace shardprop::collective
