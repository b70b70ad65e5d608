// Checks of Result<T>, and how values print in a failed check.
#pragma once

#include <doctest/doctest.h>
#include <shardprop/base/result.h>

#include <optional>
#include <ostream>
#include <string>
#include <utility>

namespace shardprop {

inline std::ostream& operator<<(std::ostream& out, ErrorCode code) {
  return out << code_string(code) << ' ' << code_name(code);
}

}  // namespace shardprop

namespace shardprop::testing {

// The value, or a failed test that prints the error.
template <class T>
T value_of(Result<T> result) {
  if (!result) FAIL(to_string(result.error()));
  return *std::move(result);
}

// The code of the error, or nothing when there is a value.
template <class T>
std::optional<ErrorCode> code_of(const Result<T>& result) {
  if (result) return std::nullopt;
  return result.error().code;
}

}  // namespace shardprop::testing

// The call must fail with this code, in one sentence without a full stop.
#define CHECK_CODE(expression, expected)                 \
  do {                                                   \
    const auto checked_result = (expression);            \
    REQUIRE_FALSE(checked_result.has_value());           \
    CHECK(checked_result.error().code == (expected));    \
    CHECK_FALSE(checked_result.error().message.empty()); \
    CHECK(checked_result.error().message.back() != '.'); \
  } while (false)
