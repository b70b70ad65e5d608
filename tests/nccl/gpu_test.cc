// The order of work on a real GPU, as device_order_test.cc has it on the fake.
// Built with CUDA only; without a GPU the cases check nothing.
#include <shardprop/collective/thread_world.h>
#include <shardprop/execute/dlpack.h>
#include <shardprop/nccl/cuda_ranks.h>
#include <shardprop/nccl/nccl_world.h>

#include "collective/values.h"
#include "nccl/cuda_queue.h"
#include "support/result_checks.h"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;

bool has_gpu() { return cuda_device_count().has_value(); }

int current_device() {
  int device = -1;
  REQUIRE(cudaGetDevice(&device) == cudaSuccess);
  return device;
}

// Some tens of milliseconds of work.
class SlowWork {
 public:
  SlowWork() { REQUIRE(cudaMalloc(&memory_, kBytes) == cudaSuccess); }
  ~SlowWork() { cudaFree(memory_); }
  SlowWork(const SlowWork&) = delete;
  SlowWork& operator=(const SlowWork&) = delete;
  void queue_on(cudaStream_t stream) {
    for (int i = 0; i < 100; ++i) {
      REQUIRE(cudaMemsetAsync(memory_, i, kBytes, stream) == cudaSuccess);
    }
  }

 private:
  static constexpr std::size_t kBytes = std::size_t{1} << 30;
  void* memory_ = nullptr;
};

std::vector<std::uint8_t> bytes_on_host(MemoryOps& memory,
                                        const LocalTensor& tensor) {
  const LocalTensor host =
      value_of(LocalTensor::zeros(tensor.sizes(), tensor.dtype()));
  REQUIRE(memory.transfer(tensor, host).has_value());
  const auto* at = host.data_as<const std::uint8_t>();
  return {at, at + host.bytes()};
}

const std::vector<std::uint8_t> kThrees(64, 3);

TEST_CASE("on a GPU: an import waits for the legacy default stream") {
  if (!has_gpu()) return;
  const auto queue = value_of(nccl::cuda_queue(0));
  SlowWork slow;
  void* theirs = nullptr;
  REQUIRE(cudaMalloc(&theirs, 64) == cudaSuccess);
  REQUIRE(cudaMemset(theirs, 9, 64) == cudaSuccess);
  const LocalTensor tensor =
      LocalTensor::wrap(theirs, {64}, DType::kU8, nullptr, queue->device());
  const LocalTensor copied = value_of(queue->allocate({64}, DType::kU8));
  slow.queue_on(nullptr);
  REQUIRE(cudaMemsetAsync(theirs, 3, 64, nullptr) == cudaSuccess);
  {
    const LocalTensor held = value_of(import_dlpack(
        value_of(
            export_dlpack(tensor, {.producer = nullptr, .consumer = nullptr}))
            .release(),
        DlpackStreams::into(*queue)));
    slow.queue_on(static_cast<cudaStream_t>(queue->stream()));
    REQUIRE(queue->copy(held, copied, 1).has_value());
  }
  // The import is dropped: the producer writes again, after our copy.
  REQUIRE(cudaMemsetAsync(theirs, 9, 64, nullptr) == cudaSuccess);
  CHECK(bytes_on_host(*queue, copied) == kThrees);
  REQUIRE(cudaFree(theirs) == cudaSuccess);
}

TEST_CASE("on a GPU: an export is read before its memory is used again") {
  if (!has_gpu()) return;
  const auto ours = value_of(nccl::cuda_queue(0));
  const auto theirs = value_of(nccl::cuda_queue(0));
  SlowWork slow;
  const LocalTensor copied = value_of(theirs->allocate({64}, DType::kU8));
  LocalTensor tensor = value_of(ours->allocate({64}, DType::kU8));
  const void* const block = tensor.data();
  const std::uint8_t three = 3;
  const std::uint8_t nine = 9;
  slow.queue_on(static_cast<cudaStream_t>(ours->stream()));
  REQUIRE(ours->fill(tensor, &three).has_value());
  dlpack::Owned out = value_of(
      export_dlpack(tensor, DlpackStreams::out_of(*ours, theirs->stream())));
  tensor = LocalTensor();
  slow.queue_on(static_cast<cudaStream_t>(theirs->stream()));
  const LocalTensor seen = LocalTensor::wrap(out->tensor.data, {64}, DType::kU8,
                                             nullptr, ours->device());
  REQUIRE(theirs->copy(seen, copied, 1).has_value());
  out.reset();
  const LocalTensor next = value_of(ours->allocate({64}, DType::kU8));
  CHECK(next.data() == block);
  REQUIRE(ours->fill(next, &nine).has_value());
  CHECK(bytes_on_host(*theirs, copied) == kThrees);
  REQUIRE(ours->finish().has_value());
}

TEST_CASE("on a GPU: blocks come back without a wait for the device") {
  if (!has_gpu()) return;
  const auto queue = value_of(nccl::cuda_queue(0));
  SlowWork slow;
  const void* block = nullptr;
  {
    const LocalTensor tensor = value_of(queue->allocate({1 << 20}, DType::kU8));
    block = tensor.data();
    slow.queue_on(static_cast<cudaStream_t>(queue->stream()));
  }
  CHECK(cudaStreamQuery(static_cast<cudaStream_t>(queue->stream())) ==
        cudaErrorNotReady);
  CHECK(value_of(queue->allocate({1 << 20}, DType::kU8)).data() == block);
  REQUIRE(queue->finish().has_value());
}

TEST_CASE("on a GPU: memory that is full is given back and used again") {
  if (!has_gpu()) return;
  const auto queue = value_of(nccl::cuda_queue(0));
  std::size_t free = 0;
  std::size_t all = 0;
  REQUIRE(cudaMemGetInfo(&free, &all) == cudaSuccess);
  // Two thirds are cached; two thirds in two parts need them back.
  const auto third = static_cast<std::int64_t>(free / 3);
  value_of(queue->allocate({2 * third}, DType::kU8));
  {
    const LocalTensor a = value_of(queue->allocate({third}, DType::kU8));
    const LocalTensor b = value_of(queue->allocate({third}, DType::kU8));
    CHECK_CODE(queue->allocate({2 * third}, DType::kU8),
               ErrorCode::kOutOfMemory);
  }
  // A failed allocation leaves no pending CUDA error.
  CHECK(cudaPeekAtLastError() == cudaSuccess);
}

TEST_CASE("on a GPU: the caller's current device stays as it is") {
  const auto devices = cuda_device_count();
  if (!devices) return;
  const int last = *devices - 1;
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
  {
    const auto queue = value_of(nccl::cuda_queue(last));
    CHECK(current_device() == 0);
    const LocalTensor tensor = value_of(queue->allocate({64}, DType::kU8));
    cudaPointerAttributes where{};
    REQUIRE(cudaPointerGetAttributes(&where, tensor.data()) == cudaSuccess);
    CHECK(where.device == last);
    const std::uint8_t three = 3;
    REQUIRE(queue->fill(tensor, &three).has_value());
    CHECK(bytes_on_host(*queue, tensor) == kThrees);
    REQUIRE(queue->mark().has_value());
    CHECK(current_device() == 0);
  }
  CHECK(current_device() == 0);
  // NCCL takes the device of the options, not the current one.
  ThreadWorld world(1);
  const auto rank = nccl_communicator(world.communicator(0), {.device = last});
  if (!rank) return;
  void* memory = nullptr;
  REQUIRE(cudaSetDevice(last) == cudaSuccess);
  REQUIRE(cudaMalloc(&memory, 4) == cudaSuccess);
  REQUIRE(cudaMemset(memory, 0, 4) == cudaSuccess);
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
  const LocalTensor x = LocalTensor::wrap(memory, {1}, DType::kF32, nullptr,
                                          {DeviceType::kCuda, last});
  CHECK(
      (*rank)
          ->run(value_of(Group::world(1)), {.kind = CollectiveKind::kAllReduce,
                                            .inputs = {x},
                                            .outputs = {x}})
          .has_value());
  CHECK(current_device() == 0);
  REQUIRE(cudaFree(memory) == cudaSuccess);
}

}  // namespace
}  // namespace shardprop
