#pragma once

#include <cstdint>

namespace shardprop::kernels::cuda {

// Kernel launches so far in this process.
std::int64_t emulated_launches();

}  // namespace shardprop::kernels::cuda
