// The functions of cuda_queue.h in a build without CUDA.
#include "nccl/cuda_queue.h"

namespace shardprop::nccl {
namespace {

auto missing() {
  return fail(ErrorCode::kEngineMissing,
              "this build has no CUDA kernels, which tensors on a GPU are "
              "packed and reduced with",
              "configure with -D SHARDPROP_CUDA=ON");
}

}  // namespace

Result<std::unique_ptr<collective::DeviceQueue>> cuda_queue(int) {
  return missing();
}

Result<int> cuda_devices() { return missing(); }

}  // namespace shardprop::nccl
