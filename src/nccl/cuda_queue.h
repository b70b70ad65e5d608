// Creates the DeviceQueue of CUDA.
#pragma once

#include "collective/device_queue.h"

#include <memory>

namespace shardprop::nccl {

// Creates a queue on a stream of its own. Error: kEngineMissing (no driver, no
// GPU of that number, a build without CUDA).
Result<std::unique_ptr<collective::DeviceQueue>> cuda_queue(int device);
// Returns the number of GPUs of this process, at least one. Error:
// kEngineMissing.
Result<int> cuda_devices();

}  // namespace shardprop::nccl
