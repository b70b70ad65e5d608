// `InlineVector<T, N>` is a vector of trivially copyable elements that stores
// the first N inside the object. Short lists (mesh dims, tensor dims,
// placements) thus need no allocation and copy as plain memory.
//
//   InlineVector<std::int64_t, 6> shape{8, 2048, 4096};
//   shape.push_back(1);
//
// A list of more than N elements is stored on the heap, with the same
// interface.
#pragma once

#include <shardprop/base/hash.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <span>
#include <type_traits>
#include <utility>

namespace shardprop {

template <class T, std::size_t N>
class InlineVector {
  static_assert(std::is_trivially_copyable_v<T>);
  static_assert(N > 0);

 public:
  using value_type = T;
  using size_type = std::size_t;
  using iterator = T*;
  using const_iterator = const T*;

  InlineVector() = default;
  explicit InlineVector(std::size_t count, const T& value = T{}) {
    resize(count, value);
  }
  InlineVector(std::initializer_list<T> values) {
    assign(values.begin(), values.end());
  }
  template <std::forward_iterator It>
  InlineVector(It first, It last) {
    assign(first, last);
  }
  explicit InlineVector(std::span<const T> values) {
    assign(values.begin(), values.end());
  }
  InlineVector(const InlineVector& other) {
    assign(other.begin(), other.end());
  }
  InlineVector(InlineVector&& other) noexcept { take(other); }
  InlineVector& operator=(const InlineVector& other) {
    if (this != &other) assign(other.begin(), other.end());
    return *this;
  }
  InlineVector& operator=(InlineVector&& other) noexcept {
    if (this != &other) {
      release();
      take(other);
    }
    return *this;
  }
  ~InlineVector() { release(); }

  template <std::forward_iterator It>
  void assign(It first, It last) {
    const auto count = static_cast<std::size_t>(std::distance(first, last));
    size_ = 0;
    reserve(count);
    std::copy(first, last, data());
    size_ = static_cast<std::uint32_t>(count);
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return heap_ != nullptr ? heap_ : inline_; }
  const T* data() const { return heap_ != nullptr ? heap_ : inline_; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  T& operator[](std::size_t i) { return data()[i]; }
  const T& operator[](std::size_t i) const { return data()[i]; }
  T& front() { return data()[0]; }
  const T& front() const { return data()[0]; }
  T& back() { return data()[size_ - 1]; }
  const T& back() const { return data()[size_ - 1]; }

  void clear() { size_ = 0; }
  void reserve(std::size_t wanted) {
    if (wanted <= capacity_) return;
    const std::size_t grown =
        std::max(wanted, static_cast<std::size_t>(capacity_) * 2);
    T* bigger = new T[grown];
    std::copy(begin(), end(), bigger);
    delete[] heap_;
    heap_ = bigger;
    capacity_ = static_cast<std::uint32_t>(grown);
  }
  void resize(std::size_t count, const T& value = T{}) {
    const T filler = value;
    reserve(count);
    if (count > size_) std::fill(data() + size_, data() + count, filler);
    size_ = static_cast<std::uint32_t>(count);
  }
  void push_back(const T& value) {
    const T copy = value;
    reserve(size_ + std::size_t{1});
    data()[size_++] = copy;
  }
  void pop_back() { --size_; }
  void insert(const_iterator where, const T& value) {
    const auto at = static_cast<std::size_t>(where - begin());
    push_back(value);
    std::rotate(begin() + at, end() - 1, end());
  }
  void erase(const_iterator where) {
    const auto at = static_cast<std::size_t>(where - begin());
    std::copy(begin() + at + 1, end(), begin() + at);
    --size_;
  }

  friend bool operator==(const InlineVector& a, const InlineVector& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
  friend auto operator<=>(const InlineVector& a, const InlineVector& b)
    requires std::three_way_comparable<T>
  {
    return std::lexicographical_compare_three_way(a.begin(), a.end(), b.begin(),
                                                  b.end());
  }

 private:
  void release() {
    delete[] heap_;
    heap_ = nullptr;
    capacity_ = N;
    size_ = 0;
  }
  void take(InlineVector& other) {
    heap_ = std::exchange(other.heap_, nullptr);
    capacity_ = std::exchange(other.capacity_, std::uint32_t{N});
    size_ = std::exchange(other.size_, 0U);
    // Copies all N elements, because a copy of fixed size compiles to a few
    // moves.
    if (heap_ == nullptr) std::copy_n(other.inline_, N, inline_);
  }

  T* heap_ = nullptr;
  std::uint32_t size_ = 0;
  std::uint32_t capacity_ = N;
  T inline_[N] = {};
};

// These lists are the most frequent: sizes of tensor dims and indices of mesh
// dims.
using Dims = InlineVector<std::int64_t, 6>;
using DimIndices = InlineVector<std::int32_t, 8>;

}  // namespace shardprop

template <class T, std::size_t N>
struct std::hash<shardprop::InlineVector<T, N>> {
  std::size_t operator()(
      const shardprop::InlineVector<T, N>& v) const noexcept {
    return shardprop::hash_range(0, v);
  }
};
