#include "ops/call_text.h"

#include "base/try.h"

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace shardprop::testing {
namespace {

Result<Argument> not_a_call(std::string_view text) {
  return fail(ErrorCode::kBatchLine, "not a call: " + std::string(text));
}

class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  void skip_spaces() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
  }
  bool take(char c) {
    skip_spaces();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::string_view until(std::string_view stops) {
    skip_spaces();
    const std::string_view word = rest_.substr(0, rest_.find_first_of(stops));
    rest_.remove_prefix(word.size());
    return word;
  }
  // Reads the `dim=` before a value.
  std::string name() {
    skip_spaces();
    const std::size_t end = rest_.find_first_not_of(
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
    if (end == std::string_view::npos || rest_[end] != '=') return {};
    std::string word(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    return word;
  }
  std::string_view rest() const { return rest_; }

  // The tensors met so far, which TensorArgs count in.
  std::vector<TensorMeta> tensors;

  Result<Argument> value() {
    skip_spaces();
    if (take('[')) return list();
    if (take('\'')) {
      std::string word(until("'"));
      if (!take('\'')) return not_a_call(rest_);
      return Argument(std::move(word));
    }
    const std::string_view word = until(",)] [");
    if (!rest_.empty() && rest_.front() == '[') return tensor(word);
    if (word == "None") return Argument(NoneArg{});
    if (word == "True") return Argument(true);
    if (word == "False") return Argument(false);
    if (const auto dtype = parse_dtype(word)) return Argument(*dtype);
    std::int64_t integer = 0;
    const char* end = word.data() + word.size();
    if (std::from_chars(word.data(), end, integer).ptr == end) {
      return Argument(integer);
    }
    double real = 0;
    if (!word.empty() && std::from_chars(word.data(), end, real).ptr == end) {
      return Argument(real);
    }
    return not_a_call(word);
  }

 private:
  Result<Argument> tensor(std::string_view dtype) {
    std::size_t size = rest_.find(']');
    if (size == std::string_view::npos) return not_a_call(rest_);
    ++size;
    if (size < rest_.size() && rest_[size] == '{') size = rest_.find('}') + 1;
    if (size == 0) return not_a_call(rest_);
    const std::string text =
        std::string(dtype) + std::string(rest_.substr(0, size));
    rest_.remove_prefix(size);
    SP_ASSIGN(TensorMeta meta, TensorMeta::parse(text));
    tensors.push_back(std::move(meta));
    return Argument(TensorArg{static_cast<std::int32_t>(tensors.size() - 1)});
  }

  Result<Argument> list() {
    std::vector<Argument> elements;
    while (!take(']')) {
      if (!elements.empty() && !take(',')) return not_a_call(rest_);
      SP_ASSIGN(Argument element, value());
      elements.push_back(std::move(element));
    }
    bool has_tensors = false;
    bool reals = false;
    for (const Argument& element : elements) {
      has_tensors = has_tensors || std::holds_alternative<TensorArg>(element);
      reals = reals || std::holds_alternative<double>(element);
    }
    if (has_tensors) return list_of<TensorArg>(elements);
    if (elements.empty()) return Argument(std::vector<std::int64_t>{});
    if (reals) return list_of<double>(elements);
    if (std::holds_alternative<bool>(elements[0])) {
      return list_of<bool>(elements);
    }
    if (std::holds_alternative<std::string>(elements[0])) {
      return list_of<std::string>(elements);
    }
    return list_of<std::int64_t>(elements);
  }

  // `None` represents an absent tensor, and an int is accepted as a float.
  template <class T>
  Result<Argument> list_of(const std::vector<Argument>& elements) {
    std::vector<T> out;
    for (const Argument& element : elements) {
      const auto* same = std::get_if<T>(&element);
      const auto* integer = std::get_if<std::int64_t>(&element);
      if (same != nullptr) {
        out.push_back(*same);
      } else if (std::is_same_v<T, TensorArg>) {
        out.emplace_back();
      } else if (integer != nullptr && std::is_same_v<T, double>) {
        if constexpr (std::is_same_v<T, double>) {
          out.push_back(static_cast<double>(*integer));
        }
      } else {
        return not_a_call(rest_);
      }
    }
    return Argument(std::move(out));
  }

  std::string_view rest_;
};

std::string number_text(double value) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  std::string text(buffer, end);
  if (text.find_first_of(".eni") == std::string::npos) text += ".0";
  return text;
}

class Writer {
 public:
  explicit Writer(const OpSchema& op) : op_(op) {}

  std::string text(const Argument& value) const {
    return std::visit([this](const auto& v) { return one(v); }, value);
  }

 private:
  static std::string one(NoneArg) { return "None"; }
  static std::string one(bool v) { return v ? "True" : "False"; }
  static std::string one(std::int64_t v) { return std::to_string(v); }
  static std::string one(double v) { return number_text(v); }
  static std::string one(std::complex<double> v) {
    return number_text(v.real());
  }
  static std::string one(const std::string& v) { return '\'' + v + '\''; }
  static std::string one(DType v) { return std::string(to_string(v)); }
  static std::string one(const NamedArg& v) { return one(v.name); }
  std::string one(TensorArg v) const {
    return v.operand == TensorArg::kNone
               ? "None"
               : to_string(op_.inputs[static_cast<std::size_t>(v.operand)]);
  }
  template <class T>
  std::string one(const std::vector<T>& list) const {
    std::string out = "[";
    for (const auto& element : list) {
      if (out.size() > 1) out += ", ";
      out += one(static_cast<T>(element));
    }
    return out + "]";
  }

  const OpSchema& op_;
};

}  // namespace

Result<OpSchema> parse_call(std::string_view text, const OpLibrary& library) {
  Reader reader(text);
  const std::string name(reader.until("("));
  const auto function = library.find(name);
  if (function == nullptr) {
    return fail(ErrorCode::kUnknownOperator, "`" + name + "` is not declared");
  }
  if (!reader.take('(')) {
    return fail(ErrorCode::kBatchLine, "not a call: " + std::string(text));
  }
  std::vector<GivenArgument> given;
  while (!reader.take(')')) {
    if (!given.empty() && !reader.take(',')) {
      return fail(ErrorCode::kBatchLine, "not a call: " + std::string(text));
    }
    std::string argument = reader.name();
    SP_ASSIGN(Argument value, reader.value());
    given.push_back({std::move(argument), std::move(value)});
  }
  return make_op_schema(function, std::move(given), std::move(reader.tensors));
}

std::string to_text(const OpSchema& op) {
  const Writer writer(op);
  std::string out = op.name() + "(";
  bool by_name = false;
  const auto& declared = op.function->arguments();
  for (std::size_t i = 0; i < declared.size(); ++i) {
    const bool left_out = declared[i].has_default
                              ? op.args[i] == declared[i].default_value
                              : false;
    if (left_out) {
      by_name = true;
      continue;
    }
    if (out.back() != '(') out += ", ";
    if (by_name || declared[i].keyword_only) out += declared[i].name + '=';
    out += writer.text(op.args[i]);
  }
  return out + ")";
}

}  // namespace shardprop::testing
