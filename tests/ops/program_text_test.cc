// The language in which rows say what an operator computes.
#include "ops/program_text.h"

#include "ops/applied_op.h"

#include <string>
#include <vector>

namespace shardprop {
namespace {

using testing::applied;
using testing::value_of;

TEST_CASE("a program is assignments and a return") {
  const ProgramText program = value_of(parse_program(R"(
x = exp(self - amax(self, [dim], True))
y = x * weight if weight
return x / sum(x, [0, -1], keepdim=True), y)"));
  REQUIRE(program.lines.size() == 2);
  CHECK(program.lines[0].names == std::vector<std::string>{"x"});
  CHECK(program.lines[1].condition == "weight");
  CHECK(program.results.size() == 2);
  const auto& quotient = std::get<BinaryExpression>(program.results[0]->node);
  CHECK(quotient.op == "/");
  const auto& sum = std::get<CallExpression>(quotient.right->node);
  CHECK(sum.function == "sum");
  CHECK(sum.named.at(0).first == "keepdim");
}

TEST_CASE("an assignment may be made where an argument is not so") {
  const ProgramText either =
      value_of(parse_program("x = exp(self) if not causal\nx = self if causal\n"
                             "return x"));
  CHECK(either.lines[0].condition == "causal");
  CHECK(either.lines[0].negated);
  CHECK_FALSE(either.lines[1].negated);
}

TEST_CASE("the results of an operator have a name each") {
  const ProgramText program =
      value_of(parse_program("v, i = topk(self, k)\nreturn v, i"));
  REQUIRE(program.lines.size() == 1);
  CHECK(program.lines[0].names == std::vector<std::string>{"v", "i"});
  CHECK_FALSE(parse_program("v, = topk(self, k)\nreturn v").has_value());
}

TEST_CASE("what is not a program is refused") {
  const std::string deep = "return " + std::string(100, '(') + "x";
  for (const char* text : {"", "x = 1", "return", "return f(", "return [1",
                           "x 1; return x", "return x y", "return 1; x = 2",
                           "return x +", "1 = x; return x", deep.c_str()}) {
    CAPTURE(text);
    CHECK_CODE(parse_program(text), ErrorCode::kProgramSyntax);
  }
}

TEST_CASE("a program that does not fit the call is an error") {
  const auto by_program = [](const OpCall&, IndexSpace& space) {
    space.factors[0].program = ProgramUse::kWhenSharded;
  };
  const auto library = value_of(testing::standard_library().with(
      {.name = "aten.exp.default",
       .definition = pointwise()
                         .refine("by_program()", by_program)
                         .decomposed("return no_such_operator(self)")}));
  CHECK_CODE(library->index_space(applied("aten.exp.default", {"f32[4]"})),
             ErrorCode::kProgram);
}

}  // namespace
}  // namespace shardprop
