// Prices of single operators on one rank, beside counts by hand.
#include <shardprop/strategy/op_cost.h>

#include "strategy/applied.h"

#include <shardprop/mesh/product_cost.h>

#include <cmath>

namespace shardprop {
namespace {

using testing::applied;
using testing::applied_to;
using testing::Strategies;

// Of the operator as it stands, on one rank of a DGX H100.
std::int64_t price(OpSchema op, InputStorage storage = InputStorage::kTakenOver,
                   const Topology& topology = default_topology()) {
  const Strategies one(std::move(op), "1");
  REQUIRE(!one.texts().empty());
  return compute_nanoseconds(one.context(one.texts()[0]), topology, storage);
}

// At the share of the peaks that kernels reach.
double microseconds_of(double flops, double bytes) {
  return std::max(flops / (0.7 * 989e6), bytes / (0.7 * 3350e3));
}

OpSchema flash_forward() {
  return applied(
      "aten._scaled_dot_product_flash_attention.default",
      {"bf16[8,32,2048,128]", "bf16[8,32,2048,128]", "bf16[8,32,2048,128]"},
      {{"is_causal", true}});
}

OpSchema flash_backward() {
  std::vector<GivenArgument> given;
  const char* tensors[] = {
      "grad_out",  "query",     "key",       "value",       "out",
      "logsumexp", "cum_seq_q", "cum_seq_k", "philox_seed", "philox_offset"};
  std::int32_t at = 0;
  for (const char* name : tensors) given.push_back({name, TensorArg{at++}});
  given.push_back({"max_q", std::int64_t{2048}});
  given.push_back({"max_k", std::int64_t{2048}});
  given.push_back({"dropout_p", 0.0});
  given.push_back({"is_causal", true});
  const char* heads = "bf16[8,32,2048,128]";
  return applied_to("aten._scaled_dot_product_flash_attention_backward.default",
                    std::move(given),
                    {heads, heads, heads, heads, heads, "f32[8,32,2048]",
                     "i32[0]", "i32[0]", "u64[2]", "u64[]"});
}

TEST_CASE("attention runs at the rate of what it multiplies") {
  // Two products of [2048,128] and [2048,2048] a head, half of them masked.
  const double forward = 8 * 32 * 2 * 2.0 * 2048 * 2048 * 128 / 2;
  const auto one = static_cast<double>(price(flash_forward()));
  CHECK(one == doctest::Approx(1e3 * forward / (0.35 * 989e6)).epsilon(0.01));
  // A machine that says nothing of attention runs it as other products.
  Topology silent = default_topology();
  silent.attention_efficiency.value = 0;
  CHECK(static_cast<double>(
            price(flash_forward(), InputStorage::kTakenOver, silent)) ==
        doctest::Approx(1e3 * microseconds_of(forward, 0)).epsilon(0.01));
  // Five products; the statistics beside them are f32.
  const auto back = static_cast<double>(price(flash_backward()));
  CHECK(back / one > 2.25);
  CHECK(back / one < 2.75);
}

TEST_CASE("of a causal mask's rows the last rank has most to do") {
  const auto over = [](const char* mesh, const char* strategy) {
    const Strategies rows(flash_forward(), mesh);
    return static_cast<double>(
        compute_nanoseconds(rows.context(strategy), default_topology()));
  };
  const auto whole = static_cast<double>(price(flash_forward()));
  CHECK(over("2", "S(2),R,R->S(2),S(2),R,R,R") / whole ==
        doctest::Approx(3.0 / 4).epsilon(0.01));
  CHECK(over("4", "S(2),R,R->S(2),S(2),R,R,R") / whole ==
        doctest::Approx(7.0 / 16).epsilon(0.01));
  CHECK(over("4", "S(1),S(1),S(1)->S(1),S(1),R,R,R") / whole ==
        doctest::Approx(1.0 / 4).epsilon(0.01));
}

TEST_CASE("a bias does not change the rate of a product") {
  const std::int64_t plain =
      price(applied("aten.mm.default", {"bf16[8192,4096]", "bf16[4096,8192]"}));
  const std::int64_t biased =
      price(applied("aten.addmm.default",
                    {"bf16[8192]", "bf16[8192,4096]", "bf16[4096,8192]"}));
  CHECK(biased == plain);
  CHECK(price(applied("aten.mm.default",
                      {"f32[8192,4096]", "f32[4096,8192]"})) > 10 * plain);
}

TEST_CASE("products lose what their tiles and rounds of tiles leave idle") {
  const Topology& h100 = default_topology();
  const auto busy = [&](double rows, double columns, double depth) {
    const ProductShape shape{.rows = rows, .columns = columns, .depth = depth};
    return product_cost(h100, MathClass::kF16, shape).flops /
           (2 * rows * columns * depth);
  };
  // 2048 tiles in 16 rounds of 132: 2112 would fit.
  CHECK(busy(8192, 8192, 8192) == doctest::Approx(2112.0 / 2048));
  // One tile more than a round takes twice as long.
  CHECK(busy(128 * 132, 256, 4096) == doctest::Approx(1));
  CHECK(busy(128 * 133, 256, 4096) > 1.2);
  // A row over the edge of a tile takes as long as a tile's rows.
  CHECK(busy(128 * 132 + 1, 256, 4096) > 1.2);
  // Few tiles leave most of the device idle; splitting a long sum helps.
  CHECK(busy(128, 128, 512) > 30);
  CHECK(busy(128, 128, 65536) < 20);
  CHECK(busy(8, 4096, 4096) > 4);
  // Never less than the operations, whatever the shape.
  for (const double rows : {1.0, 7.0, 64.0, 300.0, 5000.0}) {
    for (const double columns : {1.0, 17.0, 640.0, 50257.0}) {
      for (const double depth : {1.0, 80.0, 768.0, 40000.0}) {
        CHECK(busy(rows, columns, depth) >= 1 - 1e-12);
      }
    }
  }
  // Plain f32 units need less of each number that they load: small tiles run
  // at the full rate.
  const ProductShape ragged{.rows = 130, .columns = 130, .depth = 65536};
  CHECK(product_cost(h100, MathClass::kF32, ragged).flops <
        product_cost(h100, MathClass::kF16, ragged).flops);
  Topology untiled = h100;
  untiled.multiprocessors.value = 0;
  CHECK(product_cost(untiled, MathClass::kF16,
                     {.rows = 3, .columns = 5, .depth = 7})
            .flops == 2 * 3 * 5 * 7);
}

TEST_CASE("convolutions are products of places and channels") {
  const std::vector<GivenArgument> settings = {
      {"stride", std::vector<std::int64_t>{1, 1}},
      {"padding", std::vector<std::int64_t>{1, 1}},
      {"dilation", std::vector<std::int64_t>{1, 1}},
      {"transposed", false},
      {"output_padding", std::vector<std::int64_t>{0, 0}},
      {"groups", std::int64_t{1}}};
  const std::vector<GivenArgument> tensors = {
      {"input", TensorArg{0}}, {"weight", TensorArg{1}}, {"bias", TensorArg{}}};
  std::vector<GivenArgument> given = tensors;
  given.insert(given.end(), settings.begin(), settings.end());
  const OpSchema op = applied_to("aten.convolution.default", given,
                                 {"f16[256,256,56,56]", "f16[256,256,3,3]"});
  const double products = 2.0 * 256 * 56 * 56 * 256 * 256 * 9;
  const double expected = 1e3 * microseconds_of(products, 0);
  const auto found = static_cast<double>(price(op));
  CHECK(found >= expected);
  CHECK(found < 1.1 * expected);
}

TEST_CASE("a token written into a cache costs the token") {
  const std::vector<GivenArgument> at = {{"dim", std::int64_t{2}}};
  std::vector<GivenArgument> given = {{"self", TensorArg{0}},
                                      {"dim", std::int64_t{2}},
                                      {"index", TensorArg{1}},
                                      {"source", TensorArg{2}}};
  const OpSchema op =
      applied_to("aten.index_copy.default", given,
                 {"f32[64,32,4096,128]", "i64[1]", "f32[64,32,1,128]"});
  CHECK(price(op) == 7000);  // a launch
  // Where the cache is needed as it was, all of it is copied: 4 GiB twice.
  const double copied = 1e3 * microseconds_of(0, 2 * std::ldexp(1, 32));
  CHECK(static_cast<double>(price(op, InputStorage::kKept)) ==
        doctest::Approx(copied).epsilon(0.01));
}

TEST_CASE("every write into a part says so") {
  const auto into = [](std::string_view name, std::vector<GivenArgument> given,
                       const std::vector<std::string_view>& tensors) {
    return testing::space_of(applied_to(name, std::move(given), tensors))
        .writes_into;
  };
  const GivenArgument self{"self", TensorArg{0}};
  CHECK(into("aten.slice_scatter.default",
             {self,
              {"src", TensorArg{1}},
              {"dim", std::int64_t{1}},
              {"start", std::int64_t{3}},
              {"end", std::int64_t{4}}},
             {"f32[2,64,8]", "f32[2,1,8]"}) == 0);
  CHECK(into("aten.index_put.default",
             {self,
              {"indices", std::vector<TensorArg>{TensorArg{}, TensorArg{1}}},
              {"values", TensorArg{2}}},
             {"f32[2,64,8]", "i64[1]", "f32[2,1,8]"}) == 0);
  CHECK(into("aten.scatter.src",
             {self,
              {"dim", std::int64_t{1}},
              {"index", TensorArg{1}},
              {"src", TensorArg{2}}},
             {"f32[2,64]", "i64[2,1]", "f32[2,1]"}) == 0);
  CHECK(into("aten.relu.default", {self}, {"f32[2,64]"}) ==
        IndexSpace::kNothing);
}

}  // namespace
}  // namespace shardprop
