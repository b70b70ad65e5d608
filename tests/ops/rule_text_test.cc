// Tests rules as text: their meaning, and that they print as they parse.
#include <shardprop/ops/rule_text.h>

#include <doctest/doctest.h>
#include <shardprop/ops/op_library.h>

#include "ops/rules/rule_words.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <optional>
#include <string>
#include <string_view>
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
  for (const char* text :
       {"pointwise()",
        "pointwise(2)",
        "pointwise().additive()",
        "pointwise().additive(+,-)",
        "pointwise().multilinear().nonincreasing()",
        "mk,kn->mn",
        "...mk,kn->...mn",
        "...mk,kn->...mn.random()",
        "bh[s]d,bh[t]d->bh[s]d",
        "+n,(ab)k->(ab)n",
        "einsum(m[k],[k]n->mn)",
        "mapped(ab->ab)",
        "einsum(+n,m[k],[k]n->mn)",
        "m(k[j:128]),(k[j])n->mn",
        "a1b2->b2",
        "<tokens>k,nk->n<tokens>",
        "...,...1->...1",
        "*,n{hw}->n{hwc:3}:column_major",
        "b{h}*,**->b{h}:always,:none",
        "n{hw},r{k}->rn{x:pooled_height}{y:sizes[1]}",
        "{nf},{n}->{k:?}",
        "nc_->nc_:swapped",
        "if not left and mode is full: a{b}->{b}a | a{b}->a",
        "reduction(sum)",
        "reduction()",
        "reduction(sum,2)",
        "along(dim)",
        "along(dim,2)",
        "scanned(dim)",
        "same_shape()",
        "batch(0)",
        "batch(0,-1)",
        "pointwise().lattice(max)",
        "pointwise().passes(x,y)",
        "pointwise().linear_in(x)",
        "pointwise().ignores_values()",
        "pointwise().ignores_values(x)",
        "pointwise().promoted().elementwise(x,y)",
        "pointwise().typed(f32).like(x).nonempty()",
        "pointwise(2).like(x,y)",
        "pointwise(2).typed(given(dtype,sum(first)),i64)",
        "pointwise().typed(if(flag,real(x),complex(y)))",
        "n{c},{t}->n.below(t,classes).in_order()",
        "same_shape().random().draws(normal).free()",
        "ab->a.nonempty(b).nonlinear()",
        "mapped(ab->a).reduced_without(max)",
        "same_shape().blocked(dim)",
        "pointwise().nondecreasing_in_each()",
        "pointwise().given_one(min,max)",
        "mn,mk,kn->mn.scales(beta,alpha)",
        "reduction().nonempty_reduced()",
        "...{nn}->...{nn}:column_major.linalg_work(1/3)",
        "...{nn},...{n}r->...{n}r.linalg_work(2/3,2)",
        "...{nn}->...{nn}.linalg_work(n)",
        "...{mn}->...{mk:min(m,n)},...{kn}",
        "{<rows>n}->{k:min(<rows>,n)}",
        "...{mn}->...{mn}.one_of(mode,reduced,complete)",
        "pointwise().typed(stated(mode,same,truth(first)))",
        "pointwise().typed(not_bool(x,scaled(alpha,half(x))))",
        "m,n->mn.typed(addend(x,widened(dtype,alike(x,y))))",
        "pointwise(2).typed(no_bools(x),no_integers(y))",
        "pointwise(2).typed(only_bool(x),only_floating(y))",
        "pointwise().contiguous()",
        "along(dim).decomposed(\"e = exp(x); return e / "
        "sum(e, [dim], True)\")",
        "{n}d,{v}d,{n}->{v}d.per_rank(\"return x, x\")",
        "b[l]d->b[l]d.per_rank(\"return x\",blocked)"
        ".flops(4)"}) {
    CAPTURE(text);
    const auto rule = parse_rule(text);
    REQUIRE(rule);
    CHECK(rule->text() == text);
    CHECK(parse_rule(" " + std::string(text) + " ")->text() == text);
  }
}

TEST_CASE("texts of earlier releases and abbreviations are still read") {
  const auto printed = [](const char* text) {
    const auto rule = parse_definition(text);
    return rule ? rule->text() : to_string(rule.error());
  };
  // C had blanks in place of parentheses.
  CHECK(printed("einsum mk,kn->mn") == "mk,kn->mn");
  CHECK(printed("einsum m[k],[k]n->mn") == "einsum(m[k],[k]n->mn)");
  CHECK(printed("pointwise") == "pointwise()");
  CHECK(printed("pointwise.promoted.additive") ==
        "pointwise().promoted().additive()");
  CHECK(printed("reduction sum") == "reduction(sum)");
  CHECK(printed("along dim.floating") == "along(dim).floating()");
  // Blanks and the other spellings of a value.
  CHECK(printed("m k , k n -> m n") == "mk,kn->mn");
  CHECK(printed("m[k][l] -> m") == "m[kl]->m");
  CHECK(printed("<m>{_}->...0") == "m_->...");
}

TEST_CASE("a notation is a value that prints and parses back") {
  Notation notation;
  notation.inputs = {Term().leading().full({'m', 'n'}), Term::replicated()};
  notation.outputs = {Term().leading().compound(
      {{'a'}, {FactorName("block"), DimUse::kBlocked}})};
  notation.sizes = {{FactorName("block"), StatedSize::Kind::kNumber, 16}};
  CHECK(to_string(notation) == "...{mn},*->...(a[<block>:16])");
  // Names have no end.
  Term dims;
  for (int dim = 0; dim < 60; ++dim) dims.add(FactorName::of_dim(dim));
  const Notation many{{dims}, {dims}, {}, {}};
  const auto again = Notation::parse(to_string(many));
  REQUIRE(again);
  CHECK(*again == many);
  for (int dim = 0; dim < 60; ++dim) {
    CHECK(FactorName::of_dim(dim).dim() == dim);
  }
}

TEST_CASE("what rules mean") {
  CHECK(space_of_rule("pointwise()") == "ab,ab->ab {a=8,b=16}");
  CHECK(space_of_rule("batch(0)") == "a1,a1->a1 {a=8}");
  CHECK(space_of_rule("m[n],m[n]->m[n]") == "mn,mn->mn {m=8,n=16 blocked}");
  CHECK(space_of_rule("m{n},m{n}->m{n}") == "m1,m1->m1 {m=8}");
  // Only einsum() is linear.
  CHECK(space_of_rule("mapped(mn,mn->mn)") == "mn,mn->mn {m=8,n=16}");
  CHECK(space_of_rule("(a[b:4])n,(a[b])n->(a[b])n")
            .starts_with("(ab)n,(ab)n->(ab)n {b=4 blocked,a=2,n=16}"));
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
            .find("f32[4] does not have 2 or more dims") != std::string::npos);
  CHECK(why(**library, {"f32[3,4]", "f32[4,5,6]"}, {"f32[3]", "f32[5]"})
            .find("f32[4,5,6] does not have 2 dims") != std::string::npos);
  // As many results as the rule has.
  for (const char* rule : {"m[k],kn->m,n,m", "m[k],kn->m"}) {
    const auto made = testing::standard_library().with(
        {.declaration = "mylib::f(Tensor x, Tensor y) -> (Tensor, Tensor)",
         .definition = *parse_rule(rule)});
    REQUIRE_FALSE(made);
    CHECK(made.error().message.starts_with("expected 2 terms of results"));
  }
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

TEST_CASE("alternatives and sizes that a call decides") {
  const auto library = testing::standard_library().with(
      {.declaration = "mylib::pool(Tensor x, bool flat=False, int size=2, "
                      "int[] shape=[]) -> Tensor",
       .definition = *parse_rule("if flat: n_->n{s:size} | "
                                 "n{h}->n{a:shape[0]}{b:?} | ...{hw}->...")});
  REQUIRE(library);
  const auto space = [&](const char* x, const char* result,
                         std::vector<GivenArgument> rest) {
    std::vector<GivenArgument> given = {{"x", TensorArg{0}}};
    for (GivenArgument& one : rest) given.push_back(std::move(one));
    auto op = make_op_schema((*library)->find("mylib.pool.default"),
                             std::move(given), {*TensorMeta::parse(x)});
    REQUIRE(op);
    set_results(*op, {*TensorMeta::parse(result)});
    const auto found = (*library)->index_space(*op);
    return found ? to_string(*found) : found.error().message;
  };
  CHECK(space("f32[8,4]", "f32[8,3]",
              {{"flat", true}, {"size", std::int64_t{3}}}) == "n1->n1 {n=8}");
  CHECK(space("f32[8,4]", "f32[8,5,7]",
              {{"shape", std::vector<std::int64_t>{5}}}) == "n1->n11 {n=8}");
  CHECK(space("f32[8,4]", "f32[8,5,7]", {})
            .find("a list of sizes is shorter than the rule expects") !=
        std::string::npos);
  CHECK(space("f32[8,4,4]", "f32[8]", {}) == "a11->a {a=8}");
}

TEST_CASE("operators of other libraries are one line each") {
  // The call has these tensors ("" is an absent one), then these arguments.
  const auto space = [](const char* declaration, const char* rule,
                        const std::vector<const char*>& tensors,
                        std::vector<GivenArgument> rest, const char* result) {
    const auto definition = parse_rule(rule);
    REQUIRE(definition);
    const auto library = testing::standard_library().with(
        {.declaration = declaration, .definition = *definition});
    REQUIRE(library);
    const auto function = FunctionSchema::parse(declaration);
    REQUIRE(function);
    std::vector<GivenArgument> given;
    std::vector<TensorMeta> metas;
    for (const char* text : tensors) {
      const bool is_given = *text != '\0';
      given.push_back(
          {"", TensorArg{is_given ? static_cast<std::int32_t>(metas.size())
                                  : TensorArg::kNone}});
      if (!is_given) given.back().value = NoneArg{};
      if (is_given) metas.push_back(*TensorMeta::parse(text));
    }
    for (GivenArgument& one : rest) given.push_back(std::move(one));
    auto op = make_op_schema((*library)->find(function->name()),
                             std::move(given), std::move(metas));
    REQUIRE(op);
    set_results(*op, {*TensorMeta::parse(result)});
    const auto found = (*library)->index_space(*op);
    return found ? to_string(*found) : to_string(found.error());
  };
  // The image of each box is read in full; boxes and channels are sharded.
  CHECK(space("torchvision::roi_align(Tensor input, Tensor rois, float scale, "
              "int pooled_height, int pooled_width) -> Tensor",
              "nc{hw},r{k}->rc{x:pooled_height}{y:pooled_width}"
              ".linear_in(input)",
              {"f32[2,8,16,16]", "f32[6,5]"},
              {{"scale", 1.0},
               {"pooled_height", std::int64_t{7}},
               {"pooled_width", std::int64_t{3}}},
              "f32[6,8,7,3]") ==
        "nc11,r1->rc11 {n=2,c=8,r=6} | sum,_->sum | avg,_->avg");
  // The number of results depends on data, so the graph states it.
  CHECK(space("torchvision::nms(Tensor dets, Tensor scores, float threshold) "
              "-> Tensor",
              "{nb},{n}->{k:?}.typed(i64)", {"f32[9,4]", "f32[9]"},
              {{"threshold", 0.5}}, "i64[5]") == "11,1->1 {}");
  // An absent optional tensor keeps its term.
  CHECK(space("mamba_ssm::selective_scan(Tensor u, Tensor delta, Tensor A, "
              "Tensor B, Tensor C, Tensor? D, Tensor? z, Tensor? bias) -> "
              "Tensor",
              "bd{l},bd{l},d{n},b{nl},b{nl},d,bd{l},d->bd{l}",
              {"f32[2,6,9]", "f32[2,6,9]", "f32[6,4]", "f32[2,4,9]",
               "f32[2,4,9]", "", "f32[2,6,9]", ""},
              {}, "f32[2,6,9]") == "bd1,bd1,d1,b11,b11,bd1->bd1 {b=2,d=6}");
  // Shards of k are multiples of 128, the block that shares a scale.
  CHECK(space("mylib::scaled_mm(Tensor a, Tensor b, Tensor scale_a, "
              "Tensor scale_b) -> Tensor",
              "m(k[j:128]),(k[j])n,mk,kn->mn",
              {"f8e4m3fn[4,256]", "f8e4m3fn[256,6]", "f32[4,2]", "f32[2,6]"},
              {}, "f32[4,6]")
            .starts_with("m(kj),(kj)n,mk,kn->mn {m=4,k=2,n=6,j=128 blocked}"));
}

TEST_CASE("a product without a result has no work to share out") {
  const auto library = testing::standard_library().with(
      {.declaration = "mylib::check(Tensor x) -> Tensor",
       .definition = *parse_definition("ab->:none")});
  REQUIRE(library);
  const auto op =
      make_op_schema((*library)->find("mylib.check.default"),
                     {{"x", TensorArg{0}}}, {*TensorMeta::parse("f32[8,16]")});
  REQUIRE(op);
  const auto results = (*library)->infer_results(*op);
  REQUIRE(results);
  CHECK(*results == std::vector<std::optional<TensorMeta>>{std::nullopt});
}

TEST_CASE("rules may use words") {
  for (const char* text :
       {"gather(dim).passes(self).below(index,dim)", "pointwise(0)",
        "view(size).passes(self).free_where_viewed().local_shape(size)",
        "pool(2).typed(first,i64).strided(images)",
        "nc{hw}->nc{x:upsampled()}{y:upsampled()}",
        "same_shape().typed(promote(arange(),f32)).strided(first)",
        "pointwise().scalar_value().rising_slopes_only()",
        "attention(b(gr)sd,bgtd)"}) {
    CAPTURE(text);
    CHECK(testing::value_of(parse_row(text)).text() == text);
    const bool has_result = std::string_view(text) != "pointwise(0)";
    CHECK(parse_rule(text).has_value() == has_result);
    CHECK(parse_definition(text).has_value() == has_result);
  }
  const auto message = [](const char* text) {
    return parse_row(text).error().message;
  };
  CHECK(message("gather(axis)") ==
        "`gather` is not a form with these arguments, but gather(dim)");
  CHECK(message("m->{x:sliced()}") == "`sliced()` is no size");
  CHECK(message("pointwise().strided(fast)") ==
        "expected a word of strides, such as first or images, found `fast`");
  CHECK(message("pointwise().scalar_value(x)") ==
        "`scalar_value` is not a modifier");
  CHECK(message("pointwise().typed(ranged())") ==
        "`ranged` is no function of dtypes");
}
