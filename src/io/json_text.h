// `JsonText` writes JSON directly to a text, without a tree. If its text cannot
// grow, it throws std::bad_alloc; its destructor allocates no memory.
//
//   JsonText json;
//   json.open('{').member("name", mesh.name).member("sizes", mesh.sizes);
//   json.member("best", [&] { write_plan(json, best); }).close('}');
//   json.take();   // {"name":"a","sizes":[2,4],"best":{...}}
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace shardprop {

class JsonText {
 public:
  enum class Form : std::uint8_t {
    kCompact,
    kIndented,  // a member or element a line, one space a level
  };

  explicit JsonText(Form form = Form::kCompact)
      : indented_(form == Form::kIndented) {}

  JsonText& open(char bracket);
  JsonText& close(char bracket);
  JsonText& key(std::string_view name);
  // Bytes that are not UTF-8 become U+FFFD.
  JsonText& text(std::string_view value);
  JsonText& number(std::int64_t value) { return raw(std::to_string(value)); }
  // Writes the shortest text that reads back as the same number, with a
  // fraction or an exponent. Writes "Infinity", "-Infinity" and "NaN" as text.
  JsonText& real(double value);
  JsonText& boolean(bool value) { return raw(value ? "true" : "false"); }
  JsonText& null() { return raw("null"); }
  // Well-formed JSON.
  JsonText& raw(std::string_view json) {
    separate();
    out_ += json;
    return *this;
  }

  // `value` may be a number, a text, a bool, nullptr, an optional of these
  // (null if empty), a list of these, or a function that writes the value.
  template <class T>
  JsonText& value(const T& value);

  template <class T>
  JsonText& member(std::string_view name, const T& held) {
    return key(name).value(held);
  }
  template <class Range, class Each>
  JsonText& list(const Range& range, Each&& each) {
    open('[');
    for (const auto& element : range) each(element);
    return close(']');
  }

  std::string take() { return std::move(out_); }

 private:
  void separate();
  void new_line();
  void quote(std::string_view value);

  std::string out_;
  std::size_t depth_ = 0;
  bool indented_;
  bool first_ = true;       // of an object or list
  bool after_key_ = false;  // its value comes next
};

namespace detail {
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
}  // namespace detail

template <class T>
JsonText& JsonText::value(const T& held) {
  if constexpr (std::is_same_v<T, bool>) {
    return boolean(held);
  } else if constexpr (std::is_integral_v<T>) {
    return number(static_cast<std::int64_t>(held));
  } else if constexpr (std::is_floating_point_v<T>) {
    return real(held);
  } else if constexpr (std::is_null_pointer_v<T>) {
    return null();
  } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    return text(held);
  } else if constexpr (detail::is_optional<T>) {
    return held ? value(*held) : null();
  } else if constexpr (std::is_invocable_v<const T&>) {
    held();
    return *this;
  } else {
    return list(held, [&](const auto& element) { value(element); });
  }
}

}  // namespace shardprop
