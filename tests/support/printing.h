// Values of the library print in their own notation, in failed checks and in
// the inputs that rapidcheck shows.
#pragma once

#include <shardprop/base/inline_vector.h>

#include <concepts>
#include <ostream>
#include <string>
#include <type_traits>

namespace shardprop {

template <class T>
  requires(std::is_class_v<T> || std::is_enum_v<T>) &&
          requires(const T& value) {
            { to_string(value) } -> std::convertible_to<std::string>;
          }
std::ostream& operator<<(std::ostream& out, const T& value) {
  return out << to_string(value);
}

template <class T, std::size_t N>
std::ostream& operator<<(std::ostream& out, const InlineVector<T, N>& values) {
  out << '[';
  for (std::size_t i = 0; i < values.size(); ++i) {
    out << (i == 0 ? "" : ",") << +values[i];
  }
  return out << ']';
}

}  // namespace shardprop
