#include "base/printable.h"

#include <shardprop/base/error.h>

#include <doctest/doctest.h>

namespace shardprop {
namespace {

TEST_CASE("text that is text stays as it is") {
  CHECK(printable("").empty());
  CHECK(printable("layers.0 `mm` S(0),R") == "layers.0 `mm` S(0),R");
  CHECK(printable("caf\xc3\xa9 \xe2\x86\x92 \xf0\x9f\x98\x80") ==
        "caf\xc3\xa9 \xe2\x86\x92 \xf0\x9f\x98\x80");
}

TEST_CASE("control characters are escaped") {
  CHECK(printable("\x1b[31mX\x07\nforged") == "\\x1b[31mX\\x07\\nforged");
  CHECK(printable("a\tb\rc\x7f") == "a\\tb\\x0dc\\x7f");
  CHECK(printable(std::string_view("a\0b", 3)) == "a\\x00b");
  // CSI in one character.
  CHECK(printable("\xc2\x9b"
                  "31m") ==
        "\\x9b"
        "31m");
  CHECK(printable("\xc2\xa0") == "\xc2\xa0");
}

TEST_CASE("characters that turn the direction of text are escaped") {
  CHECK(printable("a\u202eb\u2066c") == "a\\u202eb\\u2066c");
  CHECK(printable("\u2028\u200f\u061c") == "\\u2028\\u200f\\u061c");
  CHECK(printable("\u05d0\u200b\u2026") == "\u05d0\u200b\u2026");
}

TEST_CASE("bytes that are not UTF-8 are escaped") {
  CHECK(printable("\xff\xfe") == "\\xff\\xfe");
  CHECK(printable("a\xc3") == "a\\xc3");
  CHECK(printable("\xc0\x80") == "\\xc0\\x80");           // overlong
  CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");  // a surrogate
}

TEST_CASE("an error stays one error, whatever names it quotes") {
  const Error error{ErrorCode::kUnknownOperator,
                    "`x\nerror[SP9999]: forged` is not declared",
                    "$.nodes['\x1b[31m']",
                    {"a note\r"},
                    "help\b"};
  CHECK(to_string(error) ==
        "error[SP0508]: `x\\nerror[SP9999]: forged` is not declared\n"
        "  --> $.nodes['\\x1b[31m']\n"
        "   |  a note\\x0d\n"
        "   = help: help\\x08\n");
}

}  // namespace
}  // namespace shardprop
