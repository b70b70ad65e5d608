#include "propagate/call_key.h"

#include <bit>
#include <cstring>
#include <string>
#include <string_view>

namespace shardprop {
namespace {

constexpr std::uint64_t kOdd[] = {0xa0761d6478bd642fULL, 0xe7037ed1a0b428dbULL};
constexpr std::uint64_t kStep[] = {0x8ebc6af09c88c6e3ULL,
                                   0x589965cc75374cc3ULL};

// Both halves of the product are used, so one multiplication mixes two words.
std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^
         static_cast<std::uint64_t>(product >> 64);
}

std::uint64_t word_of(const void* address) {
  return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(address));
}

void push_text(KeyBuffer& key, std::string_view text) {
  key.push(text.size());
  for (std::size_t at = 0; at < text.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + at,
                std::min<std::size_t>(8, text.size() - at));
    key.push(word);
  }
}

std::uint64_t sign_word(const Argument& value) {
  const auto sign = [](auto x) -> std::uint64_t {
    return x == 0 ? 0 : x > 0 ? 1 : x < 0 ? 2 : 3;  // 3: NaN, which has none
  };
  if (const auto* real = std::get_if<double>(&value)) return sign(*real);
  if (const auto* whole = std::get_if<std::int64_t>(&value)) {
    return sign(*whole);
  }
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? 1 : 0;
  return 3;
}

struct ValueWriter {
  KeyBuffer& key;

  void operator()(const NoneArg&) const {}
  void operator()(bool value) const { key.push(value ? 1 : 0); }
  void operator()(std::int64_t value) const {
    key.push(static_cast<std::uint64_t>(value));
  }
  void operator()(double value) const {
    key.push(std::bit_cast<std::uint64_t>(value));
  }
  void operator()(const std::complex<double>& value) const {
    (*this)(value.real());
    (*this)(value.imag());
  }
  void operator()(const std::string& value) const { push_text(key, value); }
  void operator()(DType value) const {
    key.push(static_cast<std::uint64_t>(value));
  }
  void operator()(const NamedArg& value) const { push_text(key, value.name); }
  void operator()(const TensorArg& value) const {
    key.push(static_cast<std::uint64_t>(value.operand));
  }
  void operator()(const std::vector<bool>& values) const {
    key.push(values.size());
    for (const bool value : values) (*this)(value);
  }
  template <class T>
  void operator()(const std::vector<T>& values) const {
    key.push(values.size());
    for (const T& value : values) (*this)(value);
  }
};

void write_meta(KeyBuffer& key, const TensorMeta& meta) {
  key.push(static_cast<std::uint64_t>(meta.dtype()) << 8 |
           static_cast<std::uint64_t>(meta.rank()));
  key.append(std::span(meta.shape().data(), meta.shape().size()));
  key.append(std::span(meta.strides().data(), meta.strides().size()));
}

}  // namespace

void KeyBuffer::push_to_heap(std::uint64_t word) {
  if (heap_.empty()) heap_.assign(inline_, end_);
  heap_.push_back(word);
}

std::uint64_t hash_words(std::span<const std::uint64_t> words) {
  // Each pair of words is mixed with numbers of its place, so the
  // multiplications do not depend on each other.
  std::uint64_t sum = words.size();
  std::uint64_t one = kOdd[0];
  std::uint64_t other = kOdd[1];
  std::size_t i = 0;
  for (; i + 2 <= words.size(); i += 2) {
    sum += mixed(words[i] ^ one, words[i + 1] ^ other);
    one += kStep[0];
    other += kStep[1];
  }
  if (i < words.size()) sum += mixed(words[i] ^ one, other);
  return mixed(sum ^ kOdd[0], kOdd[1]);
}

std::uint64_t KeyBuffer::hash() const { return hash_words(words()); }

void write_function(KeyBuffer& key, const OpSchema& op) {
  key.push(word_of(op.function.get()));
}

void write_arguments(KeyBuffer& key, const OpSchema& op,
                     std::span<const Look> looks) {
  for (std::size_t i = 0; i < op.args.size(); ++i) {
    const Argument& value = op.args[i];
    const std::uint64_t kind = value.index();
    if (const auto* tensor = std::get_if<TensorArg>(&value)) {
      key.push(static_cast<std::uint64_t>(
                   static_cast<std::uint32_t>(tensor->operand))
                   << 8 |
               kind);
      continue;
    }
    const bool is_list = std::holds_alternative<std::vector<TensorArg>>(value);
    const Look look = looks.empty() || is_list ? Look::kValue : looks[i];
    if (look == Look::kNothing) continue;
    if (look == Look::kSign) {
      key.push(sign_word(value) << 8 | kind);
      continue;
    }
    key.push(kind);
    if (look == Look::kValue) std::visit(ValueWriter{key}, value);
  }
}

void write_layout(KeyBuffer& key, const Layout& layout) {
  const Placements& placements = layout.placements();
  key.append(std::span(placements.data(), placements.size()),
             [](Placement placement) { return placement.bits(); });
  // Each place of a cut is below kMaxMeshDims and takes three bits; the count
  // of placements comes first.
  std::uint64_t order = placements.size();
  for (const std::int8_t place : layout.shard_order()) {
    order = order << 3 | static_cast<std::uint8_t>(place);
  }
  key.push(order);
}

void write_call(KeyBuffer& key, const OpSchema& op, const LayoutsView& layouts,
                std::span<const Look> looks) {
  write_function(key, op);
  write_arguments(key, op, looks);
  key.push(op.inputs.size() << 32 | op.outputs.size() << 1 |
           (layouts.empty() ? 0 : 1));
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    write_meta(key, op.inputs[i]);
    if (!layouts.empty()) write_layout(key, layouts[i]);
  }
  // The outputs are stated if they cannot be inferred. The slots come after the
  // last output.
  for (const TensorMeta& meta : op.outputs) write_meta(key, meta);
  for (const std::int32_t slot : op.output_slots) {
    key.push(static_cast<std::uint64_t>(slot));
  }
}

CallKey kept(const KeyBuffer& key,
             std::shared_ptr<const FunctionSchema> function) {
  const std::span<const std::uint64_t> words = key.words();
  return {{words.begin(), words.end()}, hash_words(words), std::move(function)};
}

CallKey call_key(const OpSchema& op, const LayoutsView& layouts,
                 std::span<const Look> looks) {
  KeyBuffer key;
  write_call(key, op, layouts, looks);
  return kept(key, op.function);
}

}  // namespace shardprop
