// Tests that a text that is no rule has an error with its place.
#include <shardprop/ops/rule_text.h>

#include <doctest/doctest.h>

#include <string>
#include <string_view>

using namespace shardprop;  // NOLINT(google-build-using-namespace)

TEST_CASE("an error names the column, what was found and what is expected") {
  struct Wrong {
    const char* text;
    int column;
    const char* message;
  };
  for (const Wrong& wrong : {
           Wrong{"", 1, "expected a form, found the end"},
           {"(mk)", 5, "expected a factor, `,` or `->`, found the end"},
           {"pointwise(", 11, "expected `,` or `)`, found the end"},
           {"pointwize()", 1, "`pointwize` is not a form"},
           {"reduction(most)", 11,
            "expected one of sum, avg, product, min, max, band, bor, bxor, "
            "found `most`"},
           {"along()", 7, "expected the name of an argument, found `)`"},
           {"along(-1)", 7, "expected the name of an argument, found `-1`"},
           {"along(dim,2,3)", 11, "expected `)` of `along`, found `2`"},
           {"along(a-b)", 7, "expected the name of an argument, found `a-b`"},
           {"scanned(dim(x", 12, "expected a `)` for this `(`, found the end"},
           {"scanned\rd(\"e = f32[4,8] f32[4,", 10,
            "expected a `)` for this `(`, found the end"},
           {"batch()", 7, "expected a dim, found `)`"},
           {"batch(x)", 7, "expected a dim, found `x`"},
           {"pointwise(65)", 11, "expected 1 to 64 results, found 65"},
           {"pointwise(0)", 11, "expected 1 to 64 results, found 0"},
           {"m,n->m{n:min(m,n)}", 10,
            "an operand has a size that others determine"},
           {"same_shape(0)", 12, "expected 1 to 64 results, found 0"},
           {"pointwise(2,3)", 11, "expected `)` of `pointwise`, found `2`"},
           {"pointwise()additive()", 12,
            "expected a modifier, such as `.additive()`, found `a`"},
           {"pointwise().fast()", 13, "`fast` is not a modifier"},
           {"pointwise().", 13,
            "expected the name of a modifier, found the end"},
           {"pointwise().additive(2)", 22, "expected signs, + or -, found `2`"},
           {"pointwise().linear_in()", 23,
            "expected the name of one argument, found `)`"},
           {"pointwise().linear_in.free()", 22,
            "expected the name of one argument, found `.`"},
           {"pointwise().linear_in(x,y)", 25, "expected `)`, found `y`"},
           {"pointwise().lattice(most)", 21,
            "expected one of sum, avg, product, min, max, band, bor, bxor, "
            "found `most`"},
           {"pointwise().typed(f33(first))", 19,
            "`f33` is no function of dtypes"},
           {"pointwise().passes(x,,y)", 22,
            "expected an argument of `passes`, found `,`"},
           {"mk,kn->mn.fast()", 11, "`fast` is not a modifier"},
           {"mk,kn->m2", 8, "no operand has `m2`"},
           {"m(k,kn)->mn", 4, "expected a factor, `[` or `)`, found `,`"},
           {"m(k[:4])->m", 5, "expected a factor, found `:`"},
           {"mk->->n", 5,
            "expected a modifier, such as `.additive()`, found `->`"},
           {"mk", 1, "`mk` is not a form"},
           {"gather(axis)", 1,
            "`gather` is not a form with these arguments, but gather(dim)"},
           {"m->{x:sliced()}", 7, "`sliced()` is no size"},
           {"m->{x:upsampled(}", 17, "expected `)`, found `}`"},
           {"{x:upsampled()}->{x}", 4,
            "an operand has a size that others determine"},
           {"pointwise().strided(fast)", 21,
            "expected a word of strides, such as first or images, found "
            "`fast`"},
           {"pointwise().scalar_value(x)", 13,
            "`scalar_value` is not a modifier"},
           {"pointwise().typed(ranged())", 19,
            "`ranged` is no function of dtypes"},
           {"m+k->m", 2, "a `+` is not first in its term"},
           {"......mk,kn->...mn", 4, "a term has two `...`"},
           {"...m...k,kn->mn", 5, "a term has two `...`"},
           {"...mk,kn->......mn", 14, "a term has two `...`"},
           {"mm->m", 2, "a term has `m` twice"},
           {"(aa)->a", 3, "a term has `a` twice"},
           {"m[m]->m", 3, "a term has `m` twice"},
           {"m->mm", 5, "a term has `m` twice"},
           {"m->n", 4, "no operand has `n`"},
           {"m{k}->mk", 8,
            "every operand has the full dim `k`: the result has `{k}`"},
           {"m->m{k}", 6, "no operand has `k`, and its size is not stated"},
           {"m->m{k:2}{k:3}", 13, "the size of `k` is stated twice"},
           {"m->m{k:}", 8, "expected a number, an argument or `?`, found `}`"},
           {"m->m{k:99999999999999999999}", 8,
            "expected a size, found `99999999999999999999`, which is no "
            "integer of 64 bits"},
           {"m->m{k:sizes[x]}", 14,
            "expected the index of an element, from 0 to 63, found `x`"},
           {"a9999999999999999->a", 1,
            "a factor has a name of more than 15 letters"},
           {"mk,kn-mn", 6, "expected a factor, `,` or `->`, found `-`"},
           {"mk,kn", 6, "expected a factor, `,` or `->`, found the end"},
           {"...mk,kn=mn", 9, "expected a factor, `,` or `->`, found `=`"},
           {"if left: mk", 12, "expected a factor, `,` or `->`, found the end"},
           {"einsun(mk,kn->mn)", 1,
            "expected einsum or mapped before a notation in parentheses, found "
            "`einsun`"},
           {"pointwise(99999999999)", 11,
            "expected 1 to 64 results, found 99999999999"},
           {"pointwise().typed(given(dtype,first)", 37,
            "expected `,` or `)`, found the end"},
           {"pointwise().typed(given(dtype,first).free()", 37,
            "expected `,` or `)`, found `.`"},
           {"pointwise().typed(given(dtype,first.free()", 24,
            "expected a `)` for this `(`, found the end"},
           {"pointwise().typed(first,f33(x))", 25,
            "`f33` is no function of dtypes"},
           {"pointwise().typed(promote(first f32))", 33,
            "expected `,`, found `f`"},
           {"mk,kn->+mn", 8, "a result has a `+`"},
           {"mk,kn->*", 8, "a result has a `*`"},
           {"+*,kn->kn", 2, "a term has a `+` and a `*`"},
           {"***,kn->kn", 3, "a term has three `*`"},
           {"+n,m[k],[k]n->mn", 1,
            "a term is added to a product, but a dim is full or blocked"},
           {"m()->m", 2, "a dim `()` has no factor"},
           {"m[]->m", 2, "`[]` has no factor"},
           {"m{}->m", 2, "`{}` has no factor"},
           {"m[k->m", 4, "expected a factor, `_` or `]`, found `->`"},
           {"m(k->m", 4, "expected a factor, `[` or `)`, found `->`"},
           {"m)k->m", 2, "expected a factor, `,` or `->`, found `)`"},
           {"(m]k->m", 3, "expected a factor, `[` or `)`, found `]`"},
           {"[...]m->m", 2, "expected a factor, `_` or `]`, found `.`"},
           {"<>->m", 2, "expected the name of a factor, found `>`"},
           {"<ab->m", 4, "expected `>`, found `->`"},
           {"<a_name_of_16_char>->m", 1,
            "a factor has a name of more than 15 letters"},
           {"m:always->m", 2, "an operand has a mark of results"},
           {"{mn}->{k:min(m)}", 15, "expected `,`, found `)`"},
           {"{mn}->{k:min(m,l)}", 16, "no operand has `l`"},
           {"{mn}->{k:min(m,n}", 17, "expected `)`, found `}`"},
           {"{mn},{k:min(m,n)}->m", 9,
            "an operand has a size that others determine"},
           {"pointwise().given_one()", 23,
            "expected the name of an argument, found `)`"},
           {"pointwise().like()", 18,
            "expected the name of an argument, found `)`"},
           {"pointwise().linalg_work()", 25, "expected a number, found `)`"},
           {"pointwise().linalg_work(2/0)", 25,
            "expected one or two numbers such as 2/3, or an integer argument, "
            "found `2/0`"},
           {"pointwise().linalg_work(n,2)", 27, "expected `)`, found `2`"},
           {"pointwise().linalg_work(1,n)", 27, "expected a number, found `n`"},
           {"pointwise().one_of(mode)", 24,
            "expected `,` and a word, found `)`"},
           {"pointwise().local_size(x)", 25, "expected `,`, found `)`"},
           {"pointwise().local_size(\"x\",1)", 25,
            "expected a name, found `x`"},
           {"pointwise().local_size(x,y)", 26,
            "expected a number below 64, found `y`"},
           {"m->m:sorted", 6,
            "expected column_major, swapped, always, or none after no dim, "
            "found `s`"},
           {"if : m->m", 4, "expected the name of an argument, found `:`"},
           {"if a b: m->m", 6, "expected `and` or `:`, found `b`"},
           {"if a is : m->m", 9, "expected a value of the argument, found `:`"},
           {"einsum(mk,kn->mn", 17,
            "expected a dim, `,`, `|` or `)`, found the end"},
           {"mapped()", 8, "expected a factor, `,` or `->`, found `)`"},
           {"pointwise().decomposed()", 24,
            "expected a program in quotes, found `)`"},
           {"pointwise().decomposed(return x)", 24,
            "expected a program in quotes, found `return x`"},
           {"pointwise().decomposed(\"return x)", 34,
            "expected `\"` after a program, found the end"},
           {"pointwise().decomposed(\"x = 1\")", 30,
            "the program has no `return`"},
           {"pointwise().decomposed(\"return x\",blocked)", 35,
            "expected `)`, found `blocked`"},
           {"pointwise().per_rank(\"x = 1; return (x\")", 39,
            "expected an operator or `)`, found the end"},
           {"pointwise().per_rank(\"return x\",most)", 33,
            "expected one of parallel, blocked, windowed, indexed, segmented, "
            "scanned, found `most`"},
           {"pointwise().of(\"x\")", 17,
            "expected the name of one argument, found `x`"},
           {"reduction(\"sum\")", 12, "a form has no program"},
           {"m->m\x01", 5,
            "expected a modifier, such as `.additive()`, found a character "
            "that is not printable"},
       }) {
    CAPTURE(wrong.text);
    const auto rule = parse_rule(wrong.text);
    REQUIRE_FALSE(rule);
    CHECK((rule.error().code == ErrorCode::kInvalidArgument ||
           rule.error().code == ErrorCode::kProgramSyntax));
    CHECK(rule.error().message == wrong.message);
    CHECK(rule.error().location == "column " + std::to_string(wrong.column));
    CHECK_FALSE(rule.error().help.empty());
  }
}

TEST_CASE("functions of dtypes nest at most 64 deep") {
  std::string deep = "first";
  for (int i = 0; i < 20'000; ++i) deep = "floating(" + deep + ')';
  const auto rule = parse_rule("pointwise().typed(" + deep + ')');
  REQUIRE_FALSE(rule);
  CHECK(rule.error().message.starts_with("expected at most 64 words"));
}

TEST_CASE("a modifier that a rule has twice is an error at the second") {
  struct Twice {
    const char* rule;
    int column;
    const char* message;
  };
  for (const Twice& wrong : {
           Twice{"pointwise().additive().additive()", 24,
                 "the rule has `additive()` twice"},
           {"pointwise().linear_in(a).linear_in(a)", 26,
            "the rule has `linear_in(a)` twice"},
           {"pointwise().promoted().floating()", 24,
            "`floating` replaces `promoted`: expected one of them"},
           {"pointwise().typed(f32).of(a)", 24,
            "`of` replaces `typed`: expected one of them"},
           {"pointwise().flops(2).flops(3)", 22,
            "`flops` replaces `flops`: expected one of them"},
           {"pointwise().like(a).contiguous()", 21,
            "`contiguous` replaces `like`: expected one of them"},
           {"pointwise().decomposed(\"return a\").per_rank(\"return a\")", 36,
            "`per_rank` replaces `decomposed`: expected one of them"},
           {"pointwise().multilinear().nonlinear()", 27,
            "`nonlinear` replaces `multilinear`: expected one of them"},
           {"pointwise().passes(a).nonlinear()", 23,
            "`nonlinear` replaces `passes`: expected one of them"},
           {"pointwise().passes(a,a)", 22, "`passes` has `a` twice"},
       }) {
    CAPTURE(wrong.rule);
    const auto rule = parse_rule(wrong.rule);
    REQUIRE_FALSE(rule.has_value());
    CHECK(rule.error().message == wrong.message);
    CHECK(rule.error().location == "column " + std::to_string(wrong.column));
  }
  CHECK(parse_rule("pointwise().linear_in(a).linear_in(b)").has_value());
}
