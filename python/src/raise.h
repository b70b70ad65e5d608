// value_of() turns results of the library into values or exceptions of Python.
//
//   return value_of(load_graph(path, library));   // or raises shardprop.Error
#pragma once

#include <shardprop/base/result.h>

#include <utility>

namespace shardprop::python {

// Raises shardprop.Error with the code, place, notes and help of `error`.
[[noreturn]] void raise(const Error& error);

template <class T>
T value_of(Result<T> result) {
  if (!result) raise(result.error());
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

}  // namespace shardprop::python
