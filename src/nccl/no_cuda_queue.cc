// In a build without CUDA.
#include "nccl/device_queue.h"

namespace shardprop::nccl {

Result<std::unique_ptr<DeviceQueue>> cuda_queue(int) {
  return fail(ErrorCode::kEngineMissing,
              "this build has no CUDA kernels, which NCCL's communicator packs "
              "and reduces with",
              "configure with -D SHARDPROP_CUDA=ON");
}

}  // namespace shardprop::nccl
