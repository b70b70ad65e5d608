// Tests rules as text: their meaning, that they print as they parse, and the
// errors for texts that are not rules.
#include <shardprop/ops/rule_text.h>

#include <doctest/doctest.h>
#include <shardprop/ops/op_library.h>

#include "support/standard_library.h"

#include <optional>
#include <string>
#include <vector>

using namespace shardprop;  // NOLINT(google-build-using-namespace)

namespace {

// swiglu(x, gate) on f32[8,16] under that rule.
std::string space_of_rule(std::string_view rule) {
  auto definition = parse_rule(rule);
  REQUIRE(definition);
  const auto library = testing::standard_library().with(
      {.declaration = "mylib::swiglu(Tensor x, Tensor gate) -> Tensor",
       .definition = *std::move(definition)});
  REQUIRE(library);
  const auto meta = *TensorMeta::parse("f32[8,16]");
  auto op = make_op_schema((*library)->find("mylib.swiglu.default"),
                           {{"x", TensorArg{0}}, {"gate", TensorArg{1}}},
                           {meta, meta});
  REQUIRE(op);
  set_results(*op, {meta});
  const auto space = (*library)->index_space(*op);
  REQUIRE(space);
  return to_string(*space);
}

}  // namespace

TEST_CASE("a rule prints as it parses") {
  for (const char* text : {"pointwise()",
                           "pointwise().additive()",
                           "pointwise().additive(+,-)",
                           "pointwise().multilinear().nonincreasing()",
                           "mk,kn->mn",
                           "...mk,kn->...mn",
                           "...mk,kn->...mn.random()",
                           "bh[s]d,bh[t]d->bh[s]d",
                           "+n,(ab)k->(ab)n",
                           "reduction(sum)",
                           "reduction()",
                           "along(dim)",
                           "same_shape()",
                           "batch(0)",
                           "batch(0,-1)",
                           "pointwise().lattice(max)",
                           "pointwise().passes(x,y)",
                           "pointwise().linear_in(x)",
                           "pointwise().ignores_values()",
                           "pointwise().ignores_values(x)",
                           "same_shape().blocked(dim)"}) {
    CAPTURE(text);
    const auto rule = parse_rule(text);
    REQUIRE(rule);
    CHECK(rule->text() == text);
    CHECK(parse_rule(" " + std::string(text) + " ")->text() == text);
  }
}

TEST_CASE("what rules mean") {
  CHECK(space_of_rule("pointwise()") == "ab,ab->ab {a=8,b=16}");
  CHECK(space_of_rule("batch(0)") == "a1,a1->a1 {a=8}");
  CHECK(space_of_rule("m[n],m[n]->m[n]") == "m1,m1->m1 {m=8}");
  CHECK(space_of_rule("mn,mn->mn").starts_with("mn,mn->mn {m=8,n=16}"));
}

TEST_CASE("the batch is that of the results") {
  const auto library = testing::standard_library().with(
      {.declaration =
           "mylib::branch(Tensor which, Tensor weight, Tensor x) -> Tensor",
       .definition = *parse_rule("batch(0)")});
  REQUIRE(library);
  const auto space = [&](const char* weight, const char* x, const char* out) {
    auto op =
        make_op_schema((*library)->find("mylib.branch.default"),
                       {{"which", TensorArg{0}},
                        {"weight", TensorArg{1}},
                        {"x", TensorArg{2}}},
                       {*TensorMeta::parse("bool[]"),
                        *TensorMeta::parse(weight), *TensorMeta::parse(x)});
    REQUIRE(op);
    set_results(*op, {*TensorMeta::parse(out)});
    const auto found = (*library)->index_space(*op);
    return found ? to_string(*found) : found.error().message;
  };
  CHECK(space("f32[16,4]", "f32[8,16]", "f32[8,4]") == "(),11,a1->a1 {a=8}");
  CHECK(space("f32[16,4]", "f32[8,16]", "f32[]") == "(),a1,11->() {a=16}");
  CHECK(space("f32[]", "f32[]", "f32[]").find("no tensor has a dim 0") !=
        std::string::npos);
}

TEST_CASE("what is not a rule") {
  for (const char* text : {"",
                           "pointwise",
                           "pointwise(",
                           "pointwize()",
                           "reduction(most)",
                           "along()",
                           "batch()",
                           "batch(x)",
                           "pointwise()additive()",
                           "pointwise().fast()",
                           "mk,kn->m2",
                           "m(k,kn)->mn",
                           "mk->->n",
                           "m+k->m",
                           "pointwise(0)",
                           "(ab)[k],k->(ab)",
                           "pointwise().",
                           "mk,kn->mn.fast()",
                           "......mk,kn->...mn",
                           "...m...k,kn->mn",
                           "......m[k],[k]n->...mn",
                           "...mk,kn->......mn",
                           "mm->m",
                           "(aa)->a",
                           "m[m]->m",
                           "m->mm",
                           "m->n",
                           "m[k]->mn",
                           "mk,kn->+mn",
                           "m()->m",
                           "m[]->m",
                           "m[k->m",
                           "m(k->m",
                           "m)k->m",
                           "(m]k->m",
                           "[...]m->m",
                           "m k,->m\x01"}) {
    CAPTURE(text);
    const auto rule = parse_rule(text);
    REQUIRE_FALSE(rule);
    CHECK(rule.error().code == ErrorCode::kInvalidArgument);
    CHECK(rule.error().location.find("column") != std::string::npos);
    CHECK_FALSE(rule.error().help.empty());
  }
}

TEST_CASE("what is wrong with factor notation is said at its column") {
  const auto refusal = [](std::string_view text) {
    const auto checked = check_notation(text);
    return checked ? std::string() : to_string(checked.error());
  };
  CHECK(refusal("...mk,kn->...mn").empty());
  CHECK(refusal("->").empty());
  CHECK(refusal("+n,(ab)k,b[s]->(ab)n").empty());
  const auto holds = [&](std::string_view text, const char* why,
                         const char* column) {
    CAPTURE(text);
    const std::string error = refusal(text);
    CHECK(error.find(why) != std::string::npos);
    CHECK(error.find(column) != std::string::npos);
  };
  holds("......mk->m", "a term has two `...`", "column 4\n");
  holds("a,...mk...->m", "a term has two `...`", "column 8\n");
  holds("ab,cac->a", "a term has `c` twice", "column 6\n");
  holds("ab->abz", "no operand has `z`", "column 7\n");
  holds("ab", "it has no `->`", "column 3\n");
  holds("a(b,c)->a", "a bracket is never closed", "column 2\n");
  holds("ab->a->b", "`-` has no meaning", "column 6\n");
}

TEST_CASE("a rule and a call of other ranks") {
  const auto library = testing::standard_library().with(
      {.declaration = "mylib::f(Tensor x, Tensor y) -> (Tensor, Tensor)",
       .definition = *parse_rule("...m[k],kn->...m,n")});
  REQUIRE(library);
  const auto why = [&](const OpLibrary& in, std::vector<const char*> inputs,
                       std::vector<const char*> results) {
    std::vector<TensorMeta> metas;
    for (const char* text : inputs) metas.push_back(*TensorMeta::parse(text));
    auto op = make_op_schema(in.find("mylib.f.default"),
                             {{"x", TensorArg{0}}, {"y", TensorArg{1}}}, metas);
    REQUIRE(op);
    std::vector<std::optional<TensorMeta>> made;
    for (const char* text : results) made.push_back(*TensorMeta::parse(text));
    set_results(*op, made);
    const auto space = in.index_space(*op);
    return space ? std::string() : space.error().message;
  };
  CHECK(why(**library, {"f32[2,3,4]", "f32[4,5]"}, {"f32[2,3]", "f32[5]"})
            .empty());
  CHECK(why(**library, {"f32[4]", "f32[4,5]"}, {"f32[2]", "f32[5]"})
            .find("another rank") != std::string::npos);
  CHECK(why(**library, {"f32[3,4]", "f32[4,5,6]"}, {"f32[3]", "f32[5]"})
            .find("another rank") != std::string::npos);
  // As many results as the rule has.
  const auto more = testing::standard_library().with(
      {.declaration = "mylib::f(Tensor x, Tensor y) -> (Tensor, Tensor)",
       .definition = *parse_rule("m[k],kn->m,n,m")});
  REQUIRE(more);
  CHECK(why(**more, {"f32[3,4]", "f32[4,5]"}, {"f32[3]", "f32[5]"})
            .find("the rule has 3 results, the call 2") != std::string::npos);
  const auto fewer = testing::standard_library().with(
      {.declaration = "mylib::f(Tensor x, Tensor y) -> (Tensor, Tensor)",
       .definition = *parse_rule("m[k],kn->m")});
  REQUIRE(fewer);
  CHECK(why(**fewer, {"f32[3,4]", "f32[4,5]"}, {"f32[3]", "f32[5]"})
            .find("the rule has 1 result, the call 2") != std::string::npos);
}

TEST_CASE("operands of an unknown product of letters") {
  const auto library = testing::standard_library().with(
      {.declaration = "mylib::g(Tensor x) -> Tensor",
       .definition = *parse_rule("(ab)k->ak")});
  REQUIRE(library);
  auto op =
      make_op_schema((*library)->find("mylib.g.default"), {{"x", TensorArg{0}}},
                     {*TensorMeta::parse("f32[12,5]")});
  REQUIRE(op);
  set_results(*op, {*TensorMeta::parse("f32[3,5]")});
  const auto space = (*library)->index_space(*op);
  REQUIRE_FALSE(space);
  CHECK(space.error().message.find("the sizes of `a` and `b`") !=
        std::string::npos);
}
