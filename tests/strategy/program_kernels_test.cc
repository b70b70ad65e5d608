// Compares the kernels of local programs with counts by hand.
#include "strategy/program_kernels.h"

#include "strategy/applied.h"

#include <cstdint>
#include <string>
#include <vector>

namespace shardprop {
namespace {

using testing::applied_to;
using testing::Strategies;

constexpr double kRows = 1 << 10;    // f32[256,1]
constexpr double kWeight = 4 << 10;  // f32[1024], a quarter of it
constexpr double kPart = 1 << 20;    // f32[256,1024], a quarter of it
const char* const kCut = "S(1),S(0),S(0)->S(1),R,R";

OpSchema layer_norm(const std::string& rows) {
  return applied_to("aten.native_layer_norm.default",
                    {{"input", TensorArg{0}},
                     {"normalized_shape", std::vector<std::int64_t>{4096}},
                     {"weight", TensorArg{1}},
                     {"bias", TensorArg{2}},
                     {"eps", 1e-5}},
                    {"f32[" + rows + ",4096]", "f32[4096]", "f32[4096]"});
}

OpSchema batch_norm() {
  return applied_to(
      "aten._native_batch_norm_legit_functional.default",
      {{"input", TensorArg{0}},
       {"weight", TensorArg{1}},
       {"bias", TensorArg{2}},
       {"running_mean", TensorArg{3}},
       {"running_var", TensorArg{4}},
       {"training", true},
       {"momentum", 0.1},
       {"eps", 1e-5}},
      {"f32[64,16,8,8]", "f32[16]", "f32[16]", "f32[16]", "f32[16]"});
}

TEST_CASE("a layer norm over a cut dim is three kernels when fused") {
  const Strategies norm(layer_norm("256"), "4");
  // The sum of the rows; that of the squares; the result and 1/deviation.
  CHECK(program_kernels(norm.context(kCut), StepFusion::kBetweenCollectives) ==
        std::vector<double>{kPart + kRows, kPart + 2 * kRows,
                            kPart + 2 * kRows + 2 * kWeight + kPart + kRows});
}

TEST_CASE("each step of a layer norm over a cut dim is a kernel when not") {
  const Strategies norm(layer_norm("256"), "4");
  const double small = 2 * kRows;
  CHECK(program_kernels(norm.context(kCut), StepFusion::kEachStep) ==
        std::vector<double>{kPart + kRows,          // the sum
                            small,                  // the mean
                            2 * kPart + kRows,      // less the mean
                            2 * kPart,              // squared
                            kPart + kRows,          // summed
                            small,                  // the variance
                            small,                  // and eps
                            small,                  // its root
                            2 * kPart + kRows,      // normalized
                            2 * kPart + kWeight,    // times the weight
                            2 * kPart + kWeight});  // and the bias
}

TEST_CASE("each kernel of a program takes a launch, or what it moves") {
  const Topology& h100 = default_topology();
  const auto price = [&](const std::string& rows, StepFusion fusion) {
    const Strategies norm(layer_norm(rows), "4");
    return compute_nanoseconds(norm.context(kCut), h100,
                               InputStorage::kTakenOver, fusion);
  };
  CHECK(price("256", StepFusion::kBetweenCollectives) ==
        3 * launch_nanoseconds(h100));
  CHECK(price("256", StepFusion::kEachStep) == 11 * launch_nanoseconds(h100));
  // 1 GiB a rank: four passes over it, three of them reading.
  const double large = 1024 * kPart;
  CHECK(
      static_cast<double>(price("262144", StepFusion::kBetweenCollectives)) ==
      doctest::Approx(static_cast<double>(traffic_nanoseconds(h100, 4 * large)))
          .epsilon(0.01));
  CHECK(static_cast<double>(price("262144", StepFusion::kEachStep)) ==
        doctest::Approx(
            static_cast<double>(11 * ramp_nanoseconds(h100) +
                                traffic_nanoseconds(h100, 12 * large)))
            .epsilon(0.01));
}

TEST_CASE("views in a batch norm's program count nothing") {
  const Strategies norm(batch_norm(), "4");
  const LocalContext cut = norm.context("S(0),R,R,R,R->S(0),R,R,R,R");
  CHECK(program_kernels(cut, StepFusion::kBetweenCollectives).size() == 3);
  // The program has 25 steps, and 7 of them are views.
  CHECK(program_kernels(cut, StepFusion::kEachStep).size() == 18);
}

}  // namespace
}  // namespace shardprop
