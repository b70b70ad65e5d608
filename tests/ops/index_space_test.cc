// Index spaces of operators applied, as they print.
#include <shardprop/ops/index_space.h>

#include "ops/applied_op.h"

#include <string>
#include <vector>

namespace shardprop {
namespace {

using testing::applied;
using testing::space_of;

using Ints = std::vector<std::int64_t>;

// The printed space without its linearities.
std::string factors_of(const OpSchema& op) {
  const std::string text = to_string(space_of(op));
  return text.substr(0, text.find(" | "));
}

std::string view_of(std::string_view from, Ints size) {
  return factors_of(applied("aten.view.default", {from}, {{"size", size}}));
}

TEST_CASE("einsum: letters are factors, a missing one is summed") {
  CHECK(factors_of(applied("aten.mm.default", {"f32[16,8]", "f32[8,4]"})) ==
        "mk,kn->mn {m=16,k=8,n=4} k:.,.->sum");
  CHECK(factors_of(applied("aten.bmm.default", {"f32[3,2,5]", "f32[3,5,7]"})) ==
        "bmk,bkn->bmn {b=3,m=2,k=5,n=7} k:.,.->sum");
}

TEST_CASE("einsum: an added term broadcasts, and is a term of the sum") {
  CHECK(factors_of(applied("aten.addmm.default",
                           {"f32[4]", "f32[16,8]", "f32[8,4]"})) ==
        "n,mk,kn->mn {m=16,k=8,n=4} k:sum,.,.->sum");
  // A dim of size 1 does not determine the size of its factor.
  CHECK(factors_of(applied("aten.addmm.default",
                           {"f32[1,4]", "f32[16,8]", "f32[8,4]"})) ==
        "1n,mk,kn->mn {m=16,k=8,n=4} k:sum,.,.->sum");
}

TEST_CASE("einsum: leading dims stand for as many as there are") {
  CHECK(factors_of(applied("aten.linear.default",
                           {"f32[4,6,8]", "f32[10,8]", "f32[10]"})) ==
        "abk,nk,n->abn {a=4,b=6,k=8,n=10} k:.,.,sum->sum");
  CHECK(factors_of(applied("aten.matmul.default", {"f32[4,6,8]", "f32[8]"})) ==
        "amk,k->am {a=4,m=6,k=8} k:.,.->sum");
}

TEST_CASE(
    "pointwise: operands align on the right, broadcast dims stay unsharded") {
  CHECK(factors_of(applied("aten.add.Tensor", {"f32[4,6,8]", "f32[6,1]"})) ==
        "abc,b1->abc {a=4,b=6,c=8}");
  CHECK(factors_of(applied("aten.exp.default", {"f32[4,1,8]"})) ==
        "a1b->a1b {a=4,b=8}");
}

TEST_CASE("reduction: reduced dims leave the output, partial by the op") {
  CHECK(factors_of(applied("aten.sum.dim_IntList", {"f32[4,6,8]"},
                           {{"dim", Ints{1, -1}}, {"keepdim", true}})) ==
        "abc->a11 {a=4,b=6,c=8} b:.->sum c:.->sum");
  CHECK(
      factors_of(applied("aten.mean.dim", {"f32[4,6]"}, {{"dim", Ints{0}}})) ==
      "ab->b {a=4 program-uneven,b=6} a:.->avg");
  CHECK(factors_of(
            applied("aten.sum.dim_IntList", {"f32[4,6]"}, {{"dim", Ints{}}})) ==
        "ab->() {a=4,b=6} a:.->sum b:.->sum");
}

TEST_CASE("linearities are those that the dtypes keep") {
  const auto sums = [](const char* self, std::vector<GivenArgument> to) {
    to.push_back({"dim", Ints{0}});
    return !space_of(applied("aten.sum.dim_IntList", {self}, to))
                .linearities.empty();
  };
  CHECK(sums("f32[4,6]", {}));
  CHECK(sums("i64[4,6]", {}));
  // A sum of i32 that wraps round is not the wrapped sum in i64.
  CHECK_FALSE(sums("i32[4,6]", {}));
  CHECK_FALSE(sums("bool[4,6]", {}));
  CHECK_FALSE(sums("f32[4,6]", {{"dtype", DType::kI64}}));
  // The real part of a sum is the sum of the real parts, of products it is not.
  CHECK(sums("c64[4,6]", {{"dtype", DType::kF32}}));
  CHECK_FALSE(sums("c128[4,6]", {{"dtype", DType::kF16}}));
  CHECK(to_string(space_of(applied("aten.real.default", {"c64[4,6]"}))) ==
        "ab->ab {a=4,b=6} | sum->sum | avg->avg");
  const std::string narrowed =
      to_string(space_of(applied("aten.copy.default", {"i64[2]", "f64[2]"})));
  CHECK(narrowed.find("_,sum->sum") == std::string::npos);
  CHECK(narrowed.find("_,max->max") != std::string::npos);
  // Arithmetic that wraps round does not preserve order.
  const std::string negated =
      to_string(space_of(applied("aten.neg.default", {"u8[3]"})));
  CHECK(negated.find("max") == std::string::npos);
  CHECK(negated.find("sum->sum") != std::string::npos);
}

TEST_CASE("integers that nothing is added to keep their order, others wrap") {
  const auto keeps_max = [](std::string_view name, std::string_view self,
                            std::vector<GivenArgument> others) {
    const std::string text = to_string(space_of(applied(name, {self}, others)));
    return text.find("max->max") != std::string::npos;
  };
  const std::int64_t zero = 0;
  const std::int64_t one = 1;
  const std::int64_t minus_two = -2;
  CHECK(keeps_max("aten.add.Scalar", "i64[4]", {{"other", zero}}));
  CHECK(keeps_max("aten.sub.Scalar", "i8[4]", {{"other", zero}}));
  CHECK_FALSE(keeps_max("aten.add.Scalar", "i64[4]", {{"other", one}}));
  CHECK_FALSE(keeps_max("aten.rsub.Scalar", "i64[4]", {{"other", zero}}));
  // 0 + 2 * self.
  CHECK_FALSE(keeps_max("aten.rsub.Scalar", "i64[4]",
                        {{"other", zero}, {"alpha", minus_two}}));
  // A sum of two integer tensors may wrap, for any values.
  const std::string sum =
      to_string(space_of(applied("aten.add.Tensor", {"i64[4]", "i64[4]"})));
  CHECK(sum.find("max") == std::string::npos);
}

TEST_CASE("along: the dim it runs over stays unsharded, in every operand") {
  CHECK(factors_of(
            applied("aten.slice.Tensor", {"f32[4,6,8]"},
                    {{"dim", std::int64_t{1}}, {"end", std::int64_t{4}}})) ==
        "abc->adc {a=4,b=6 windowed,c=8,d=4 windowed}");
  // One of two equal pieces.
  CHECK(factors_of(
            applied("aten.slice.Tensor", {"f32[4,6,8]"},
                    {{"dim", std::int64_t{1}}, {"end", std::int64_t{3}}})) ==
        "a(bc)d->acd {a=4,b=2 segmented,c=3,d=8}");
  // The dim that select takes away is away from its result.
  CHECK(factors_of(
            applied("aten.select.int", {"f32[4,6,8]"},
                    {{"dim", std::int64_t{1}}, {"index", std::int64_t{2}}})) ==
        "abc->ac {a=4,b=6 windowed,c=8}");
  // A slice of everything changes nothing.
  CHECK(factors_of(
            applied("aten.slice.Tensor", {"f32[4,6]"},
                    {{"dim", std::int64_t{1}}, {"start", std::int64_t{0}}})) ==
        "ab->ab {a=4,b=6}");
}

TEST_CASE("view: flattened dims are factors of one dim, major first") {
  CHECK(view_of("f32[4,6,8]", {24, 8}) == "abc->(ab)c {a=4,b=6,c=8}");
  CHECK(view_of("f32[24,8]", {4, 6, 8}) == "(ab)c->abc {a=4,b=6,c=8}");
  // 6 x 4 = 24 = 2 x 12: the 2 of the 6, then 3 x 4.
  CHECK(view_of("f32[6,4]", {2, 12}) == "(ab)c->a(bc) {a=2,b=3,c=4}");
}

TEST_CASE("view: dims without a common factor stay unsharded") {
  CHECK(view_of("f32[2,3,5]", {3, 2, 5}) ==
        "ace->bde {a=2 blocked,b=3 blocked,c=3 blocked,d=2 blocked,e=5}");
}

TEST_CASE("view: dims of size 1 come and go") {
  CHECK(view_of("f32[4,1,6]", {1, 4, 6, 1}) == "a1b->1ab1 {a=4,b=6}");
  CHECK(view_of("f32[0,6]", {6, 0}) == "11->11 {}");
}

TEST_CASE("convolution: channels are groups times channels of a group") {
  CHECK(factors_of(applied("aten.convolution.default",
                           {"f32[4,6,8,8]", "f32[10,3,3,3]"},
                           {{"bias", NoneArg{}},
                            {"stride", Ints{1, 1}},
                            {"padding", Ints{1, 1}},
                            {"dilation", Ints{1, 1}},
                            {"transposed", false},
                            {"output_padding", Ints{0, 0}},
                            {"groups", std::int64_t{2}}}))
            .starts_with("n(gc)e1,(go)c"));
}

TEST_CASE("attention: grouped query heads hold the heads of the keys") {
  const IndexSpace space = space_of(
      applied("aten._scaled_dot_product_flash_attention_for_cpu.default",
              {"f32[4,6,5,8]", "f32[4,3,5,8]", "f32[4,3,5,8]"}));
  CHECK(space.inputs[0].dims[1].size() == 2);
  CHECK(space.inputs[1].dims[1].size() == 1);
  CHECK(space.inputs[0].dims[1][0] == space.inputs[1].dims[1][0]);
}

TEST_CASE("attention: a joined factor shards all query heads as one") {
  const IndexSpace space = space_of(
      applied("aten._scaled_dot_product_flash_attention_for_cpu.default",
              {"f32[4,6,5,8]", "f32[4,3,5,8]", "f32[4,3,5,8]"}));
  const auto joined = space.inputs[0].joined_factor(1);
  REQUIRE(joined.has_value());
  CHECK(space.factor(*joined).size == 6);
  CHECK(space.factor(*joined).joins == space.inputs[0].dims[1]);
  CHECK(space.outputs[0].holds(*joined));
  CHECK_FALSE(space.inputs[1].holds(*joined));
  // Equal heads, or one key head, need none.
  for (const char* keys : {"f32[4,6,5,8]", "f32[4,1,5,8]"}) {
    CHECK_FALSE(
        space_of(
            applied("aten._scaled_dot_product_flash_attention_for_cpu.default",
                    {"f32[4,6,5,8]", keys, keys}))
            .inputs[0]
            .joined_factor(1)
            .has_value());
  }
}

TEST_CASE("index spaces print, and parse back") {
  const std::vector<OpSchema> calls = {
      applied("aten.addmm.default", {"f32[4]", "f32[16,8]", "f32[8,4]"}),
      applied("aten.mean.dim", {"f32[4,6]"}, {{"dim", Ints{0}}}),
      applied("aten.view.default", {"f32[2,3,5]"}, {{"size", Ints{3, 2, 5}}}),
      applied("aten._softmax.default", {"f32[4,6]"},
              {{"dim", std::int64_t{1}}, {"half_to_float", false}}),
      applied("aten.embedding.default", {"f32[30,8]", "i64[4,6]"}),
      applied("aten.topk.default", {"f32[4,6]"}, {{"k", std::int64_t{3}}}),
      applied("aten.sum.dim_IntList", {"f32[4,6]"}, {{"dim", Ints{}}}),
      applied("aten._scaled_dot_product_flash_attention_for_cpu.default",
              {"f32[4,6,5,8]", "f32[4,3,5,8]", "f32[4,3,5,8]"})};
  for (const OpSchema& op : calls) {
    const std::string text = to_string(space_of(op));
    CAPTURE(text);
    CHECK(to_string(testing::value_of(parse_index_space(text))) == text);
  }
  // More factors than letters.
  IndexSpace many;
  Operand wide;
  for (int i = 0; i < 60; ++i) {
    wide.dims.push_back({static_cast<FactorId>(many.add_factor(2))});
  }
  many.inputs = {wide};
  many.outputs = {wide};
  many.seal();
  CHECK(to_string(testing::value_of(parse_index_space(to_string(many)))) ==
        to_string(many));
}

TEST_CASE("what is not an index space is refused") {
  for (const char* text :
       {"", "ab->a", "ab {a=1,b=2}", "ab->a {a=1}", "a->a {a=1,a=2}",
        "a->a {a=x}", "(a->a {a=2}", "a->a {a=2 odd}", "a->a {a=2} b:.->.",
        "a->a {a=2} a:.,.->.", "a->a {a=2} | sum->most",
        "a->a {a=2} | sum,sum->sum"}) {
    CAPTURE(text);
    CHECK_CODE(parse_index_space(text), ErrorCode::kIndexSpaceSyntax);
  }
}

}  // namespace
}  // namespace shardprop
