// The language in which rows say what an operator computes.
#include "ops/program/program_text.h"

#include "ops/applied_op.h"

#include <shardprop/ops/rule_text.h>

#include <string>
#include <thread>
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

TEST_CASE("a program prints in one line, which parses back") {
  for (const char* text :
       {"return x", "e = exp(x); return e / sum(e, [dim], True)",
        "v, i = topk(self, k); return v, i",
        "y = x * w if not flag; z = x if flag; return (x + y) * -2 - (z - 1)",
        "return a - b - c, a < (b < c), a + b * c >= inf, [1, 2.5, None]",
        "return f(a, dim=[], keepdim=False)",
        "return where(x == 0, x, y=x == 1)", "return 0.00000001 | x == 3.0"}) {
    CAPTURE(text);
    const ProgramText program = value_of(parse_program(text));
    CHECK(to_string(program) == text);
  }
  CHECK(to_string(value_of(parse_program("\n x=1\n\n return ((x)+(2*3)) ;"))) ==
        "x = 1; return x + 2 * 3");
}

TEST_CASE("an error of a program names the column") {
  struct Wrong {
    const char* text;
    int column;
    const char* message;
  };
  for (const Wrong& wrong : {
           Wrong{"", 1, "the program has no `return`"},
           {"x = 1;", 7, "the program has no `return`"},
           {"return f(", 10, "expected a value, found the end"},
           {"x = 1; return [1", 17, "expected `,` or `]`, found the end"},
           {"x 1; return x", 1,
            "expected an assignment, such as x = exp(self), or `return`, found "
            "`x`"},
           {"return x y", 10, "expected `,` or the end of the line, found `y`"},
           {"return 1; x = 2", 11, "the program goes on after `return`"},
           {"return (x", 10, "expected an operator or `)`, found the end"},
           {"return f(x y)", 12, "expected `,` or `)`, found `y`"},
           {"return 1.2.3", 8, "`1.2.3` is no number"},
           {"x = 2 if ; return x", 10, "expected a name, found the end"},
           {"x = 2 3; return x", 7,
            "expected an operator, `if` or the end of the line, found `3`"},
           {"return x +", 11, "expected a value, found the end"},
       }) {
    CAPTURE(wrong.text);
    const auto program = parse_program(wrong.text);
    REQUIRE_FALSE(program);
    CHECK(program.error().code == ErrorCode::kProgramSyntax);
    CHECK(program.error().message == wrong.message);
    CHECK(program.error().location == "column " + std::to_string(wrong.column));
    CHECK_FALSE(program.error().help.empty());
  }
  std::string sum = "return x";
  for (int i = 0; i < 4000; ++i) sum += " + x";
  CHECK_CODE(parse_program(sum), ErrorCode::kProgramSyntax);
}

TEST_CASE("a program with a wrong call of a function is an error") {
  const auto message = [](const char* program) {
    const auto library = testing::standard_library().with(
        {.name = "aten.erf.default",
         .definition =
             value_of(parse_definition("mapped(...[k]->...[k]).decomposed(\"" +
                                       std::string(program) + "\")"))});
    // Some errors are found without a call.
    if (!library) {
      CHECK(library.error().code == ErrorCode::kProgramSyntax);
      CHECK_FALSE(library.error().help.empty());
      return library.error().message;
    }
    const auto space =
        (*library)->index_space(applied("aten.erf.default", {"f32[4,6]"}));
    if (space) return std::string();
    CHECK(space.error().code == ErrorCode::kProgram);
    CHECK_FALSE(space.error().help.empty());
    return space.error().message;
  };
  const auto has = [&](const char* program, const char* part) {
    const std::string found = message(program);
    CAPTURE(program);
    CAPTURE(found);
    CHECK(found.find(part) != std::string::npos);
  };
  CHECK(message("return cos(self)").empty());
  has("return self + size(self)", "size() takes 2 values, not 1");
  has("return self + size(self, 0, 1)", "size() takes 2 values, not 3");
  has("return self + size(self, dim=1)", "size() takes 2 values, not 1");
  has("return self + numel(self, dim=1)", "numel() has no argument `dim`");
  has("return self + rank(out, 1)", "rank() takes 1 value, not 2");
  has("return cast(self, dtype(out, -1))", "a result has no negative number");
  has("return self + element([1, 2], -1)", "a list has no negative index");
  has("return trailing(self, 1000000)", "too many dims");
  has("x = exp(self); return result(x, 4)", "a step has fewer results");
  has("x = exp(self); return result(x, -1)", "a step has fewer results");
  has("return all_reduce_sum(self)", "all_reduce_sum() depends on the rank");
  has("return if_cut(self, 0, self, self)", "if_cut() depends on the rank");
  has("return other + 1", "or an earlier result, found `other`");
  has("return sum(self)", "shape");
}

TEST_CASE("an error of a step says how to call the operator") {
  const auto help = [](const char* program) {
    const auto library = testing::standard_library().with(
        {.name = "aten.erf.default",
         .definition =
             value_of(parse_definition("mapped(...[k]->...[k]).decomposed(\"" +
                                       std::string(program) + "\")"))});
    if (!library) {
      CHECK(library.error().code == ErrorCode::kProgramSyntax);
      return library.error().help;
    }
    const auto space =
        (*library)->index_space(applied("aten.erf.default", {"f32[4,6]"}));
    REQUIRE_FALSE(space.has_value());
    CHECK(space.error().code == ErrorCode::kProgram);
    return space.error().help;
  };
  CHECK(help("return soft_max(self, 1)").find("softmax") != std::string::npos);
  CHECK(help("return cos(self, 1)") ==
        "it is declared as aten::cos(Tensor self) -> Tensor");
  CHECK(help("return cos(self, dim=1)").starts_with("it is declared as"));
  CHECK(help("return softmax(self, [1])")
            .starts_with("it is declared as aten::softmax"));
  CHECK(
      help("return mm(self, self)").starts_with("it is declared as aten::mm"));
  CHECK(help("return sum(self, 7)").starts_with("it is declared as aten::sum"));
}

TEST_CASE("a program does not call its own operator") {
  const auto with = [](const char* op, const char* program) {
    return testing::standard_library().with(
        {.name = op,
         .definition = value_of(
             parse_definition("mapped(...[k]->...[k]).decomposed(\"return " +
                              std::string(program) + "\")"))});
  };
  CHECK_CODE(with("aten.exp", "exp(self)"), ErrorCode::kProgram);
  CHECK_CODE(with("aten.exp.default", "cos(exp(self) + 1)"),
             ErrorCode::kProgram);
  CHECK_CODE(with("aten.exp", "itself()"), ErrorCode::kProgram);
  CHECK_CODE(with("aten.mul.Tensor", "self * self"), ErrorCode::kProgram);
  // The program of softmax calls exp.
  CHECK_CODE(with("aten.exp", "_softmax(self, 0, False)"), ErrorCode::kProgram);
  CHECK(with("aten.exp", "cos(self)").has_value());
}

TEST_CASE("programs that double at each level are an error") {
  const char* const ops[] = {"exp",  "sin",  "cos",   "tanh", "erf", "exp2",
                             "log",  "log2", "log10", "sqrt", "tan", "atan",
                             "asin", "acos", "sinh",  "cosh"};
  auto library = testing::standard_library().with(
      {.name = "aten.asinh",
       .definition = value_of(
           parse_definition("[k]->[k].decomposed(\"return neg(self)\")"))});
  REQUIRE(library);
  const char* called = "asinh";
  for (const char* op : ops) {
    const std::string rule = "[k]->[k].decomposed(\"return " +
                             std::string(called) + "(self) + " + called +
                             "(self)\")";
    library =
        (*library)->with({.name = "aten." + std::string(op),
                          .definition = value_of(parse_definition(rule))});
    REQUIRE(library);
    called = op;
  }
  const auto of = [&](const char* op) {
    return (*library)->index_space(applied(op, {"f32[4]"}));
  };
  CHECK(of("aten.erf.default").has_value());
  CHECK_CODE(of("aten.cosh.default"), ErrorCode::kProgram);
}

TEST_CASE(
    "a program that leads back to itself through a function is an error") {
  const auto message = [](const char* op, const char* rule,
                          const OpSchema& call) {
    const auto library = value_of(testing::standard_library().with(
        {.name = op, .definition = value_of(parse_definition(rule))}));
    const auto space = library->index_space(call);
    REQUIRE_FALSE(space);
    CHECK(space.error().code == ErrorCode::kProgram);
    CHECK_FALSE(space.error().help.empty());
    return space.error().message;
  };
  CHECK(message("aten.maximum.default",
                "[k],[k]->[k].decomposed(\"return whole(self)\")",
                applied("aten.maximum.default", {"f32[4]", "f32[4]"})) ==
        "the program of `aten.maximum.default` calls programs that nest deeper "
        "than 64: one of them leads back to itself");
  CHECK(message("aten._to_copy.default",
                "[k]->[k].typed(given(dtype,first)).decomposed("
                "\"return cast(self, dtype(out))\")",
                applied("aten._to_copy.default", {"f32[4]"},
                        {{"dtype", Argument(DType::kF64)}}))
            .find("deeper than 64") != std::string::npos);
  // The limit does not count programs that have ended.
  for (int i = 0; i < 100; ++i) {
    CHECK(testing::standard_library()
              .index_space(applied("aten._softmax.default", {"f32[4,6]"},
                                   {{"dim", Argument(std::int64_t{1})},
                                    {"half_to_float", Argument(false)}}))
              .has_value());
  }
}

TEST_CASE("the quotient of numbers is rounded down or up") {
  const auto space_of = [](const std::string& value) {
    const auto library = value_of(testing::standard_library().with(
        {.name = "aten.erf.default",
         .definition = value_of(parse_definition(
             "[k]->[k].decomposed(\"return self + " + value + "\")"))}));
    return library->index_space(applied("aten.erf.default", {"f32[7]"}));
  };
  const auto number = [&](const std::string& value) {
    CAPTURE(value);
    const IndexSpace space = value_of(space_of(value));
    REQUIRE(space.program != nullptr);
    for (const auto& [name, added] : space.program->steps.at(0).op.args) {
      if (name == "other") {
        return std::get<std::int64_t>(std::get<Argument>(added));
      }
    }
    FAIL("the sum has no second term");
    return std::int64_t{-1};
  };
  CHECK(number("quotient(7, 2)") == 3);
  CHECK(number("quotient(8, 2)") == 4);
  CHECK(number("quotient_up(7, 2)") == 4);
  CHECK(number("quotient_up(8, 2)") == 4);
  CHECK(number("quotient_up(0, 2)") == 0);
  CHECK(number("quotient_up(size(self, 0), 3)") == 3);
  CHECK(number("quotient(7, 9223372036854775807)") == 0);
  CHECK(number("quotient_up(7, 9223372036854775807)") == 1);
  CHECK(number("quotient_up(9223372036854775807, 2)") == 4611686018427387904);
  for (const char* wrong : {"quotient(-3, 2)", "quotient_up(-3, 2)"}) {
    const auto space = space_of(wrong);
    CHECK_CODE(space, ErrorCode::kProgram);
    CHECK(space.error().message.find(
              "quotient() divides a number that is less than 0") !=
          std::string::npos);
  }
  CHECK_CODE(space_of("quotient(3, 0)"), ErrorCode::kProgram);
}

TEST_CASE("nonempty() keeps a bound that is larger") {
  const auto two = [](const OpCall&, IndexSpace& space) {
    for (Factor& factor : space.factors) factor.least = 2;
  };
  const auto library = value_of(testing::standard_library().with(
      {.name = "aten.erf.default",
       .definition = value_of(parse_definition("k->k"))
                         .refine("two()", two)
                         .nonempty("k")}));
  const IndexSpace space =
      value_of(library->index_space(applied("aten.erf.default", {"f32[7]"})));
  CHECK(space.factors.at(0).least == 2);
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

TEST_CASE("every program of the library parses") {
  int programs = 0;
  for (const OpRow* row : testing::standard_library().rows()) {
    CAPTURE(row->name);
    CHECK(row->definition.check_program().has_value());
    CHECK(row->definition.has_program() ==
          (row->definition.program() != nullptr));
    programs += row->definition.has_program() ? 1 : 0;
  }
  CHECK(programs > 150);
}

TEST_CASE("a library refuses a row with a wrong program") {
  // The text of a definition has all of its programs, also the replaced ones.
  for (OpDefinition row :
       {pointwise().per_rank("return exp("),
        pointwise().decomposed("return exp("),
        pointwise().decomposed("return exp(").per_rank("return exp(self)"),
        pointwise().per_rank("return cos(self)").decomposed("return exp(")}) {
    const auto made = testing::standard_library().with(
        {.name = "aten.exp.default", .definition = std::move(row)});
    REQUIRE_FALSE(made);
    CHECK(made.error().code == ErrorCode::kProgramSyntax);
    CHECK(made.error().location ==
          "the program of `aten.exp.default`: column 12");
  }
}

TEST_CASE("several threads may use a program for the first time at once") {
  const OpDefinition row = pointwise().decomposed("e = exp(self); return e");
  std::vector<const ProgramText*> seen(8);
  std::vector<std::thread> threads;
  for (const ProgramText*& one : seen) {
    threads.emplace_back([&row, &one] { one = row.program(); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const ProgramText* one : seen) {
    REQUIRE(one == row.program());
    CHECK(to_string(*one) == "e = exp(self); return e");
  }
  CHECK(row.text() == "pointwise().decomposed(\"e = exp(self); return e\")");
  CHECK(row.summary() == "pointwise().decomposed()");
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
