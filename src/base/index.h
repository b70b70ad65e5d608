// index() converts a signed number or an enumerator to an index of a container.
//
//   sizes[index(dim)]
//
// Precondition: the number is at least 0. A caller that counts from the end
// wraps the number first (wrap_dim.h).
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
