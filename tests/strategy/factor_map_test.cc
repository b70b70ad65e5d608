// The forms of a rule, worked out: einsum, pointwise, reduction, along, view.
#include <shardprop/strategy/factor_map.h>

#include "strategy/applied.h"

#include <string>
#include <vector>

namespace shardprop {
namespace {

using testing::applied;
using testing::in_words;
using testing::map_of;
using testing::sizes_of;

using Sizes = std::vector<std::int64_t>;
using Ints = std::vector<std::int64_t>;

// What sharding the factor makes of output 0; "blocked" where nothing is said.
std::string without(const FactorMap& map, std::size_t factor) {
  const auto& placement = map.outputs_without[0][factor];
  return placement ? to_string(*placement) : "blocked";
}

FactorMap view_map(std::string_view from, Ints size) {
  return map_of(applied("aten.view.default", {from}, {{"size", size}}));
}

TEST_CASE("einsum: letters are factors, a missing one is summed") {
  const FactorMap mm =
      map_of(applied("aten.mm.default", {"f32[16,8]", "f32[8,4]"}));
  CHECK(in_words(mm) == "[a][b],[b][c]->[a][c]");
  CHECK(sizes_of(mm) == Sizes{16, 8, 4});
  CHECK(without(mm, 1) == "P(sum)");

  const FactorMap bmm =
      map_of(applied("aten.bmm.default", {"f32[3,2,5]", "f32[3,5,7]"}));
  CHECK(in_words(bmm) == "[a][b][c],[a][c][d]->[a][b][d]");
  CHECK(sizes_of(bmm) == Sizes{3, 2, 5, 7});
}

TEST_CASE("einsum: an added term broadcasts, and is a term of the sum") {
  const FactorMap addmm = map_of(
      applied("aten.addmm.default", {"f32[4]", "f32[16,8]", "f32[8,4]"}));
  CHECK(in_words(addmm) == "[c],[a][b],[b][c]->[a][c]");
  CHECK(without(addmm, 1) == "P(sum)");
  CHECK(to_string(addmm.inputs_without[0][1]) == "P(sum)");
  CHECK(to_string(addmm.inputs_without[0][0]) == "R");
}

TEST_CASE("einsum: an added dim of 1 says nothing of its letter") {
  const FactorMap addmm = map_of(
      applied("aten.addmm.default", {"f32[1,4]", "f32[16,8]", "f32[8,4]"}));
  CHECK(in_words(addmm) == "[][c],[a][b],[b][c]->[a][c]");
  CHECK(sizes_of(addmm) == Sizes{16, 8, 4});
}

TEST_CASE("einsum: leading dims stand for as many as there are") {
  const FactorMap linear = map_of(
      applied("aten.linear.default", {"f32[4,6,8]", "f32[10,8]", "f32[10]"}));
  CHECK(in_words(linear) == "[a][b][c],[d][c],[d]->[a][b][d]");
}

TEST_CASE("pointwise: operands align on the right, broadcast dims stay whole") {
  const FactorMap add =
      map_of(applied("aten.add.Tensor", {"f32[4,6,8]", "f32[6,1]"}));
  CHECK(in_words(add) == "[a][b][c],[b][]->[a][b][c]");
  CHECK(sizes_of(add) == Sizes{4, 6, 8});
}

TEST_CASE("pointwise: a dim of size 1 has no factor") {
  CHECK(in_words(map_of(applied("aten.exp.default", {"f32[4,1,8]"}))) ==
        "[a][][b]->[a][][b]");
}

TEST_CASE("reduction: reduced dims leave the output, partial by the op") {
  const FactorMap kept =
      map_of(applied("aten.sum.dim_IntList", {"f32[4,6,8]"},
                     {{"dim", Ints{1, -1}}, {"keepdim", true}}));
  CHECK(in_words(kept) == "[a][b][c]->[a][][]");
  CHECK(without(kept, 0) == "blocked");  // held, so never asked
  CHECK(without(kept, 1) == "P(sum)");
  CHECK(without(kept, 2) == "P(sum)");

  const FactorMap mean =
      map_of(applied("aten.mean.dim", {"f32[4,6]"}, {{"dim", Ints{0}}}));
  CHECK(in_words(mean) == "[a][b]->[b]");
  CHECK(without(mean, 0) == "P(avg)");
}

TEST_CASE("reduction: no dims named are all dims") {
  const FactorMap sum =
      map_of(applied("aten.sum.dim_IntList", {"f32[4,6]"}, {{"dim", Ints{}}}));
  CHECK(in_words(sum) == "[a][b]->");
  CHECK(without(sum, 0) == "P(sum)");
  CHECK(without(sum, 1) == "P(sum)");
}

TEST_CASE("a sum of truth values is not linear in them") {
  const OpSchema op =
      applied("aten.sum.dim_IntList", {"bool[4,6]"}, {{"dim", Ints{0}}});
  CHECK(map_of(op).carries.empty());
}

TEST_CASE("along: the dim it runs over stays whole, in every operand") {
  const FactorMap slice =
      map_of(applied("aten.slice.Tensor", {"f32[4,6,8]"},
                     {{"dim", std::int64_t{1}}, {"end", std::int64_t{3}}}));
  CHECK(in_words(slice) == "[a][][b]->[a][][b]");
  // The dim that select takes away is away from its result.
  const FactorMap select =
      map_of(applied("aten.select.int", {"f32[4,6,8]"},
                     {{"dim", std::int64_t{1}}, {"index", std::int64_t{2}}}));
  CHECK(in_words(select) == "[a][][b]->[a][b]");
}

TEST_CASE("along: a slice of everything changes nothing") {
  const FactorMap whole =
      map_of(applied("aten.slice.Tensor", {"f32[4,6]"},
                     {{"dim", std::int64_t{1}}, {"start", std::int64_t{0}}}));
  CHECK(in_words(whole) == "[a][b]->[a][b]");
}

TEST_CASE("view: flattened dims are factors of one dim, major first") {
  const FactorMap flatten = view_map("f32[4,6,8]", {24, 8});
  CHECK(in_words(flatten) == "[a][b][c]->[ab][c]");
  CHECK(sizes_of(flatten) == Sizes{4, 6, 8});
  CHECK(in_words(view_map("f32[24,8]", {4, 6, 8})) == "[ab][c]->[a][b][c]");
}

TEST_CASE("view: sizes that divide in part share their common factors") {
  // 6 x 4 = 24 = 2 x 12: the 2 of the 6, then 3 x 4.
  const FactorMap map = view_map("f32[6,4]", {2, 12});
  CHECK(in_words(map) == "[ab][c]->[a][bc]");
  CHECK(sizes_of(map) == Sizes{2, 3, 4});
}

TEST_CASE("view: a stretch without a common factor can only be held whole") {
  const FactorMap map = view_map("f32[2,3,5]", {3, 2, 5});
  CHECK(in_words(map) == "[a][c][e]->[b][d][e]");
  CHECK_FALSE(map.factors[0].blocked.empty());
  CHECK_FALSE(map.factors[3].blocked.empty());
  CHECK(map.factors[4].blocked.empty());
}

TEST_CASE("view: dims of size 1 come and go") {
  CHECK(in_words(view_map("f32[4,1,6]", {1, 4, 6, 1})) ==
        "[a][][b]->[][a][b][]");
  CHECK(in_words(view_map("f32[0,6]", {6, 0})) == "[][]->[][]");
}

TEST_CASE("convolution: channels are groups times channels of a group") {
  const FactorMap map = map_of(applied("aten.convolution.default",
                                       {"f32[4,6,8,8]", "f32[10,3,3,3]"},
                                       {{"bias", NoneArg{}},
                                        {"stride", Ints{1, 1}},
                                        {"padding", Ints{1, 1}},
                                        {"dilation", Ints{1, 1}},
                                        {"transposed", false},
                                        {"output_padding", Ints{0, 0}},
                                        {"groups", std::int64_t{2}}}));
  // n, group, in, out; space belongs to nobody.
  CHECK(in_words(map) == "[a][bc][][],[bd][c][][]->[a][bd][][]");
  CHECK(without(map, 2) == "P(sum)");
}

TEST_CASE("attention: grouped query heads hold the heads of the keys") {
  const FactorMap map =
      map_of(applied("aten._scaled_dot_product_flash_attention_for_cpu.default",
                     {"f32[4,6,5,8]", "f32[4,3,5,8]", "f32[4,3,5,8]"}));
  CHECK(map.inputs[0].dims[1].size() == 2);
  CHECK(map.inputs[1].dims[1].size() == 1);
  CHECK(map.inputs[0].dims[1][0] == map.inputs[1].dims[1][0]);
}

}  // namespace
}  // namespace shardprop
