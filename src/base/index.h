// index(): a signed number or an enumerator as a place in a container.
//
//   sizes[index(dim)]
//
// The number is at least 0: whoever counts from the end wraps it first
// (wrap_dim.h).
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>

namespace shardprop {

template <class T>
  requires std::integral<T> || std::is_enum_v<T>
constexpr std::size_t index(T at) {
  return static_cast<std::size_t>(at);
}

}  // namespace shardprop
