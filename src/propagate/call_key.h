// CallKey encodes a call of an operator as words. Two keys are equal exactly if
// function, arguments, operands and layouts are equal.
//
// The words are written to a KeyBuffer on the stack, then hashed and compared
// there. Only a stored call becomes a CallKey.
#pragma once

#include "ops/argument_reads.h"

#include <shardprop/ops/op_schema.h>
#include <shardprop/placement/tensor_spec.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace shardprop {

class KeyBuffer {
 public:
  KeyBuffer() : end_(inline_) {}  // NOLINT: words are written before read
  KeyBuffer(const KeyBuffer&) = delete;
  KeyBuffer& operator=(const KeyBuffer&) = delete;

  void clear() {
    heap_.clear();
    end_ = inline_;
  }
  void push(std::uint64_t word) {
    if (end_ != inline_ + kInline) {
      *end_++ = word;
      return;
    }
    push_to_heap(word);
  }
  // Appends a run of words with one capacity check.
  template <class T, class ToWord>
  void append(std::span<const T> items, const ToWord& word) {
    if (static_cast<std::size_t>(inline_ + kInline - end_) >= items.size()) {
      for (const T& item : items) *end_++ = word(item);
      return;
    }
    for (const T& item : items) push(word(item));
  }
  void append(std::span<const std::int64_t> words) {
    append(words,
           [](std::int64_t word) { return static_cast<std::uint64_t>(word); });
  }
  std::span<const std::uint64_t> words() const {
    if (!heap_.empty()) return heap_;
    return {inline_, static_cast<std::size_t>(end_ - inline_)};
  }
  std::uint64_t hash() const;

 private:
  static constexpr std::size_t kInline = 96;
  void push_to_heap(std::uint64_t word);
  std::uint64_t* end_;
  std::uint64_t inline_[kInline];    // NOLINT
  std::vector<std::uint64_t> heap_;  // all words, once inline_ is full
};

std::uint64_t hash_words(std::span<const std::uint64_t> words);

struct CallKey {
  std::vector<std::uint64_t> words;
  std::uint64_t hash = 0;
  // Keeps alive the function whose address is among the words.
  std::shared_ptr<const FunctionSchema> function;

  friend bool operator==(const CallKey& a, const CallKey& b) {
    return a.hash == b.hash && a.words == b.words;
  }
};
struct CallKeyHash {
  std::size_t operator()(const CallKey& key) const {
    return static_cast<std::size_t>(key.hash);
  }
};

// LayoutsView refers to the layouts of operands, either alone or inside their
// specs.
class LayoutsView {
 public:
  LayoutsView() = default;
  LayoutsView(std::span<const Layout> layouts)  // NOLINT: implicit
      : first_(reinterpret_cast<const std::byte*>(layouts.data())),
        step_(sizeof(Layout)),
        size_(layouts.size()) {}
  LayoutsView(const std::vector<Layout>& layouts)  // NOLINT: implicit
      : LayoutsView(std::span<const Layout>(layouts)) {}
  LayoutsView(std::span<const TensorSpec> specs)  // NOLINT: implicit
      : first_(specs.empty() ? nullptr
                             : reinterpret_cast<const std::byte*>(
                                   &specs.front().layout())),
        step_(sizeof(TensorSpec)),
        size_(specs.size()) {}

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const Layout& operator[](std::size_t i) const {
    return *reinterpret_cast<const Layout*>(first_ + i * step_);
  }

 private:
  const std::byte* first_ = nullptr;
  std::size_t step_ = 0;
  std::size_t size_ = 0;
};

// `looks` says how much of each argument matters; if it is empty, all of it
// does. `layouts` has one entry per operand, or none.
void write_call(KeyBuffer& key, const OpSchema& op, const LayoutsView& layouts,
                std::span<const Look> looks);

CallKey kept(const KeyBuffer& key,
             std::shared_ptr<const FunctionSchema> function);
CallKey call_key(const OpSchema& op, const LayoutsView& layouts,
                 std::span<const Look> looks);

// These functions write parts of the key of write_call().
void write_function(KeyBuffer& key, const OpSchema& op);
void write_arguments(KeyBuffer& key, const OpSchema& op,
                     std::span<const Look> looks);
void write_layout(KeyBuffer& key, const Layout& layout);

}  // namespace shardprop
