#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include <shardprop/kernels/chunk_cat.h>
#include <shardprop/kernels/reduce_into.h>
#include <shardprop/kernels/split_with_sizes_copy.h>
#include <shardprop/kernels/status.h>
#include <shardprop/kernels/strided_copy.h>

// The engines that run the tests: the CPU with and without threads, the CUDA
// ops emulated on the host, and a GPU.
namespace shardprop::kernels::testing {

// `Arena` is all memory of one case, so that an engine can copy it to a device
// and back.
class Arena {
 public:
  std::vector<std::byte> bytes;
};

// A tensor at an offset of an arena.
struct Tensor {
  DType dtype;
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;  // elements
  std::size_t offset;

  std::int64_t count() const {
    std::int64_t product = 1;
    for (const std::int64_t size : sizes) product *= size;
    return product;
  }
  TensorView in(std::byte* base) const {
    return {base + offset, dtype, sizes, strides};
  }
  MutableTensorView out(std::byte* base) const {
    return {base + offset, dtype, sizes, strides};
  }
  // Returns the byte offset of the element with a row-major index.
  std::size_t at(std::int64_t index) const {
    auto byte = static_cast<std::int64_t>(offset);
    for (std::size_t d = sizes.size(); d-- > 0;) {
      byte += index % sizes[d] * strides[d] * size_of(dtype);
      index /= sizes[d];
    }
    return static_cast<std::size_t>(byte);
  }
};

class Engine {
 public:
  virtual ~Engine() = default;
  virtual std::string name() const = 0;
  // Makes the arena's memory available to the engine. Returns the address of
  // offset 0 while the call runs.
  virtual std::byte* enter(Arena& arena) = 0;
  virtual void leave(Arena& arena) = 0;

  virtual Status chunk_cat(const ChunkCatArgs& args) = 0;
  virtual Status split_with_sizes_copy(const SplitWithSizesCopyArgs& args) = 0;
  virtual Status strided_copy(const StridedCopyArgs& args) = 0;
  virtual Status reduce_into(const ReduceIntoArgs& args) = 0;
  virtual Status fill(const FillArgs& args) = 0;
};

// Defined by the main of each test program.
std::span<Engine* const> engines();

// Defines the ops of an engine on host memory, from a namespace of ops and its
// options.
#define SHARDPROP_ENGINE_OPS(space, options)                                  \
  Status chunk_cat(const ChunkCatArgs& args) override {                       \
    return space::chunk_cat(args, options);                                   \
  }                                                                           \
  Status split_with_sizes_copy(const SplitWithSizesCopyArgs& args) override { \
    return space::split_with_sizes_copy(args, options);                       \
  }                                                                           \
  Status strided_copy(const StridedCopyArgs& args) override {                 \
    return space::strided_copy(args, options);                                \
  }                                                                           \
  Status reduce_into(const ReduceIntoArgs& args) override {                   \
    return space::reduce_into(args, options);                                 \
  }                                                                           \
  Status fill(const FillArgs& args) override {                                \
    return space::fill(args, options);                                        \
  }

}  // namespace shardprop::kernels::testing
