#include <shardprop/collective/kernel_view.h>
#include <shardprop/kernels/cuda.h>

#include "base/try.h"
#include "collective/reduction.h"
#include "nccl/device_queue.h"

#include <cuda_runtime_api.h>

#include <string>
#include <utility>

namespace shardprop::nccl {
namespace {

Result<void> checked(cudaError_t code, const char* call,
                     ErrorCode error = ErrorCode::kEngine) {
  if (code == cudaSuccess) return {};
  return fail(error, std::string(call) + ": " + cudaGetErrorString(code));
}

Result<void> checked(const kernels::Status& status) {
  if (status.ok()) return {};
  return fail(ErrorCode::kEngine, status.message());
}

class CudaMark final : public DeviceQueue::Mark {
 public:
  explicit CudaMark(cudaEvent_t event) : event_(event) {}
  ~CudaMark() override { cudaEventDestroy(event_); }
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
    LocalTensor out = LocalTensor::wrap(nullptr, sizes, dtype);
    if (out.numel() == 0) return out;
    SP_CHECK(use());
    void* memory = nullptr;
    SP_CHECK(checked(cudaMalloc(&memory, static_cast<std::size_t>(out.bytes())),
                     "cudaMalloc", ErrorCode::kOutOfMemory));
    return LocalTensor::wrap(memory, sizes, dtype,
                             std::shared_ptr<void>(memory, &cudaFree),
                             device());
  }

  Result<void> copy(const LocalTensor& from, const LocalTensor& to) override {
    if (from.numel() == 0 || from.same_view(to)) return {};
    SP_CHECK(use());
    return checked(kernels::cuda::strided_copy(
        {.in = kernel_view(from), .out = mutable_kernel_view(to)},
        {.stream = stream_}));
  }

  Result<void> reduce(ReduceOp op, std::span<const LocalTensor> terms,
                      const LocalTensor& out) override {
    SP_CHECK(use());
    return checked(collective::reduce_terms(
        op, terms, out, [this](const kernels::ReduceIntoArgs& args) {
          return kernels::cuda::reduce_into(args, {.stream = stream_});
        }));
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

 private:
  // The calling thread's device may be another one.
  Result<void> use() const {
    return checked(cudaSetDevice(device_), "cudaSetDevice");
  }

  int device_;
  cudaStream_t stream_;
};

}  // namespace

Result<std::unique_ptr<DeviceQueue>> cuda_queue(int device) {
  constexpr auto kMissing = ErrorCode::kEngineMissing;
  int count = 0;
  SP_CHECK(checked(cudaGetDeviceCount(&count), "no CUDA device", kMissing));
  if (device < 0 || device >= count) {
    return fail(kMissing, "there is no CUDA device " + std::to_string(device) +
                              " among " + std::to_string(count));
  }
  SP_CHECK(checked(cudaSetDevice(device), "cudaSetDevice", kMissing));
  cudaStream_t stream = nullptr;
  SP_CHECK(checked(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                   "cudaStreamCreate", kMissing));
  return std::make_unique<CudaQueue>(device, stream);
}

}  // namespace shardprop::nccl
