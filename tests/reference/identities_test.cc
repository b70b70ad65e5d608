// Tests identities between operators on random values: each side runs through
// other parts of the reference.

#include "reference/evaluated.h"

#include <random>

namespace shardprop {
namespace {

using testing::check_near;
using testing::evaluated;
using testing::Given;
using testing::Numbers;
using Ints = std::vector<std::int64_t>;

Numbers drawn(std::size_t count, std::mt19937& draw) {
  std::normal_distribution<double> normal;
  Numbers out(count);
  for (double& x : out) x = normal(draw);
  return out;
}

// The slope of sum(g * f(x)) along each element of x, by differences.
template <class F>
Numbers slopes(Numbers x, const Numbers& g, F&& f) {
  constexpr double kStep = 1e-6;
  Numbers out;
  for (double& element : x) {
    const double at = element;
    double sums[2];
    for (const int side : {0, 1}) {
      element = at + (side == 0 ? -kStep : kStep);
      const Numbers y = f(x);
      sums[side] = 0;
      for (std::size_t i = 0; i < y.size(); ++i) sums[side] += g[i] * y[i];
    }
    element = at;
    out.push_back((sums[1] - sums[0]) / (2 * kStep));
  }
  return out;
}

TEST_CASE("a product of sums is a sum of products") {
  std::mt19937 draw(1);
  const Given a{"f64[3,4]", drawn(12, draw)};
  const Given b{"f64[4,2]", drawn(8, draw)};
  const Given c{"f64[4,2]", drawn(8, draw)};
  const Numbers sum = evaluated("aten.add.Tensor", {b, c});
  const Numbers ab = evaluated("aten.mm.default", {a, b});
  const Numbers ac = evaluated("aten.mm.default", {a, c});
  check_near(
      evaluated("aten.mm.default", {a, {"f64[4,2]", sum}}),
      evaluated("aten.add.Tensor", {{"f64[3,2]", ab}, {"f64[3,2]", ac}}));
}

TEST_CASE("gradients of convolution and attention are slopes") {
  std::mt19937 draw(2);
  const std::vector<GivenArgument> settings = {
      {"stride", Ints{2}},         {"padding", Ints{1}},
      {"dilation", Ints{1}},       {"transposed", false},
      {"output_padding", Ints{0}}, {"groups", std::int64_t{2}}};
  const Numbers x = drawn(2 * 4 * 5, draw);
  const Numbers w = drawn(2 * 2 * 3, draw);
  const Numbers g = drawn(2 * 2 * 3, draw);
  auto forward = settings;
  forward.insert(forward.begin(), {"bias", NoneArg{}});
  auto backward = settings;
  backward.insert(backward.begin(), {"bias_sizes", NoneArg{}});
  backward.push_back({"output_mask", std::vector<bool>{true, true, false}});
  const auto of_image = [&](const Numbers& image) {
    return evaluated("aten.convolution.default",
                     {{"f64[2,4,5]", image}, {"f64[2,2,3]", w}}, forward);
  };
  check_near(
      evaluated("aten.convolution_backward.default",
                {{"f64[2,2,3]", g}, {"f64[2,4,5]", x}, {"f64[2,2,3]", w}},
                backward),
      slopes(x, g, of_image), 1e-6);

  const Numbers q = drawn(2 * 3 * 2, draw);
  const Numbers k = drawn(2 * 4 * 2, draw);
  const Numbers v = drawn(2 * 4 * 2, draw);
  const Numbers go = drawn(q.size(), draw);
  const auto attended = [&](const Numbers& query, std::size_t result) {
    return evaluated(
        "aten._scaled_dot_product_flash_attention_for_cpu.default",
        {{"f64[1,2,3,2]", query}, {"f64[1,2,4,2]", k}, {"f64[1,2,4,2]", v}},
        {{"is_causal", true}}, result);
  };
  check_near(
      evaluated("aten._scaled_dot_product_flash_attention_for_cpu_backward."
                "default",
                {{"f64[1,2,3,2]", go},
                 {"f64[1,2,3,2]", q},
                 {"f64[1,2,4,2]", k},
                 {"f64[1,2,4,2]", v},
                 {"f64[1,2,3,2]", attended(q, 0)},
                 {"f64[1,2,3]", attended(q, 1)}},
                {{"dropout_p", 0.0}, {"is_causal", true}}),
      slopes(q, go, [&](const Numbers& query) { return attended(query, 0); }),
      1e-6);
}

TEST_CASE("what is sorted is gathered by its places") {
  std::mt19937 draw(3);
  const Given x{"f64[3,5]", drawn(15, draw)};
  const std::vector<GivenArgument> dim = {{"dim", std::int64_t{1}}};
  const Numbers places = evaluated("aten.sort.default", {x}, dim, 1);
  check_near(evaluated("aten.gather.default", {x, {"i64[3,5]", places}}, dim),
             evaluated("aten.sort.default", {x}, dim));
}

TEST_CASE("a sum of parts is the last of the running sums") {
  std::mt19937 draw(4);
  const Given x{"f64[2,6]", drawn(12, draw)};
  const Numbers running =
      evaluated("aten.cumsum.default", {x}, {{"dim", std::int64_t{1}}});
  check_near(evaluated("aten.sum.dim_IntList", {x}, {{"dim", Ints{1}}}),
             {running[5], running[11]});
}

}  // namespace
}  // namespace shardprop
