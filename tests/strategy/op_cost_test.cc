// Compares prices of single operators on one rank with counts by hand.
#include <shardprop/strategy/op_cost.h>

#include "strategy/applied.h"

#include <shardprop/mesh/product_cost.h>

#include <cmath>

namespace shardprop {
namespace {

using testing::applied;
using testing::applied_to;
using testing::Strategies;

// Returns the cost of the full operator on one rank of a DGX H100.
std::int64_t price(OpSchema op, InputStorage storage = InputStorage::kTakenOver,
                   const Topology& topology = default_topology()) {
  const Strategies one(std::move(op), "1");
  REQUIRE(!one.texts().empty());
  return compute_nanoseconds(one.context(one.texts()[0]), topology, storage);
}

// At the shares of the peaks that kernels reach, after the ramp of 3.9 us.
double microseconds_of(double flops, double bytes) {
  return 3.9 + std::max(flops / (0.92 * 0.84 * 989e6), bytes / (0.86 * 3350e3));
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
  // A head computes two matmuls of [2048,128] and [2048,2048], half of them
  // masked.
  const double forward = 8 * 32 * 2 * 2.0 * 2048 * 2048 * 128 / 2;
  const auto one = static_cast<double>(price(flash_forward()));
  CHECK(one == doctest::Approx(1e3 * forward / (0.49 * 989e6)).epsilon(0.01));
  // Without an attention efficiency, a machine runs attention like other
  // matmuls.
  Topology silent = default_topology();
  silent.attention_efficiency.value = 0;
  CHECK(static_cast<double>(
            price(flash_forward(), InputStorage::kTakenOver, silent)) ==
        doctest::Approx(1e3 * microseconds_of(forward, 0)).epsilon(0.01));
  // The backward pass has five matmuls, and its statistics are f32.
  const auto back = static_cast<double>(price(flash_backward()));
  CHECK(back / one > 2.25);
  CHECK(back / one < 2.75);
}

TEST_CASE("the last rank has the most work under a causal mask") {
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
  // The price is never below the time of the operations, for any shape.
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
  // Convolutions of f32 run in TF32, at half the rate of 16 bits on an H100.
  const OpSchema f32 = applied_to("aten.convolution.default", given,
                                  {"f32[256,256,56,56]", "f32[256,256,3,3]"});
  CHECK(static_cast<double>(price(f32)) ==
        doctest::Approx(3900 + (found - 3900) * 989 / 494).epsilon(0.001));
}

// One of the gradients of a 2-d convolution of f32, as output_mask says.
OpSchema gradients(std::vector<std::string_view> tensors, std::int64_t stride,
                   std::vector<bool> mask, bool transposed = false) {
  using Ints = std::vector<std::int64_t>;
  return applied_to("aten.convolution_backward.default",
                    {{"grad_output", TensorArg{0}},
                     {"input", TensorArg{1}},
                     {"weight", TensorArg{2}},
                     {"bias_sizes", NoneArg{}},
                     {"stride", Ints{stride, stride}},
                     {"padding", Ints{0, 0}},
                     {"dilation", Ints{1, 1}},
                     {"transposed", transposed},
                     {"output_padding", Ints{0, 0}},
                     {"groups", std::int64_t{1}},
                     {"output_mask", std::move(mask)}},
                    tensors);
}

TEST_CASE("gradients of convolutions are products of the shapes they have") {
  const auto expected = [](double rows, double columns, double depth) {
    const ProductCost product =
        product_cost(default_topology(), MathClass::kTf32,
                     {.rows = rows, .columns = columns, .depth = depth});
    const double ramp = default_topology().ramp_us.value * 1e3;
    return doctest::Approx(ramp + product.flops / (0.92 * 0.84 * 494e12) * 1e9)
        .epsilon(0.001);
  };
  const auto found = [](const OpSchema& op) {
    return static_cast<double>(price(op));
  };
  const std::vector<bool> of_image = {true, false, false};
  const std::vector<bool> of_weight = {false, true, false};
  // The convolution window counts to the image's side of the matmul: 3 channels
  // alone would leave most of a tile idle.
  const std::vector<std::string_view> stem = {
      "f32[32,64,109,109]", "f32[32,3,224,224]", "f32[64,3,7,7]"};
  CHECK(found(gradients(stem, 2, of_weight)) ==
        expected(64, 3 * 7 * 7, 32 * 109 * 109));
  // A window of one point is none; places are still summed over.
  const std::vector<std::string_view> point = {
      "f32[32,2048,14,14]", "f32[32,1024,14,14]", "f32[2048,1024,1,1]"};
  CHECK(found(gradients(point, 1, of_weight)) ==
        expected(2048, 1024, 32 * 14 * 14));
  CHECK(found(gradients(point, 1, of_image)) ==
        expected(32 * 14 * 14, 1024, 2048));
  // Patches that do not overlap, cut as their image is.
  const std::vector<std::string_view> patches = {
      "f32[32,1024,14,14]", "f32[32,3,224,224]", "f32[1024,3,16,16]"};
  CHECK(found(gradients(patches, 16, of_weight)) ==
        expected(1024, 3 * 16 * 16, 32 * 14 * 14));
  // In a transposed convolution the weight is applied to the gradient, once for
  // each input.
  const std::vector<std::string_view> upwards = {
      "f32[8,1024,28,28]", "f32[8,2048,14,14]", "f32[2048,1024,2,2]"};
  CHECK(found(gradients(upwards, 2, of_weight, true)) ==
        expected(1024 * 2 * 2, 2048, 8 * 14 * 14));
  CHECK(found(gradients(upwards, 2, of_image, true)) ==
        expected(8 * 14 * 14, 2048, 1024 * 2 * 2));
  CHECK(found(applied("aten.conv_transpose2d.input",
                      {"f32[8,2048,14,14]", "f32[2048,1024,2,2]"},
                      {{"stride", std::vector<std::int64_t>{2, 2}}})) ==
        expected(8 * 14 * 14, 1024, 2048 * 2 * 2));
}

// Returns an einsum of bf16 tensors.
OpSchema einsum_of(const char* equation,
                   std::vector<std::string_view> tensors) {
  std::vector<TensorArg> operands;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    operands.push_back(TensorArg{static_cast<std::int32_t>(i)});
  }
  return applied_to(
      "aten.einsum.default",
      {{"equation", std::string(equation)}, {"tensors", std::move(operands)}},
      tensors);
}

TEST_CASE("three factors are multiplied two at a time, in the best order") {
  // In the order that is written [8192,1024] x [1024,8192] would be multiplied by
  // the third; the last two first are less.
  const double by_hand = 2.0 * 1024 * 8192 * 8192 + 2.0 * 8192 * 1024 * 8192;
  const auto found = static_cast<double>(
      price(einsum_of("ab,bc,cd->ad", {"bf16[8192,1024]", "bf16[1024,8192]",
                                       "bf16[8192,8192]"})));
  CHECK(found ==
        doctest::Approx(1e3 * microseconds_of(by_hand, 0)).epsilon(0.01));
  const OpSchema chain = applied_to(
      "aten.linalg_multi_dot.default",
      {{"tensors",
        std::vector<TensorArg>{TensorArg{0}, TensorArg{1}, TensorArg{2}}}},
      {"bf16[8192,1024]", "bf16[1024,8192]", "bf16[8192,8192]"});
  CHECK(static_cast<double>(price(chain)) == found);
  // A factor of one matmul alone shards that matmul and leaves the other as it
  // is.
  const Strategies two(chain, "2");
  const auto rows = static_cast<double>(
      compute_nanoseconds(two.context("S(0),R,R->S(0)"), default_topology()));
  CHECK(rows / found == doctest::Approx(3.0 / 4).epsilon(0.01));
}

TEST_CASE("a token is multiplied by the weights of one expert") {
  const OpSchema op = applied_to(
      "aten._grouped_mm.default",
      {{"self", TensorArg{0}}, {"mat2", TensorArg{1}}, {"offs", TensorArg{2}}},
      {"bf16[65536,4096]", "bf16[64,4096,4096]", "i32[64]"});
  const double by_hand = 2.0 * 65536 * 4096 * 4096;
  CHECK(static_cast<double>(price(op)) ==
        doctest::Approx(1e3 * microseconds_of(by_hand, 0)).epsilon(0.01));
}

TEST_CASE("a recurrent network multiplies in every step of time") {
  std::vector<GivenArgument> given = {
      {"input", TensorArg{0}},
      {"hx", std::vector<TensorArg>{TensorArg{1}, TensorArg{2}}},
      {"params", std::vector<TensorArg>{TensorArg{3}, TensorArg{4},
                                        TensorArg{5}, TensorArg{6}}},
      {"has_biases", true},
      {"num_layers", std::int64_t{1}},
      {"dropout", 0.0},
      {"train", false},
      {"bidirectional", false},
      {"batch_first", true}};
  const OpSchema op = applied_to(
      "aten.lstm.input", given,
      {"bf16[256,512,1024]", "bf16[1,256,2048]", "bf16[1,256,2048]",
       "bf16[8192,1024]", "bf16[8192,2048]", "bf16[8192]", "bf16[8192]"});
  const double by_hand = 2.0 * 256 * 512 * 8192 * (1024 + 2048);
  CHECK(static_cast<double>(price(op)) ==
        doctest::Approx(1e3 * microseconds_of(by_hand, 0)).epsilon(0.01));
}

TEST_CASE("linear algebra grows with the cube of its matrices") {
  const auto f32_microseconds = [](double flops) {
    return flops /
           (0.92 * 0.84 * default_topology().flops(MathClass::kF32) / 1e6);
  };
  const double cube = std::pow(2048.0, 3);
  const auto of = [](const char* name, std::vector<std::string_view> tensors) {
    return static_cast<double>(price(applied(name, std::move(tensors))));
  };
  CHECK(of("aten.linalg_inv_ex.default", {"f32[16,2048,2048]"}) ==
        doctest::Approx(1e3 * f32_microseconds(16 * 2 * cube)).epsilon(0.01));
  CHECK(of("aten.linalg_cholesky.default", {"f32[16,2048,2048]"}) ==
        doctest::Approx(1e3 * f32_microseconds(16 * cube / 3)).epsilon(0.01));
  // A solve computes a factorisation, and two substitutions for each of 512
  // columns.
  CHECK(of("aten.linalg_solve.default",
           {"f32[16,2048,2048]", "f32[16,2048,512]"}) ==
        doctest::Approx(1e3 * f32_microseconds(
                                  16 * (2 * cube / 3 + 2 * 2048. * 2048 * 512)))
            .epsilon(0.01));
}

TEST_CASE("losses of classes read the classes that are named, or all") {
  const auto loss = [](const char* name) {
    return static_cast<double>(
        price(applied(name, {"f32[65536,128256]", "i64[65536]"})));
  };
  // A sample reads one of 128256 log-probabilities.
  CHECK(loss("aten.nll_loss_nd.default") == 7000);  // a launch
  const double all = 65536.0 * 128256 * 4;
  CHECK(loss("aten.cross_entropy_loss.default") ==
        doctest::Approx(1e3 * microseconds_of(0, all)).epsilon(0.01));
}

TEST_CASE("lookups read the rows that they find") {
  // 2^20 rows of 128 floats out of 2^26, summed in bags of 64.
  const OpSchema bags =
      applied_to("aten.embedding_bag.default",
                 {{"weight", TensorArg{0}},
                  {"indices", TensorArg{1}},
                  {"offsets", TensorArg{2}}},
                 {"f32[67108864,128]", "i64[1048576]", "i64[16384]"});
  const double rows = 1048576.0 * 128 * 4;
  const auto found = static_cast<double>(price(bags));
  CHECK(found >= 1e3 * microseconds_of(0, rows));
  CHECK(found < 1.2e3 * microseconds_of(0, rows));
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
