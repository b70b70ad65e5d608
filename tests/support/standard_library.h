// The standard operators, made once for all tests of a binary.
#pragma once

#include <shardprop/ops/op_library.h>

namespace shardprop::testing {

inline const OpLibrary& standard_library() {
  static const auto kLibrary = OpLibrary::standard();
  return *kLibrary;
}

}  // namespace shardprop::testing
