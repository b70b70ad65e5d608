#include "nccl/cuda_queue.h"

#include <shardprop/collective/kernel_view.h>
#include <shardprop/kernels/cuda.h>
#include <shardprop/placement/tensor_meta.h>

#include "base/try.h"
#include "collective/memory_kernels.h"

#include <cuda_runtime_api.h>

#include <string>
#include <utility>

namespace shardprop::nccl {
namespace {

using collective::DeviceQueue;

Result<void> checked(cudaError_t code, const char* call,
                     ErrorCode error = ErrorCode::kEngine) {
  if (code == cudaSuccess) return {};
  return fail(error, std::string(call) + ": " + cudaGetErrorString(code));
}

class CudaMark final : public DeviceQueue::Mark {
 public:
  explicit CudaMark(cudaEvent_t event) : event_(event) {}
  ~CudaMark() override { cudaEventDestroy(event_); }
  cudaEvent_t event() const { return event_; }
  Result<bool> reached() override {
    const cudaError_t code = cudaEventQuery(event_);
    if (code == cudaErrorNotReady) return false;
    SP_CHECK(checked(code, "cudaEventQuery"));
    return true;
  }

 private:
  cudaEvent_t event_;
};

class CudaQueue final : public DeviceQueue {
 public:
  CudaQueue(int device, cudaStream_t stream)
      : device_(device), stream_(stream) {}
  ~CudaQueue() override { cudaStreamDestroy(stream_); }

  void* stream() const override { return stream_; }
  Device device() const override { return {DeviceType::kCuda, device_}; }

  Result<LocalTensor> allocate(const Dims& sizes, DType dtype) override {
    // Checks the sizes too.
    SP_ASSIGN(const TensorMeta meta, TensorMeta::contiguous(sizes, dtype));
    const LocalTensor empty =
        LocalTensor::wrap(nullptr, sizes, dtype, nullptr, device());
    if (meta.numel() == 0) return empty;
    SP_CHECK(use());
    // Not cudaMallocAsync, whose memory the peers of NCCL cannot reach.
    void* memory = nullptr;
    SP_CHECK(
        checked(cudaMalloc(&memory, static_cast<std::size_t>(empty.bytes())),
                "cudaMalloc", ErrorCode::kOutOfMemory));
    return LocalTensor::wrap(memory, sizes, dtype,
                             std::shared_ptr<void>(memory, &cudaFree),
                             device());
  }

  Result<void> copy(const LocalTensor& from, const LocalTensor& to,
                    double scale) override {
    SP_CHECK(collective::check_device(device(), from, to));
    SP_CHECK(use());
    return collective::copy_by(
        [this](const kernels::StridedCopyArgs& args) {
          return kernels::cuda::strided_copy(args, {.stream = stream_});
        },
        from, to, scale);
  }

  Result<void> reduce(ReduceOp op, std::span<const LocalTensor> terms,
                      const LocalTensor& out, double scale) override {
    for (const LocalTensor& term : terms) {
      SP_CHECK(collective::check_device(device(), term, out));
    }
    SP_CHECK(use());
    return collective::reduce_by(
        [this](const kernels::ReduceIntoArgs& args) {
          return kernels::cuda::reduce_into(args, {.stream = stream_});
        },
        op, terms, out, scale);
  }

  Result<void> fill(const LocalTensor& tensor, const void* value) override {
    if (tensor.numel() == 0) return {};
    SP_CHECK(collective::check_device(device(), tensor, tensor));
    SP_CHECK(use());
    return collective::checked_kernel(kernels::cuda::fill(
        {.out = mutable_kernel_view(tensor), .value = value},
        {.stream = stream_}));
  }

  Result<void> transfer(const LocalTensor& from,
                        const LocalTensor& to) override {
    if (from.numel() == 0) return {};
    SP_CHECK(use());
    SP_CHECK(checked(cudaMemcpyAsync(to.data(), from.data(),
                                     static_cast<std::size_t>(from.bytes()),
                                     cudaMemcpyDefault, stream_),
                     "cudaMemcpyAsync"));
    return finish();
  }

  Result<void> finish() override {
    SP_CHECK(use());
    return checked(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  }

  Result<std::unique_ptr<Mark>> mark() override {
    SP_CHECK(use());
    cudaEvent_t event = nullptr;
    SP_CHECK(checked(cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
                     "cudaEventCreate"));
    auto out = std::make_unique<CudaMark>(event);
    SP_CHECK(checked(cudaEventRecord(event, stream_), "cudaEventRecord"));
    return out;
  }

  Result<void> follow(const Mark& mark) override {
    SP_CHECK(use());
    return checked(cudaStreamWaitEvent(
                       stream_, static_cast<const CudaMark&>(mark).event(), 0),
                   "cudaStreamWaitEvent");
  }

 private:
  // The calling thread's device may be another one.
  Result<void> use() const {
    return checked(cudaSetDevice(device_), "cudaSetDevice");
  }

  int device_;
  cudaStream_t stream_;
};

}  // namespace

Result<int> cuda_devices() {
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code == cudaErrorInsufficientDriver) {
    return fail(ErrorCode::kEngineMissing,
                "no NVIDIA driver is installed, or one too old for CUDA " +
                    std::to_string(CUDART_VERSION / 1000),
                "install the driver of the GPU");
  }
  SP_CHECK(checked(code, "no CUDA device", ErrorCode::kEngineMissing));
  return count;
}

Result<std::unique_ptr<DeviceQueue>> cuda_queue(int device) {
  constexpr auto kMissing = ErrorCode::kEngineMissing;
  SP_ASSIGN(const int count, cuda_devices());
  if (device < 0 || device >= count) {
    return fail(kMissing, "CUDA device " + std::to_string(device) +
                              " is not among the " + std::to_string(count) +
                              " of this machine");
  }
  SP_CHECK(checked(cudaSetDevice(device), "cudaSetDevice", kMissing));
  cudaStream_t stream = nullptr;
  SP_CHECK(checked(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                   "cudaStreamCreate", kMissing));
  return std::make_unique<CudaQueue>(device, stream);
}

}  // namespace shardprop::nccl
