// Tests that a rule names arguments, results, factors and functions that exist, and that
// an error is at the place of the wrong name.
#include "ops/names/name_checker.h"

#include "support/result_checks.h"
#include "support/standard_library.h"

#include <doctest/doctest.h>
#include <shardprop/ops/rule_text.h>

#include <memory>
#include <string>
#include <string_view>

namespace shardprop {
namespace {

using testing::value_of;

// The operators of the wrong rules.
constexpr const char* kBinary =
    "my::f(Tensor a, Tensor b, int dim=0, int[2] size=[1, 1], float scale=1.0, "
    "bool flag=False, str mode='x', ScalarType? dtype=None) -> Tensor";
constexpr const char* kTwo = "my::two(Tensor a) -> (Tensor, Tensor)";

Result<void> checked(const char* declaration, std::string_view rule) {
  const auto schema = std::make_shared<const FunctionSchema>(
      value_of(FunctionSchema::parse(declaration)));
  return check_rule(rule, {schema}, testing::standard_library());
}

struct WrongName {
  const char* declaration;
  const char* rule;
  const char* found;  // the text at the place of the error
  const char* message;
};

// Returns the column of the first `found` after the last `@`; removes the `@`.
void check_wrong(const WrongName& wrong) {
  std::string rule = wrong.rule;
  const std::size_t place = rule.find('@');
  REQUIRE(place != std::string::npos);
  rule.erase(place, 1);
  CAPTURE(rule);
  CHECK(rule.substr(place).starts_with(wrong.found));
  const auto made = checked(wrong.declaration, rule);
  REQUIRE_FALSE(made.has_value());
  CHECK(made.error().message == wrong.message);
  CHECK(made.error().location == "column " + std::to_string(place + 1));
  CHECK((made.error().code == ErrorCode::kInvalidArgument ||
         made.error().code == ErrorCode::kProgramSyntax));
  CHECK_FALSE(made.error().help.empty());
}

TEST_CASE(
    "a name that the operator does not declare is an error at its place") {
  for (
      const WrongName& wrong : {
          WrongName{
              kBinary, "pointwise().passes(@zz)", "zz",
              "expected a tensor argument of `my.f`: `a` or `b`, found `zz`"},
          {kBinary, "pointwise().passes(a,@c)", "c",
           "expected a tensor argument of `my.f`: `a` or `b`, found `c`"},
          {kBinary, "pointwise().ignores_values(@zz)", "zz",
           "expected a tensor argument of `my.f`: `a` or `b`, found `zz`"},
          {kBinary, "pointwise().selects(@zz)", "zz",
           "expected a tensor argument of `my.f`: `a` or `b`, found `zz`"},
          {kBinary, "pointwise().positive(@zz)", "zz",
           "expected a tensor argument of `my.f`: `a` or `b`, found `zz`"},
          {kBinary, "pointwise().nonzero(@zz)", "zz",
           "expected an argument of `my.f` that is a tensor or a number: `a`, "
           "`b`, `dim`, `scale` or `flag`, found `zz`"},
          {kBinary, "pointwise().linear_in(@z)", "z",
           "expected a tensor argument of `my.f`: `a` or `b`, found `z`"},
          {kBinary, "pointwise().linear_in(@dim)", "dim",
           "expected a tensor argument of `my.f`: `a` or `b`, found `dim`, "
           "which is `int dim`"},
          {kBinary, "pointwise().writes_into(@out)", "out",
           "expected a tensor argument of `my.f`: `a` or `b`, found `out`"},
          {kBinary, "pointwise().of(@c)", "c",
           "expected a tensor argument of `my.f`: `a` or `b`, found `c`"},
          {kBinary, "pointwise().like(@zz)", "zz",
           "expected a tensor argument of `my.f`: `a` or `b`, found `zz`"},
          {kBinary, "pointwise().elementwise(a,@bb)", "bb",
           "expected a tensor argument of `my.f`: `a` or `b`, found `bb`"},
          {kBinary, "pointwise().typed(@f33)", "f33",
           "expected a dtype such as f32, or a tensor argument of `my.f`: `a` "
           "or `b`, found `f33`"},
          {kBinary, "pointwise().typed(given(@type,first))", "type",
           "expected a ScalarType argument of `my.f`: `dtype`, found `type`"},
          {kBinary, "pointwise().typed(given(@flag,first))", "flag",
           "expected a ScalarType argument of `my.f`: `dtype`, found `flag`, "
           "which is `bool flag`"},
          {kBinary, "pointwise().typed(if(@flags,a,b))", "flags",
           "expected a bool argument of `my.f`: `flag`, found `flags`"},
          {kBinary, "pointwise().typed(alike(a, @c))", "c",
           "expected a dtype such as f32, or a tensor argument of `my.f`: `a` "
           "or `b`, found `c`"},
          {kBinary, "pointwise().typed(first,@i64)", "i64",
           "expected at most 1 result, because `my.f` declares 1 result, found "
           "2"},
          {kBinary, "pointwise().below(@zz,dim)", "zz",
           "expected a tensor argument of `my.f`: `a` or `b`, found `zz`"},
          {kBinary, "pointwise().below(a,@dim)", "dim",
           "`dim` reads the argument `self`, which `my.f` does not declare"},
          {kBinary, "pointwise().below(a,@rows)", "rows",
           "`rows` reads the argument `weight`, which `my.f` does not declare"},
          {kBinary, "pointwise().below(a,@limit)", "limit",
           "expected an integer argument of `my.f`: `dim`, found `limit`"},
          {kBinary, "same_shape().blocked(@dims)", "dims",
           "expected an argument of `my.f` that is an integer or a list of "
           "integers: `dim` or `size`, found `dims`"},
          {kBinary, "pointwise().scales(@beta,alpha)", "beta",
           "expected an argument of `my.f` that is a number: `dim`, `scale` or "
           "`flag`, found `beta`"},
          {kBinary, "pointwise().given_one(a,@c)", "c",
           "expected an argument of `my.f`: `a`, `b`, `dim`, `size`, `scale`, "
           "`flag`, `mode` or `dtype`, found `c`"},
          {kBinary, "pointwise().one_of(@moed,a)", "moed",
           "expected a str argument of `my.f`: `mode`, found `moed`"},
          {kTwo, "pointwise(2).one_of(@mode,a)", "mode",
           "expected a str argument of `my.two`, which has none, found `mode`"},
          {kBinary, "pointwise().linalg_work(@n)", "n",
           "expected an integer argument of `my.f`: `dim`, found `n`"},
          {kBinary, "pointwise().local_shape(@sise)", "sise",
           "expected an argument of `my.f` that is a list of integers: `size`, "
           "found `sise`"},
          {kBinary, "pointwise().local_shape(size,@1)", "1",
           "expected at most 1 result, because `my.f` declares 1 result, found "
           "2"},
          {kBinary, "pointwise().local_size(@channels,1)", "channels",
           "expected an integer argument of `my.f`: `dim`, found `channels`"},
          {kBinary, "along(@dims)", "dims",
           "expected an integer argument of `my.f`: `dim`, found `dims`"},
          {kBinary, "along(@size)", "size",
           "expected an integer argument of `my.f`: `dim`, found `size`, which "
           "is `int[2] size`"},
          {kBinary, "scanned(@axis)", "axis",
           "expected an integer argument of `my.f`: `dim`, found `axis`"},
          {kBinary, "mn,mn->{x:@sise[0]}{y:2}", "sise",
           "expected an argument of `my.f` that is a list of integers: `size`, "
           "found `sise`"},
          {kBinary, "mn,mn->{x:@size}", "size",
           "expected an integer argument of `my.f`: `dim`, found `size`, which "
           "is `int[2] size`"},
          {kBinary, "if @flags: mn,mn->mn | mn,mn->m", "flags",
           "expected an argument of `my.f` that is a bool or optional: `flag` "
           "or `dtype`, found `flags`"},
          {kBinary, "if flag and not @left: mn,mn->mn | mn,mn->m", "left",
           "expected an argument of `my.f` that is a bool or optional: `flag` "
           "or `dtype`, found `left`"},
          {kBinary, "if @dim: mn,mn->mn | mn,mn->m", "dim",
           "expected an argument of `my.f` that is a bool or optional: `flag` "
           "or `dtype`, found `dim`, which is `int dim`"},
          {kBinary, "if not @a: mn,mn->mn | mn,mn->m", "a",
           "expected an argument of `my.f` that is a bool or optional: `flag` "
           "or `dtype`, found `a`, which is `Tensor a`"},
          {kBinary, "if @size is 3: mn,mn->mn | mn,mn->m", "size",
           "expected an argument of `my.f` that is a str or an integer: `dim` "
           "or `mode`, found `size`, which is `int[2] size`"},
          {kBinary, "if @scale is 1: mn,mn->mn | mn,mn->m", "scale",
           "expected an argument of `my.f` that is a str or an integer: `dim` "
           "or `mode`, found `scale`, which is `float scale`"},
          {kBinary, "if @a is 1: mn,mn->mn | mn,mn->m", "a",
           "expected an argument of `my.f` that is a str or an integer: `dim` "
           "or `mode`, found `a`, which is `Tensor a`"},
          {kBinary, "if mode is @3: mn,mn->mn | mn,mn->m", "3",
           "expected a word, because `my.f` declares `str mode`, found `3`"},
          {kBinary, "if not dim is @r: mn,mn->mn | mn,mn->m", "r",
           "expected an integer, because `my.f` declares `int dim`, found `r`"},
          {kBinary, "mn,mn->{x:size[0]}{y:size[@2]}", "2",
           "expected the index of an element below 2, because `my.f` declares "
           "`int[2] size`, found `2`"},
      }) {
    check_wrong(wrong);
  }
}

TEST_CASE("a factor that no operand has is an error at its place") {
  for (const WrongName& wrong : {
           WrongName{
               kBinary, "mk,kn->mn.nonempty(@q)", "q",
               "expected a factor of an operand: `m`, `k` or `n`, found `q`"},
           {kBinary, "m{k},{k}n->mn.nonempty(@k)", "k",
            "expected a factor of an operand that may be sharded, found `k`, "
            "which is full"},
           {kBinary, "mk,kn->mn.same_without(@q)", "q",
            "expected a factor of an operand: `m`, `k` or `n`, found `q`"},
           {kBinary, "mk,kn->mn.same_without(@m)", "m",
            "expected a factor that a result lacks, found `m`, which every "
            "result has"},
           {kBinary, "pointwise().nonempty(@a)", "a",
            "expected no letter, because the form `pointwise` names no factor, "
            "found `a`"},
       }) {
    check_wrong(wrong);
  }
}

TEST_CASE("another number of operands or results is an error at its place") {
  for (const WrongName& wrong : {
           WrongName{
               kBinary, "pointwise(@2)", "2",
               "expected 1 result, because `my.f` declares 1 result, found 2"},
           {kTwo, "@pointwise()", "pointwise",
            "expected 2 results, because `my.two` declares 2 results, found 1"},
           {kTwo, "reduction(sum,@3)", "3",
            "expected 2 results, because `my.two` declares 2 results, found 3"},
           {kBinary, "mk,kn,@n->mn", "n",
            "expected 2 terms of operands, because `my.f` declares 2 tensor "
            "arguments, found 3"},
           {kBinary, "mk@->m", "->",
            "expected 2 terms of operands, because `my.f` declares 2 tensor "
            "arguments, found 1"},
           {kBinary, "mk,kn->mn,@m", "m",
            "expected 1 term of results, because `my.f` declares 1 result, "
            "found 2"},
           {kTwo, "mk->@m", "m",
            "expected 2 terms of results, because `my.two` declares 2 results, "
            "found 1"},
           {kTwo, "pointwise(2).like(a,a,@a)", "a",
            "expected at most 2 results, because `my.two` declares 2 results, "
            "found 3"},
           {kTwo, "pointwise(2).additive(+,@-)", "-",
            "expected at most 1 sign, because `my.two` declares 1 tensor "
            "argument, found 2"},
       }) {
    check_wrong(wrong);
  }
}

TEST_CASE("a word that the operator lacks the arguments of is an error at it") {
  for (const WrongName& wrong : {
           WrongName{
               kBinary, "@gather(dim)", "gather(dim)",
               "`gather(dim)` needs the argument `Tensor self`, as in "
               "`aten.gather.default`, which `my.f.default` does not declare"},
       }) {
    check_wrong(wrong);
  }
}

TEST_CASE("a wrong name in a program is an error at its place") {
  for (const WrongName& wrong : {
           WrongName{kBinary, "pointwise().decomposed(\"return @c + 1\")", "c",
                     "expected an argument of `my.f` (`a`, `b`, `dim`, `size`, "
                     "`scale`, `flag`, `mode` or `dtype`) or an earlier "
                     "result, found `c`"},
           {kTwo, "pointwise(2).decomposed(\"e = exp(a); return e, @f\")", "f",
            "expected an argument of `my.two` (`a`) or an earlier result "
            "(`e`), found `f`"},
           {kTwo,
            "pointwise(2).decomposed(\"e = exp(@f); f = e; return e, f\")", "f",
            "expected an argument of `my.two` (`a`) or an earlier result, "
            "found `f`"},
           {kTwo, "pointwise(2).decomposed(\"e = exp(a) if @x; return a, e\")",
            "x",
            "expected an argument of `my.two` (`a`) or an earlier result, "
            "found `x`"},
           {kTwo, "pointwise(2).decomposed(\"return a, sum([a, @x], [0])\")",
            "x",
            "expected an argument of `my.two` (`a`) or an earlier result, "
            "found `x`"},
           {kTwo, "pointwise(2).decomposed(\"return a, @soft_max(a, 0)\")",
            "soft_max",
            "expected a function of programs or an operator of PyTorch, found "
            "`soft_max`"},
           {kTwo, "pointwise(2).decomposed(\"return a, sum(a, @dims=[0])\")",
            "dims", "sum() has no argument `dims`"},
           {kTwo, "pointwise(2).decomposed(\"return a, @exp(a, 0, 1)\")", "exp",
            "exp() takes at most 1 value, not 3"},
           {kTwo, "pointwise(2).decomposed(\"return a, a + @size(a)\")", "size",
            "size() takes 2 values, not 1"},
           {kTwo, "pointwise(2).decomposed(\"return a, a + numel(a, @d=1)\")",
            "d", "numel() has no argument `d`"},
           {kTwo, "pointwise(2).per_rank(\"return itself(@b=a)\")", "b",
            "itself() has no argument `b`"},
           {kTwo, "pointwise(2).decomposed(\"return a, @all_reduce_sum(a)\")",
            "all_reduce_sum", "all_reduce_sum() depends on the rank"},
           {kTwo, "pointwise(2).decomposed(\"return a, @exp()\")", "exp",
            "exp() lacks the argument `self`"},
           {kTwo,
            "pointwise(2).decomposed(\"return a, sum(a, dim=[0], @dim=[1])\")",
            "dim", "sum() has the argument `dim` twice"},
           {kTwo, "pointwise(2).decomposed(\"return a, exp(a, @self=a)\")",
            "self", "exp() has `self` as value 1 already"},
           {kTwo, "pointwise(2).decomposed(\"return a, a + @mul(a)\")", "mul",
            "mul() lacks the argument `other`"},
           {kTwo, "pointwise(2).decomposed(\"return a, @amax()\")", "amax",
            "amax() lacks the argument `self`"},
           {kTwo, "pointwise(2).decomposed(\"return a, @softmax(a)\")",
            "softmax", "softmax() lacks the argument `dim`"},
           {kTwo, "pointwise(2).decomposed(\"return @gather(a, 0), a\")",
            "gather", "gather() lacks the argument `index`"},
           {kTwo, "pointwise(2).per_rank(\"return itself(a=a, @a=a)\")", "a",
            "itself() has the argument `a` twice"},
           {kTwo, "pointwise(2).decomposed(\"@return a, a, a\")", "return",
            "expected 2 results as `my.two` declares, found 3"},
           {kTwo, "pointwise(2).decomposed(\"return a, exp(@out)\")", "out",
            "expected a value, found `out`, which has none before the program "
            "ends"},
           {kTwo, "pointwise(2).decomposed(\"@out = a; return a, a\")", "out",
            "expected a name that is not a word of the language, found `out`"},
       }) {
    check_wrong(wrong);
  }
}

TEST_CASE("a rule that names what the operator has is accepted") {
  for (const char* rule :
       {"pointwise().passes(a,b)", "pointwise().typed(given(dtype,first))",
        "pointwise().typed(if(flag,a,b)).like(b)", "along(dim).blocked(size)",
        "mn,mn->{x:size[0]}{y:size[1]}", "mn,mn->mn.scales(scale)",
        "if mode is x and not flag: mn,mn->mn | mn,mn->nm",
        "mk,kn->mn.nonempty(k).same_without(k).one_of(mode,x,y)",
        "pointwise().linear_in(a).linear_in(b)",
        "pointwise().decomposed(\"x = a * default(scale, 1); y = x if flag; y "
        "= x + b if not flag; return y * size(out, 0)\")"}) {
    CAPTURE(rule);
    const auto made = checked(kBinary, rule);
    CHECK((made ? std::string() : to_string(made.error())) == "");
  }
}

TEST_CASE("a user may give the text of any row of the library as a rule") {
  const OpLibrary& library = testing::standard_library();
  int rows = 0;
  int shared = 0;
  for (const OpRow* row : library.rows()) {
    CAPTURE(row->name);
    const std::string text = row->definition.text();
    CAPTURE(text);
    const Overloads overloads = overloads_of_row(library, row->name);
    const auto made = check_rule(text, overloads, library);
    CHECK((made ? std::string() : to_string(made.error())) == "");
    const auto rule = parse_rule(text);
    const bool is_check = text.starts_with("pointwise(0)");
    CHECK((rule || is_check ? std::string() : to_string(rule.error())) == "");
    const RuleNames names = value_of(names_in_rule(text));
    const bool has_own =
        overloads.empty() || compare_names(names, overloads, library, {});
    shared += has_own ? 0 : 1;
    ++rows;
  }
  CHECK(rows > 900);
  // Rows that share their text with another operator, which has more arguments.
  CHECK(shared <= 66);
}

TEST_CASE("a library refuses a definition with a wrong name") {
  const auto made = testing::standard_library().with(
      {.declaration = kBinary,
       .definition = value_of(parse_rule("pointwise() . passes(zz)"))});
  REQUIRE_FALSE(made.has_value());
  CHECK(made.error().location == "the rule pointwise().passes(zz): column 20");
}

TEST_CASE("a notation may state no operand of an operator without tensors") {
  CHECK(checked("my::z() -> Tensor", "->{a:4}").has_value());
  CHECK(checked("my::z(int n) -> Tensor", "->{a:4}").has_value());
  check_wrong({"my::z() -> Tensor", "@a->a", "a",
               "expected 0 terms of operands, because `my.z` declares 0 tensor "
               "arguments, found 1"});
  CHECK(checked("my::a(Tensor x) -> Tensor", "->").has_value());
}

TEST_CASE(
    "a rule may state one result, or those written, if none is returned") {
  constexpr const char* kNone = "my::a(Tensor x) -> ()";
  constexpr const char* kWritten =
      "my::w(Tensor x, Tensor(a!) y, Tensor(b!) z) -> ()";
  for (const char* rule : {"pointwise()", "a->a", "a->", "same_shape()",
                           "pointwise().like(x)", "pointwise().typed(f32)"}) {
    CAPTURE(rule);
    CHECK(checked(kNone, rule).has_value());
  }
  for (const char* rule : {"pointwise()", "pointwise(2)", "a,a,a->a,a",
                           "pointwise(2).typed(f32,f32)"}) {
    CAPTURE(rule);
    CHECK(checked(kWritten, rule).has_value());
  }
  for (const WrongName& wrong : {
           WrongName{kNone, "pointwise(@7)", "7",
                     "expected at most 1 result, because `my.a` declares 0 "
                     "results and writes 0 arguments, found 7"},
           {kNone, "pointwise().typed(f32,@f32)", "f32",
            "expected at most 1 result, because `my.a` declares 0 results and "
            "writes 0 arguments, found 2"},
           {kNone, "a->a,@a", "a",
            "expected 1 term of results, because `my.a` declares 0 results and "
            "writes 0 arguments, found 2"},
           {kWritten, "pointwise(@3)", "3",
            "expected at most 2 results, because `my.w` declares 0 results and "
            "writes 2 arguments, found 3"},
       }) {
    check_wrong(wrong);
  }
}

TEST_CASE("the help of a wrong name can be written in its place") {
  const auto help_of = [](const char* declaration, const char* rule) {
    const auto made = checked(declaration, rule);
    return made ? std::string() : made.error().help;
  };
  CHECK(help_of("my::a(Tensor x) -> Tensor",
                "pointwise().decomposed(\"return expp(x)\")") ==
        "did you mean `exp`?");
  constexpr const char* kSizes = "my::a(Tensor x, int[] size) -> Tensor";
  CHECK(help_of(kSizes, "a->a{c:size}") ==
        "write one of its integers, such as `size[0]`");
  CHECK(checked(kSizes, "a->a{c:size[0]}").has_value());
}

TEST_CASE("a modifier that names a full factor is an error") {
  check_wrong({"my::a(Tensor x) -> Tensor", "{ab}->{ab}.nonempty(@a)", "a",
               "expected a factor of an operand that may be sharded, found "
               "`a`, which is full"});
}

}  // namespace
}  // namespace shardprop
