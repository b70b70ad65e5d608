// Rules as text: what they mean, that they print as they parse, and what is
// said of those that are none.
#include <shardprop/ops/rule_text.h>

#include <doctest/doctest.h>
#include <shardprop/ops/op_library.h>

#include "support/standard_library.h"

#include <string>

using namespace shardprop;  // NOLINT(google-build-using-namespace)

namespace {

// swiglu(x, gate) on f32[8,16] under that rule.
std::string space_of(std::string_view rule) {
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
  CHECK(space_of("pointwise()") == "ab,ab->ab {a=8,b=16}");
  CHECK(space_of("batch(0)") == "a1,a1->a1 {a=8}");
  CHECK(space_of("m[n],m[n]->m[n]") == "m1,m1->m1 {m=8}");
  CHECK(space_of("mn,mn->mn").starts_with("mn,mn->mn {m=8,n=16}"));
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
  for (const char* text :
       {"", "pointwise", "pointwise(", "pointwize()", "reduction(most)",
        "along()", "batch()", "batch(x)", "pointwise()additive()",
        "pointwise().fast()", "mk,kn->m2", "m(k,kn)->mn", "mk->->n", "m+k->m",
        "pointwise(0)", "(ab)[k],k->(ab)", "pointwise().",
        "mk,kn->mn.fast()"}) {
    CAPTURE(text);
    const auto rule = parse_rule(text);
    REQUIRE_FALSE(rule);
    CHECK(rule.error().code == ErrorCode::kInvalidArgument);
    CHECK(rule.error().location.find("column") != std::string::npos);
    CHECK_FALSE(rule.error().help.empty());
  }
}
