#include <doctest/doctest.h>
#include <shardprop/graph/sym_expr.h>

#include <limits>
#include <string>

using namespace shardprop;  // NOLINT(google-build-using-namespace)

namespace {

std::string printed(const char* srepr) {
  const auto expression = SymExpr::parse(srepr);
  REQUIRE_MESSAGE(expression, srepr);
  return to_string(*expression);
}

std::optional<std::int64_t> value(const char* srepr) {
  const auto expression = SymExpr::parse(srepr);
  REQUIRE_MESSAGE(expression, srepr);
  return expression->evaluate({{"s0", 7}, {"s1", -2}});
}

constexpr const char* kS0 = "Symbol('s0', positive=True, integer=True)";

}  // namespace

TEST_CASE("srepr is read and printed as people write it") {
  CHECK(printed(kS0) == "s0");
  CHECK(printed("s0") == "s0");
  CHECK(printed("Integer(-3)") == "-3");
  CHECK(printed("Mul(Integer(6), Symbol('s77', integer=True))") == "6*s77");
  CHECK(printed("Add(Mul(Integer(2), Symbol('s0')), Integer(1))") ==
        "2*s0 + 1");
  CHECK(printed("Mul(Integer(2), Add(Symbol('s0'), Integer(1)))") ==
        "2*(s0 + 1)");
  CHECK(printed("FloorDiv(Add(Symbol('s0'), Integer(1)), Integer(2))") ==
        "(s0 + 1)//2");
  CHECK(printed("FloorDiv(Integer(8), FloorDiv(Symbol('s0'), Integer(2)))") ==
        "8//(s0//2)");
  CHECK(printed("Mod(Symbol('s0'), Integer(4))") == "s0 % 4");
  CHECK(printed("Pow(Add(Symbol('s0'), Integer(1)), Integer(2))") ==
        "(s0 + 1)**2");
  CHECK(printed("Max(Integer(1), Symbol('s0'))") == "max(1, s0)");
}

TEST_CASE("values follow Python's arithmetic") {
  CHECK(value("Add(Symbol('s0'), Mul(Integer(3), Symbol('s1')))") == 1);
  CHECK(value("FloorDiv(Symbol('s0'), Symbol('s1'))") == -4);
  CHECK(value("Mod(Symbol('s0'), Symbol('s1'))") == -1);
  CHECK(value("PythonMod(Symbol('s1'), Integer(5))") == 3);
  CHECK(value("Pow(Symbol('s1'), Integer(3))") == -8);
  CHECK(value("Pow(Integer(0), Integer(0))") == 1);
  CHECK(value("Min(Symbol('s0'), Symbol('s1'), Integer(3))") == -2);
  CHECK(value("Max(Symbol('s0'), Symbol('s1'), Integer(3))") == 7);
}

TEST_CASE("what has no value has none") {
  CHECK_FALSE(value("Symbol('unbound')"));
  CHECK_FALSE(value("FloorDiv(Symbol('s0'), Integer(0))"));
  CHECK_FALSE(value("Mod(Symbol('s0'), Integer(0))"));
  CHECK_FALSE(value("Pow(Integer(2), Integer(-1))"));
  CHECK_FALSE(value("Pow(Integer(10), Integer(60))"));
  CHECK_FALSE(value("Mul(Integer(9223372036854775807), Integer(2))"));
  CHECK_FALSE(value("Add(Integer(9223372036854775807), Integer(1))"));
  CHECK_FALSE(value("FloorDiv(Integer(-9223372036854775808), Integer(-1))"));
}

TEST_CASE("numbers that are no integers stay opaque") {
  const auto scaled = SymExpr::parse(
      "TruncToInt(Mul(Float('1.5', precision=53), ToFloat(Symbol('s25', "
      "positive=True, integer=True))))");
  REQUIRE(scaled);
  CHECK(scaled->is_opaque());
  CHECK(scaled->symbols() == std::vector<std::string>{"s25"});
  CHECK_FALSE(scaled->evaluate({{"s25", 4}}));
  for (const char* broken : {"Float('1.5", "Float('1.5' 2)", "F(a=)"}) {
    CHECK_FALSE(SymExpr::parse(broken));
  }
}

TEST_CASE("unknown functions stay opaque") {
  const auto opaque =
      SymExpr::parse("Add(Integer(1), ModularIndexing(Symbol('s0'), 2, 3))");
  REQUIRE(opaque);
  CHECK(opaque->is_opaque());
  CHECK_FALSE(opaque->evaluate({{"s0", 4}}));
  CHECK(to_string(*opaque) == "1 + ModularIndexing(Symbol('s0'), 2, 3)");
  CHECK(opaque->symbols() == std::vector<std::string>{"s0"});
}

TEST_CASE("symbols are named once, in order") {
  const auto sum =
      SymExpr::parse("Add(Symbol('s1'), Symbol('s0'), Symbol('s1'))");
  REQUIRE(sum);
  CHECK(sum->symbols() == std::vector<std::string>{"s0", "s1"});
  CHECK_FALSE(sum->as_constant());
  CHECK(SymExpr::parse("Mul(Integer(2), Integer(4))")->as_constant() == 8);
  CHECK(*SymExpr::parse(kS0) == SymExpr::symbol("s0"));
  CHECK(SymExpr::constant(3) == *SymExpr::parse("Integer(3)"));
  CHECK(SymExpr() == SymExpr::constant(0));
}

TEST_CASE("malformed sizes are errors with a column") {
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "Add(";
  const std::string long_text(5000, 'a');
  for (const std::string& text :
       {std::string(), std::string("Add("), std::string("Add(Integer(1)"),
        std::string("Add(Integer(1),)"), std::string("Integer(x)"),
        std::string("Integer(1) Integer(2)"), std::string("Symbol()"),
        std::string("Symbol('')"), std::string("Symbol('s0"),
        std::string("Symbol('s0', positive)"), std::string("(1)"), deep,
        long_text}) {
    CAPTURE(text);
    const auto expression = SymExpr::parse(text);
    REQUIRE_FALSE(expression);
    CHECK(expression.error().code == ErrorCode::kSymExprSyntax);
    CHECK(expression.error().location.starts_with("column"));
  }
}
