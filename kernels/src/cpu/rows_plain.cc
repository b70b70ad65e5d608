#include <cstring>

#include "../convert.h"
#include "rows.h"

namespace shardprop::kernels::cpu::plain {
namespace {

// Processes one element at a time; the compiler may vectorise it.
struct Simd {
  static constexpr int kWidth = 1;
  static constexpr const char* kName = "plain";
  using Floats = float;

  template <class T>
  static Floats load(const std::byte* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return to_float(value);
  }
  template <class T>
  static void store(std::byte* to, Floats value) {
    const T result = from_float<T>(value);
    std::memcpy(to, &result, sizeof result);
  }
  static Floats multiply(Floats value, float scale) { return value * scale; }

  // There is not a portable way to bypass the caches.
  static void copy_line(std::byte* to, const std::byte* from) {
    std::memcpy(to, from, 64);
  }
  template <class T>
  static void stream_line(std::byte* to, const Floats* values) {
    for (std::size_t i = 0; i < 64 / sizeof(T); ++i) {
      store<T>(to + i * sizeof(T), values[i]);
    }
  }
};

}  // namespace
}  // namespace shardprop::kernels::cpu::plain

#define SHARDPROP_ROWS_NAMESPACE plain
#include "rows_impl.h"
