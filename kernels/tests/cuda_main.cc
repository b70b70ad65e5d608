// Runs the same tests on a GPU. Without a GPU it prints that and exits with 77,
// which CTest counts as skipped.

#include <cuda_runtime_api.h>
#include <shardprop/kernels/cuda.h>

#include <array>
#include <cstdio>
#include <stdexcept>

#include "check.h"
#include "engine.h"

namespace shardprop::kernels::testing {
namespace {

void require(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

// Copies the arena to the device at its exact size, so that compute-sanitizer
// detects accesses outside of it.
class CudaEngine : public Engine {
 public:
  explicit CudaEngine(cudaStream_t stream) : stream_(stream) {}

  std::string name() const override { return "cuda"; }
  std::byte* enter(Arena& arena) override {
    require(cudaMalloc(&memory_, arena.bytes.size()));
    require(cudaMemcpyAsync(memory_, arena.bytes.data(), arena.bytes.size(),
                            cudaMemcpyHostToDevice, stream_));
    return static_cast<std::byte*>(memory_);
  }
  void leave(Arena& arena) override {
    require(cudaMemcpyAsync(arena.bytes.data(), memory_, arena.bytes.size(),
                            cudaMemcpyDeviceToHost, stream_));
    require(cudaStreamSynchronize(stream_));
    require(cudaFree(memory_));
  }
  SHARDPROP_ENGINE_OPS(cuda, cuda::CudaOptions{stream_})

 private:
  cudaStream_t stream_;
  void* memory_ = nullptr;
};

float* device_floats(std::size_t count) {
  void* memory = nullptr;
  require(cudaMalloc(&memory, count * sizeof(float)));
  return static_cast<float*>(memory);
}

cudaStream_t& stream() {
  static cudaStream_t value = nullptr;
  return value;
}

// The graph is captured once and replayed on new contents of the same memory.
TEST("chunk_cat can be captured in a graph and replayed") {
  constexpr std::int64_t kCount = 1 << 20;
  float* const in = device_floats(kCount);
  float* const out = device_floats(kCount);
  const std::int64_t sizes[] = {kCount};
  const std::int64_t packed[] = {8, kCount / 8};
  const TensorView tensors[] = {{in, DType::kFloat32, sizes, {}}};
  cudaGraph_t graph = nullptr;
  require(cudaStreamBeginCapture(stream(), cudaStreamCaptureModeGlobal));
  const Status status =
      cuda::chunk_cat({.tensors = tensors,
                       .num_chunks = 8,
                       .out = {out, DType::kFloat32, packed, {}}},
                      {stream()});
  require(cudaStreamEndCapture(stream(), &graph));
  CHECK_FOR(status.ok(), status.message());
  cudaGraphExec_t exec = nullptr;
  require(cudaGraphInstantiate(&exec, graph, 0));
  std::vector<float> host(kCount);
  for (float round = 1; round < 4; ++round) {
    for (std::int64_t i = 0; i < kCount; ++i) {
      host[static_cast<std::size_t>(i)] = round * static_cast<float>(i);
    }
    require(cudaMemcpyAsync(in, host.data(), kCount * sizeof(float),
                            cudaMemcpyHostToDevice, stream()));
    require(cudaGraphLaunch(exec, stream()));
    std::vector<float> back(kCount);
    require(cudaMemcpyAsync(back.data(), out, kCount * sizeof(float),
                            cudaMemcpyDeviceToHost, stream()));
    require(cudaStreamSynchronize(stream()));
    CHECK(back == host);
  }
  require(cudaGraphExecDestroy(exec));
  require(cudaGraphDestroy(graph));
  require(cudaFree(in));
  require(cudaFree(out));
}

// The default stream waits for streams made without cudaStreamNonBlocking, and
// may not be used while one of them captures.
TEST("a launch that CUDA refuses is an error, not a crash") {
  float* const memory = device_floats(4);
  cudaStream_t blocking = nullptr;
  require(cudaStreamCreate(&blocking));
  const std::int64_t sizes[] = {4};
  const float one = 1.0F;
  require(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeGlobal));
  const Status status = cuda::fill(
      {.out = {memory, DType::kFloat32, sizes, {}}, .value = &one}, {});
  cudaGraph_t graph = nullptr;
  (void)cudaStreamEndCapture(blocking, &graph);
  if (graph != nullptr) (void)cudaGraphDestroy(graph);
  (void)cudaGetLastError();
  CHECK_FOR(status.code() == StatusCode::kCuda, status.message());
  require(cudaStreamDestroy(blocking));
  require(cudaFree(memory));
}

TEST("an error of an earlier call is not reported as ours, nor taken away") {
  float* const memory = device_floats(4);
  const std::int64_t sizes[] = {4};
  const float one = 1.0F;
  // The error of another call, whose owner has not read it yet.
  CHECK(cudaSetDevice(1 << 20) == cudaErrorInvalidDevice);
  const Status status = cuda::fill(
      {.out = {memory, DType::kFloat32, sizes, {}}, .value = &one}, {stream()});
  CHECK_FOR(status.ok(), status.message());
  CHECK(cudaGetLastError() == cudaErrorInvalidDevice);
  require(cudaStreamSynchronize(stream()));
  require(cudaFree(memory));
}

}  // namespace

std::span<Engine* const> engines() {
  static CudaEngine engine(stream());
  static const std::array<Engine*, 1> all = {&engine};
  return all;
}

}  // namespace shardprop::kernels::testing

int main(int argc, char** argv) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("skipped: no CUDA device");
    return 77;
  }
  using shardprop::kernels::testing::stream;
  if (cudaStreamCreateWithFlags(&stream(), cudaStreamNonBlocking) !=
      cudaSuccess) {
    std::puts("no stream");
    return 1;
  }
  return check::run(argc > 1 ? argv[1] : "");
}
