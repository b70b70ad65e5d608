// refused() returns the error of a call that must fail with a code.
#pragma once

#include "support/result_checks.h"

#include <utility>

namespace shardprop::testing {

template <class T>
Error refused(Result<T> result, ErrorCode code) {
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().code == code);
  return std::move(result).error();
}

}  // namespace shardprop::testing
