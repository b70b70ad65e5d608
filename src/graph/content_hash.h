// ContentHash hashes the content of a graph. Equal content has the same hash on
// every platform.
//
//   ContentHash hash;
//   hash.add(std::string_view(node.op_name()));
//   for (const Argument& argument : node.op.args) hash.add(argument);
//   hash.state();
#pragma once

#include <shardprop/base/hash.h>
#include <shardprop/ops/argument.h>
#include <shardprop/placement/tensor_meta.h>

#include <bit>
#include <complex>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

namespace shardprop {

// ContentHash reduces all content to 64-bit words of fixed meaning, because
// std::hash differs between platforms.
class ContentHash {
 public:
  void add(std::uint64_t word) { state_ = hash_mix(state_, word); }
  void add(std::string_view text) {
    add(text.size());
    std::uint64_t word = 0;
    int bytes = 0;
    for (const char c : text) {
      word = word << 8 | static_cast<unsigned char>(c);
      if (++bytes == 8) {
        add(word);
        word = 0;
        bytes = 0;
      }
    }
    if (bytes > 0) add(word);
  }
  void add(const TensorMeta& meta) {
    add(static_cast<std::uint64_t>(meta.dtype()));
    add(meta.shape().size());
    for (const std::int64_t size : meta.shape()) add_signed(size);
    for (const std::int64_t stride : meta.strides()) add_signed(stride);
  }
  void add(const Argument& argument) {
    add(argument.index());
    std::visit([this](const auto& value) { add_part(value); }, argument);
  }
  std::uint64_t state() const { return state_; }

 private:
  void add_signed(std::int64_t value) {
    add(static_cast<std::uint64_t>(value));
  }
  template <class T>
  void add_part(const T& value) {
    if constexpr (std::is_same_v<T, NoneArg>) {
      add(0);
    } else if constexpr (std::is_same_v<T, double>) {
      add(std::bit_cast<std::uint64_t>(value));
    } else if constexpr (std::is_same_v<T, std::complex<double>>) {
      add_part(value.real());
      add_part(value.imag());
    } else if constexpr (std::is_same_v<T, std::string>) {
      add(std::string_view(value));
    } else if constexpr (std::is_same_v<T, NamedArg>) {
      add(std::string_view(value.name));
    } else if constexpr (std::is_same_v<T, TensorArg>) {
      add_signed(value.operand);
    } else if constexpr (std::is_same_v<T, std::vector<bool>>) {
      add(value.size());
      for (const bool element : value) add(element ? 1 : 0);
    } else if constexpr (requires { value.begin(); }) {
      add(value.size());
      for (const auto& element : value) add_part(element);
    } else {
      add(static_cast<std::uint64_t>(value));
    }
  }

  std::uint64_t state_ = 0;
};

}  // namespace shardprop
