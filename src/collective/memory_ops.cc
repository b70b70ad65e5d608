#include <shardprop/collective/memory_ops.h>

#include <shardprop/collective/kernel_view.h>
#include <shardprop/kernels/cpu.h>

#include "base/try.h"
#include "collective/memory_kernels.h"

#include <cstddef>
#include <cstring>
#include <string>

namespace shardprop {
namespace {

class HostMemoryOps final : public MemoryOps {
 public:
  Device device() const override { return {}; }

  Result<LocalTensor> allocate(const Dims& sizes, DType dtype) override {
    return LocalTensor::empty(sizes, dtype);
  }

  Result<void> copy(const LocalTensor& from, const LocalTensor& to,
                    double scale) override {
    SP_CHECK(collective::check_device({}, from, to));
    return collective::copy_by(
        [](const kernels::StridedCopyArgs& args) {
          return kernels::cpu::strided_copy(args);
        },
        from, to, scale);
  }

  Result<void> reduce(ReduceOp op, std::span<const LocalTensor> terms,
                      const LocalTensor& out, double scale) override {
    for (const LocalTensor& term : terms) {
      SP_CHECK(collective::check_device({}, term, out));
    }
    return collective::reduce_by(
        [](const kernels::ReduceIntoArgs& args) {
          return kernels::cpu::reduce_into(args);
        },
        op, terms, out, scale);
  }

  Result<void> fill(const LocalTensor& tensor, const void* value) override {
    if (tensor.numel() == 0) return {};
    SP_CHECK(collective::check_device({}, tensor, tensor));
    return collective::checked_kernel(kernels::cpu::fill(
        {.out = mutable_kernel_view(tensor), .value = value}));
  }

  Result<void> transfer(const LocalTensor& from,
                        const LocalTensor& to) override {
    SP_CHECK(collective::check_device({}, from, to));
    if (from.numel() > 0) {
      std::memcpy(to.data(), from.data(),
                  static_cast<std::size_t>(from.bytes()));
    }
    return {};
  }

  Result<void> finish() override { return {}; }
};

}  // namespace

MemoryOps& host_memory_ops() {
  static HostMemoryOps ops;
  return ops;
}

}  // namespace shardprop
