#include "io/json_text.h"

#include <doctest/doctest.h>

#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace shardprop {
namespace {

TEST_CASE("JSON is written as it comes") {
  JsonText json;
  json.open('{').member("name", "a").member("sizes", std::vector<int>{2, 4});
  json.member("none", std::optional<double>()).member("half", 0.5);
  json.member("one", 1.0).member("yes", true).member("void", nullptr);
  json.member("inside", [&] { json.open('[').close(']'); });
  json.key("least").number(std::numeric_limits<std::int64_t>::min());
  json.close('}');
  CHECK(json.take() ==
        R"({"name":"a","sizes":[2,4],"none":null,"half":0.5,"one":1.0,)"
        R"("yes":true,"void":null,"inside":[],"least":-9223372036854775808})");
}

TEST_CASE("indented, empty lists and objects stay on their line") {
  JsonText json(JsonText::Form::kIndented);
  json.open('{').key("empty").open('{').close('}').key("list").open('[');
  json.open('{').member("a", 1).member("b", 2).close('}').text("x").close(']');
  json.close('}');
  CHECK(json.take() ==
        "{\n \"empty\": {},\n \"list\": [\n  {\n   \"a\": 1,\n   \"b\": 2\n  },"
        "\n  \"x\"\n ]\n}");
}

TEST_CASE("text is escaped, and what is not UTF-8 replaced") {
  const auto written = [](std::string_view text) {
    return JsonText().text(text).take();
  };
  CHECK(written("q\" b\\ n\n t\t b\b f\f r\r") ==
        R"("q\" b\\ n\n t\t b\b f\f r\r")");
  CHECK(written(std::string_view("\x01\x0b\x1f\0", 4)) ==
        R"("\u0001\u000b\u001f\u0000")");
  CHECK(written("\x7f \xc3\xa9 \xf0\x9f\x98\x80") ==
        "\"\x7f \xc3\xa9 \xf0\x9f\x98\x80\"");
  CHECK(written("a\xff"
                "b\xc3") ==
        "\"a\xef\xbf\xbd"
        "b\xef\xbf\xbd\"");
}

TEST_CASE("numbers read back as they were, none of them as an integer") {
  const auto written = [](double value) {
    return JsonText().real(value).take();
  };
  for (const double value : {0.1, 1e-300, -2.0, 1e15, 1e16, 123456789.0625}) {
    CHECK(std::stod(written(value)) == value);
    CHECK(written(value).find_first_of(".e") != std::string::npos);
  }
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  CHECK(written(kInfinite) == "\"Infinity\"");
  CHECK(written(-kInfinite) == "\"-Infinity\"");
  CHECK(written(std::numeric_limits<double>::quiet_NaN()) == "\"NaN\"");
}

}  // namespace
}  // namespace shardprop
