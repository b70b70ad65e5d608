#include "base/parse_int.h"

#include <doctest/doctest.h>

#include <cstdint>

namespace shardprop {
namespace {

TEST_CASE("a full text is an integer or nothing") {
  CHECK(parse_int("0") == 0);
  CHECK(parse_int("-12") == -12);
  CHECK(parse_int("9223372036854775807") == INT64_MAX);
  CHECK(parse_int("-9223372036854775808") == INT64_MIN);
  for (const char* text : {"", " 1", "1 ", "+1", "1.0", "0x1", "--1", "-",
                           "9223372036854775808", "1e3", "١"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_int(text).has_value());
  }
}

}  // namespace
}  // namespace shardprop
