#include "base/parse_number.h"

#include <doctest/doctest.h>

namespace shardprop {
namespace {

TEST_CASE("full texts that are finite numbers") {
  CHECK(parse_number("0.5") == 0.5);
  CHECK(parse_number("-1e3") == -1000);
  for (const char* text :
       {"", " 1", "1 ", "1x", "nan", "inf", "1e999", "0x1"}) {
    CAPTURE(text);
    CHECK(!parse_number(text));
  }
}

TEST_CASE("numbers print as the shortest text that reads back") {
  CHECK(number_text(0.1) == "0.1");
  CHECK(number_text(1e12) == "1e+12");
  CHECK(number_text(60) == "60");
}

TEST_CASE("amounts of bytes") {
  CHECK(parse_bytes("1000") == 1000);
  CHECK(parse_bytes("1.5KiB") == 1536);
  CHECK(parse_bytes("80GiB") == std::int64_t{80} << 30);
  CHECK(parse_bytes("2TB") == 2'000'000'000'000);
  CHECK(parse_bytes("7B") == 7);
  for (const char* text : {"", "GiB", "-1", "1gib", "1 GiB", "nan", "1e30",
                           "9000000TiB", "80GiBs"}) {
    CAPTURE(text);
    CHECK(!parse_bytes(text));
  }
}

}  // namespace
}  // namespace shardprop
