#include "io/pt2_conditions.h"

#include "base/parse_int.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

namespace shardprop::pt2 {
namespace {

using Compare = bool (*)(std::int64_t, std::int64_t);

struct Relation {
  std::string_view name;
  Compare compare;
};

constexpr Relation kRelations[] = {
    {"Equality", [](std::int64_t a, std::int64_t b) { return a == b; }},
    {"Unequality", [](std::int64_t a, std::int64_t b) { return a != b; }},
    {"GreaterThan", [](std::int64_t a, std::int64_t b) { return a >= b; }},
    {"LessThan", [](std::int64_t a, std::int64_t b) { return a <= b; }},
    {"StrictGreaterThan", [](std::int64_t a, std::int64_t b) { return a > b; }},
    {"StrictLessThan", [](std::int64_t a, std::int64_t b) { return a < b; }}};

// Returns the position of the comma between two operands.
std::size_t comma_between(std::string_view text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')') --depth;
    if (text[i] == ',' && depth == 0) return i;
  }
  return std::string_view::npos;
}

// `GuardReader` evaluates a guard while it reads the text.
class GuardReader {
 public:
  GuardReader(std::string_view text, const SizeOfInput& size)
      : text_(text), size_(size) {}

  std::optional<bool> run() {
    const auto left = sum();
    std::string_view sign;
    for (const std::string_view known : {"==", "!=", ">=", "<=", ">", "<"}) {
      if (sign.empty() && take(known)) sign = known;
    }
    const auto right = sum();
    blanks();
    if (!left || !right || sign.empty() || !text_.empty()) return std::nullopt;
    if (sign == "==") return *left == *right;
    if (sign == "!=") return *left != *right;
    if (sign == ">=") return *left >= *right;
    if (sign == "<=") return *left <= *right;
    return sign == ">" ? *left > *right : *left < *right;
  }

 private:
  using Value = std::optional<std::int64_t>;

  void blanks() {
    text_.remove_prefix(std::min(text_.find_first_not_of(' '), text_.size()));
  }

  bool take(std::string_view word) {
    blanks();
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }

  Value sum() {
    Value left = product();
    while (left) {
      const bool adds = take("+");
      if (!adds && !take("-")) break;
      const Value right = product();
      std::int64_t result = 0;
      if (!right || (adds ? __builtin_add_overflow(*left, *right, &result)
                          : __builtin_sub_overflow(*left, *right, &result))) {
        return std::nullopt;
      }
      left = result;
    }
    return left;
  }

  Value product() {
    Value left = term();
    while (left) {
      const bool divides = take("//");
      const bool rests = !divides && take("%");
      if (!divides && !rests && (text_.starts_with("**") || !take("*"))) break;
      const Value right = term();
      if (!right) return std::nullopt;
      if (divides || rests) {
        // Python rounds down, which is the same for sizes.
        if (*right <= 0 || *left < 0) return std::nullopt;
        left = divides ? *left / *right : *left % *right;
        continue;
      }
      std::int64_t result = 0;
      if (__builtin_mul_overflow(*left, *right, &result)) return std::nullopt;
      left = result;
    }
    return left;
  }

  Value term() {
    // Guards of torch.export nest a few levels.
    constexpr int kMostDepth = 64;
    if (take("(")) {
      if (++depth_ > kMostDepth) return std::nullopt;
      const Value inner = sum();
      --depth_;
      return take(")") ? inner : std::nullopt;
    }
    if (take("L['")) {
      const std::string_view input = text_.substr(0, text_.find('\''));
      text_.remove_prefix(input.size());
      if (!take("']") || !take(".size()[")) return std::nullopt;
      const Value dim = integer();
      if (!dim || *dim < 0 || !take("]")) return std::nullopt;
      return size_(input, static_cast<std::size_t>(*dim));
    }
    return integer();
  }

  Value integer() {
    blanks();
    std::size_t end = text_.starts_with('-') ? 1 : 0;
    while (end < text_.size() && text_[end] >= '0' && text_[end] <= '9') ++end;
    const Value value = parse_int(text_.substr(0, end));
    text_.remove_prefix(end);
    return value;
  }

  std::string_view text_;
  const SizeOfInput& size_;
  int depth_ = 0;
};

}  // namespace

std::optional<bool> holds(std::string_view srepr,
                          const SymExpr::Bindings& bindings) {
  for (const Relation& relation : kRelations) {
    if (!srepr.starts_with(relation.name) ||
        srepr.substr(relation.name.size(), 1) != "(" || srepr.back() != ')') {
      continue;
    }
    srepr.remove_prefix(relation.name.size() + 1);
    srepr.remove_suffix(1);
    const std::size_t comma = comma_between(srepr);
    if (comma == std::string_view::npos) return std::nullopt;
    std::string_view second = srepr.substr(comma + 1);
    second.remove_prefix(
        std::min(second.find_first_not_of(' '), second.size()));
    const auto left = SymExpr::parse(srepr.substr(0, comma));
    const auto right = SymExpr::parse(second);
    if (!left || !right) return std::nullopt;
    const auto a = left->evaluate(bindings);
    const auto b = right->evaluate(bindings);
    if (!a || !b) return std::nullopt;
    return relation.compare(*a, *b);
  }
  return std::nullopt;
}

std::optional<bool> guard_holds(std::string_view python,
                                const SizeOfInput& size) {
  return GuardReader(python, size).run();
}

}  // namespace shardprop::pt2
