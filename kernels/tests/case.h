#pragma once

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "check.h"
#include "engine.h"
#include "reference.h"

namespace shardprop::kernels::testing {

// `Case` is one case: tensors in an arena with guard bytes between them. An
// engine and the reference run an op on it, and all bytes are compared.
class Case {
 public:
  explicit Case(unsigned seed) : random_(seed) {}

  std::int64_t pick(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }
  template <class T>
  T pick_of(std::initializer_list<T> values) {
    return values
        .begin()[pick(0, static_cast<std::int64_t>(values.size()) - 1)];
  }

  enum class Layout { kRow, kColumn, kPadded, kStepped };
  Layout any_layout() {
    return pick_of({Layout::kRow, Layout::kRow, Layout::kColumn,
                    Layout::kPadded, Layout::kStepped});
  }

  // Returns poisoned memory. With `misaligned`, it starts some bytes later.
  Tensor place(DType dtype, std::vector<std::int64_t> sizes,
               Layout layout = Layout::kRow, bool misaligned = false) {
    const std::int64_t item = size_of(dtype);
    const std::size_t rank = sizes.size();
    std::vector<std::size_t> order(rank);
    std::iota(order.begin(), order.end(), 0);
    if (layout == Layout::kColumn) std::reverse(order.begin(), order.end());
    std::vector<std::int64_t> strides(rank);
    std::int64_t stride = layout == Layout::kStepped ? pick(2, 3) : 1;
    for (std::size_t i = rank; i-- > 0;) {
      strides[order[i]] = stride;
      const std::int64_t pad = layout == Layout::kPadded ? pick(0, 3) : 0;
      stride *= std::max<std::int64_t>(sizes[order[i]], 1) + pad;
    }
    constexpr std::int64_t kGuard = 80;
    const auto begin = static_cast<std::int64_t>(arena.bytes.size());
    std::int64_t start = (begin + kGuard + 15) / 16 * 16;
    start += item * pick_of<std::int64_t>({0, 0, 1, 3, 5});
    if (misaligned) start += pick(1, 15);
    arena.bytes.resize(static_cast<std::size_t>(start + stride * item + kGuard),
                       std::byte{0xA5});
    return {dtype, std::move(sizes), std::move(strides),
            static_cast<std::size_t>(start)};
  }

  // Returns a tensor with random values, which are mostly ordinary numbers.
  Tensor input(DType dtype, std::vector<std::int64_t> sizes,
               Layout layout = Layout::kRow, bool misaligned = false) {
    Tensor tensor = place(dtype, std::move(sizes), layout, misaligned);
    const float scale = pick_of({1e-6F, 1e-2F, 1.0F, 300.0F, 5e4F});
    std::normal_distribution<float> normal(0.0F, scale);
    for (std::int64_t i = 0; i < tensor.count(); ++i) {
      std::uint64_t bits = random_();
      if (is_castable(dtype) && pick(0, 3) > 0) {
        bits = nearest(normal(random_), dtype);
      }
      if (dtype == DType::kBool) bits &= 1;
      write(arena, tensor, i, bits);
    }
    return tensor;
  }

  // Runs the engine and the reference and compares; `call` takes the base
  // address of the arena.
  template <class Call, class Reference>
  void expect(Engine& engine, const std::vector<Tensor>& outs, const Call& call,
              const Reference& reference, const std::string& what) {
    Arena got = arena;
    std::byte* const base = engine.enter(got);
    const Status status = call(base);
    engine.leave(got);
    const std::string name = engine.name() + ": " + what;
    CHECK_FOR(status.ok(), name + ": " + status.message());
    Arena want = arena;
    reference(want);
    for (const Tensor& out : outs) {
      for (std::int64_t i = 0; i < out.count(); ++i) {
        const std::uint64_t a = read(got, out, i);
        const std::uint64_t b = read(want, out, i);
        if (a != b && same(a, b, out.dtype)) write(got, out, i, b);
      }
    }
    CHECK_FOR(got.bytes == want.bytes, name);
  }

  // Runs a call that must be refused without a write.
  template <class Call>
  void refuse(Engine& engine, StatusCode code, const std::string& message,
              const Call& call) {
    Arena got = arena;
    const Status status = call(engine.enter(got));
    engine.leave(got);
    CHECK_FOR(status.code() == code, engine.name() + ": " + status.message());
    CHECK_FOR(status.message() == message,
              engine.name() + ": " + status.message());
    CHECK_FOR(got.bytes == arena.bytes, engine.name() + ": something written");
  }

  Arena arena;

 private:
  std::mt19937_64 random_;
};

// Returns views of the tensors, valid during a call.
inline std::vector<TensorView> inputs_of(const std::vector<Tensor>& tensors,
                                         std::byte* base) {
  std::vector<TensorView> views;
  for (const Tensor& tensor : tensors) views.push_back(tensor.in(base));
  return views;
}

inline std::vector<MutableTensorView> outputs_of(
    const std::vector<Tensor>& tensors, std::byte* base) {
  std::vector<MutableTensorView> views;
  for (const Tensor& tensor : tensors) views.push_back(tensor.out(base));
  return views;
}

}  // namespace shardprop::kernels::testing
