#include "nccl/cuda_queue.h"

#include <shardprop/collective/kernel_view.h>
#include <shardprop/kernels/cuda.h>
#include <shardprop/placement/tensor_meta.h>

#include "base/try.h"
#include "collective/block_cache.h"
#include "collective/memory_kernels.h"

#include <cuda_runtime_api.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

namespace shardprop::nccl {
namespace {

using collective::DeviceQueue;

Result<void> checked(cudaError_t code, const char* call,
                     ErrorCode error = ErrorCode::kEngine) {
  if (code == cudaSuccess) return {};
  return fail(error, std::string(call) + ": " + cudaGetErrorString(code));
}

// Sets the current device of the calling thread. The destructor restores the
// previous one, because frameworks rely on it.
class CurrentDevice {
 public:
  CurrentDevice() = default;
  ~CurrentDevice() {
    if (changed_) static_cast<void>(cudaSetDevice(before_));
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

  Result<void> set(int device, ErrorCode error = ErrorCode::kEngine) {
    SP_CHECK(checked(cudaGetDevice(&before_), "cudaGetDevice", error));
    if (before_ == device) return {};
    SP_CHECK(checked(cudaSetDevice(device), "cudaSetDevice", error));
    changed_ = true;
    return {};
  }

 private:
  int before_ = 0;
  bool changed_ = false;
};

// A separate stream. It does not wait for the legacy default stream, and that
// stream does not wait for it.
class CudaStream {
 public:
  CudaStream(int device, cudaStream_t stream)
      : device_(device), stream_(stream) {}
  ~CudaStream() { cudaStreamDestroy(stream_); }
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  int device() const { return device_; }
  cudaStream_t get() const { return stream_; }

 private:
  int device_;
  cudaStream_t stream_;
};

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

// Returns a mark at the current end of a stream. Precondition: the device is
// current.
Result<std::unique_ptr<CudaMark>> mark_of(cudaStream_t stream) {
  cudaEvent_t event = nullptr;
  SP_CHECK(checked(cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
                   "cudaEventCreate"));
  auto mark = std::make_unique<CudaMark>(event);
  SP_CHECK(checked(cudaEventRecord(event, stream), "cudaEventRecord"));
  return mark;
}

Result<void> wait_for_mark(cudaStream_t stream, const CudaMark& mark) {
  return checked(cudaStreamWaitEvent(stream, mark.event(), 0),
                 "cudaStreamWaitEvent");
}

// The time that a failed allocation waits for the queue's work, after which
// cached blocks can be freed. It is longer than any collective that is not
// stuck.
constexpr std::chrono::seconds kDrain{2};
constexpr std::chrono::microseconds kDrainNap{50};

bool is_drained(const CudaStream& stream) {
  const auto deadline = std::chrono::steady_clock::now() + kDrain;
  while (cudaStreamQuery(stream.get()) == cudaErrorNotReady) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(kDrainNap);
  }
  return true;
}

// Uses cudaMalloc, because NCCL's peers cannot access memory of
// cudaMallocAsync.
Result<void*> allocate_block(int device, std::size_t bytes) {
  CurrentDevice current;
  SP_CHECK(current.set(device));
  void* block = nullptr;
  const cudaError_t code = cudaMalloc(&block, bytes);
  // Clears the error, so that the next caller of cudaGetLastError does not find
  // it.
  if (code != cudaSuccess) static_cast<void>(cudaGetLastError());
  SP_CHECK(checked(code, "cudaMalloc", ErrorCode::kOutOfMemory));
  return block;
}

class CudaQueue final : public DeviceQueue {
 public:
  explicit CudaQueue(std::shared_ptr<CudaStream> stream)
      : stream_(std::move(stream)),
        blocks_(std::make_shared<collective::BlockCache>(
            collective::BlockCache::Source{
                .allocate =
                    [device = stream_->device()](std::size_t bytes) {
                      return allocate_block(device, bytes);
                    },
                .free = [](void* block) { cudaFree(block); },
                .idle = [stream = stream_] { return is_drained(*stream); }})) {}
  ~CudaQueue() override { blocks_->close(); }

  void* stream() const override { return stream_->get(); }
  Device device() const override {
    return {DeviceType::kCuda, stream_->device()};
  }

  StreamOrder stream_order() const override {
    return [stream = stream_](void* waiting, void* awaited) -> Result<void> {
      CurrentDevice current;
      SP_CHECK(current.set(stream->device()));
      SP_ASSIGN(const auto mark, mark_of(static_cast<cudaStream_t>(awaited)));
      return wait_for_mark(static_cast<cudaStream_t>(waiting), *mark);
    };
  }

  Result<void> on_device(const std::function<Result<void>()>& work) override {
    CurrentDevice current;
    SP_CHECK(current.set(stream_->device()));
    return work();
  }

  Result<LocalTensor> allocate(const Dims& sizes, DType dtype) override {
    // This also checks the sizes.
    SP_ASSIGN(const TensorMeta meta, TensorMeta::contiguous(sizes, dtype));
    if (meta.numel() == 0) {
      return LocalTensor::wrap(nullptr, sizes, dtype, nullptr, device());
    }
    SP_ASSIGN(std::shared_ptr<void> block,
              blocks_->take(static_cast<std::size_t>(meta.bytes())));
    void* const memory = block.get();
    return LocalTensor::wrap(memory, sizes, dtype, std::move(block), device());
  }

  Result<void> copy(const LocalTensor& from, const LocalTensor& to,
                    double scale) override {
    SP_CHECK(collective::check_device(device(), from, to));
    return on_device([&] {
      return collective::copy_by(
          [this](const kernels::StridedCopyArgs& args) {
            return kernels::cuda::strided_copy(args, {.stream = stream()});
          },
          from, to, scale);
    });
  }

  Result<void> reduce(ReduceOp op, std::span<const LocalTensor> terms,
                      const LocalTensor& out, double scale) override {
    for (const LocalTensor& term : terms) {
      SP_CHECK(collective::check_device(device(), term, out));
    }
    return on_device([&] {
      return collective::reduce_by(
          [this](const kernels::ReduceIntoArgs& args) {
            return kernels::cuda::reduce_into(args, {.stream = stream()});
          },
          op, terms, out, scale);
    });
  }

  Result<void> fill(const LocalTensor& tensor, const void* value) override {
    if (tensor.numel() == 0) return {};
    SP_CHECK(collective::check_device(device(), tensor, tensor));
    return on_device([&] {
      return collective::checked_kernel(kernels::cuda::fill(
          {.out = mutable_kernel_view(tensor), .value = value},
          {.stream = stream()}));
    });
  }

  Result<void> transfer(const LocalTensor& from,
                        const LocalTensor& to) override {
    if (from.numel() == 0) return {};
    return on_device([&]() -> Result<void> {
      SP_CHECK(checked(cudaMemcpyAsync(to.data(), from.data(),
                                       static_cast<std::size_t>(from.bytes()),
                                       cudaMemcpyDefault, stream_->get()),
                       "cudaMemcpyAsync"));
      return checked(cudaStreamSynchronize(stream_->get()),
                     "cudaStreamSynchronize");
    });
  }

  Result<void> finish() override {
    return on_device([&] {
      return checked(cudaStreamSynchronize(stream_->get()),
                     "cudaStreamSynchronize");
    });
  }

  Result<std::unique_ptr<Mark>> mark() override {
    CurrentDevice current;
    SP_CHECK(current.set(stream_->device()));
    SP_ASSIGN(std::unique_ptr<Mark> mark, mark_of(stream_->get()));
    return mark;
  }

  Result<void> follow(const Mark& mark) override {
    return on_device([&] {
      return wait_for_mark(stream_->get(), static_cast<const CudaMark&>(mark));
    });
  }

 private:
  std::shared_ptr<CudaStream> stream_;
  std::shared_ptr<collective::BlockCache> blocks_;
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
  CurrentDevice current;
  SP_CHECK(current.set(device, kMissing));
  cudaStream_t stream = nullptr;
  SP_CHECK(checked(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                   "cudaStreamCreate", kMissing));
  return std::make_unique<CudaQueue>(
      std::make_shared<CudaStream>(device, stream));
}

}  // namespace shardprop::nccl
