// Fits of rates to measured matmuls and to the kernels of measured steps.
#include <shardprop/mesh/kernel_fit.h>

#include "support/result_checks.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;

TEST_CASE("a table of matmuls has rows of four numbers or named columns") {
  const std::vector<MatmulSample> expected = {{16, 4096, 8192, 25.5},
                                              {1, 8, 64, 3}};
  CHECK(value_of(parse_matmuls("# a comment, with commas\n"
                               "16 4096 8192 25.5\n\n 1\t8 64 3\r\n")) ==
        expected);
  CHECK(value_of(parse_matmuls("device,gemm_dtype,m,n,k,latency\n"
                               "H100,bfloat16,16,4096,8192,0.0255\n"
                               "H100,fp8,16,4096,8192,0.0125\n"
                               "H100,float16,1,8,64,0.003\n")) == expected);
  CHECK(value_of(parse_matmuls("")).empty());
}

TEST_CASE("a row that is no measured matmul is reported with its line") {
  for (const char* text :
       {"16 4096 8192", "16 4096 8192 0", "16 4096 -8192 3", "16 4096 nan 3",
        "m,n,k\n1,2,3", "m,n,k,latency\n1,2,3,x"}) {
    CAPTURE(text);
    CHECK_CODE(parse_matmuls(text), ErrorCode::kMeasurementTable);
  }
  const auto made = parse_matmuls("1 8 64 3\n# two\n16 4096 8192\n");
  REQUIRE_FALSE(made.has_value());
  CHECK(made.error().location == "line 3");
}

TEST_CASE("a fit finds the rates with which matmuls were made") {
  Topology device = default_topology();
  device.efficiency.value = 0.61;
  device.memory_efficiency.value = 0.93;
  device.ramp_us.value = 2.5;
  device.launch_us.value = 0;
  device.sustained.value = 0;
  std::vector<MatmulSample> samples;
  for (const double rows : {1.0, 64.0, 1000.0, 4096.0, 16384.0}) {
    for (const double columns : {1024.0, 4096.0, 12000.0}) {
      samples.push_back({rows, columns, 8192, 0});
      samples.back().microseconds = matmul_microseconds(device, samples.back());
    }
  }
  const RateFit fit = value_of(fit_matmul_rates(default_topology(), samples));
  CHECK(fit.efficiency == doctest::Approx(0.61));
  CHECK(fit.memory_efficiency == doctest::Approx(0.93));
  CHECK(fit.ramp_us == doctest::Approx(2.5));
  CHECK(fit.mean_error < 1e-3);
  samples.resize(7);
  CHECK_CODE(fit_matmul_rates(default_topology(), samples),
             ErrorCode::kMeasurementTable);
}

TEST_CASE("the rates of every preset follow from the samples in its file") {
  int fitted = 0;
  for (const Topology& preset : topology_presets()) {
    CAPTURE(preset.name);
    const PresetSamples samples = value_of(preset_samples(preset.name));
    if (samples.matmuls.empty()) continue;
    ++fitted;
    CHECK_FALSE(samples.source.empty());
    const RateFit fit = value_of(fit_matmul_rates(preset, samples.matmuls));
    CHECK(fit.efficiency == preset.efficiency.value);
    CHECK(fit.memory_efficiency == preset.memory_efficiency.value);
    CHECK(fit.ramp_us == preset.ramp_us.value);
    CHECK(fit.mean_error < 0.1);
  }
  CHECK(fitted == 7);
  CHECK_CODE(preset_samples("dgx-h1"), ErrorCode::kTopologyUnknown);
}

// The median of |ln(predicted / measured)| on a preset.
double median_error(const char* preset,
                    const std::vector<MatmulSample>& samples) {
  Topology topology = value_of(find_topology(preset));
  topology.sustained.value = 0;  // single kernels
  std::vector<double> errors;
  for (const MatmulSample& sample : samples) {
    errors.push_back(std::abs(
        std::log(matmul_microseconds(topology, sample) / sample.microseconds)));
  }
  std::sort(errors.begin(), errors.end());
  return errors[errors.size() / 2];
}

TEST_CASE("matmuls that no fit has seen take the time that was measured") {
  // Source: aiconfigurator-core 0.12.0, as the samples of the presets.
  CHECK(median_error("dgx-a100", {{2048, 6144, 4096, 408.0},
                                  {512, 6144, 4096, 103.8},
                                  {128, 6144, 4096, 48.0},
                                  {32, 6144, 4096, 39.0},
                                  {2048, 5120, 5120, 380.9},
                                  {512, 5120, 5120, 127.6},
                                  {128, 5120, 5120, 55.1},
                                  {32, 5120, 5120, 46.4},
                                  {2048, 16384, 4096, 1037.4},
                                  {512, 16384, 4096, 305.2},
                                  {128, 16384, 4096, 107.6},
                                  {32, 16384, 4096, 102.1}}) < 0.1);
  CHECK(median_error("dgx-h100", {{128, 6144, 4096, 22.5},
                                  {32, 6144, 4096, 22.8},
                                  {2048, 6144, 4096, 142.6},
                                  {512, 6144, 4096, 36.4},
                                  {2048, 5120, 5120, 138.7},
                                  {512, 5120, 5120, 39.2},
                                  {128, 5120, 5120, 24.1},
                                  {32, 5120, 5120, 23.0},
                                  {2048, 16384, 4096, 346.9},
                                  {32, 16384, 4096, 51.5},
                                  {128, 16384, 4096, 54.6},
                                  {512, 16384, 4096, 92.0}}) < 0.1);
  CHECK(median_error("dgx-h200", {{2048, 6144, 4096, 139.6},
                                  {512, 6144, 4096, 36.1},
                                  {128, 6144, 4096, 17.8},
                                  {32, 6144, 4096, 17.2},
                                  {2048, 5120, 5120, 138.6},
                                  {512, 5120, 5120, 39.0},
                                  {128, 5120, 5120, 18.6},
                                  {32, 5120, 5120, 17.0},
                                  {512, 16384, 4096, 91.6},
                                  {128, 16384, 4096, 39.3},
                                  {2048, 16384, 4096, 351.6},
                                  {32, 16384, 4096, 36.2}}) < 0.1);
  CHECK(median_error("dgx-b200", {{2048, 6144, 4096, 68.1},
                                  {512, 6144, 4096, 21.3},
                                  {128, 6144, 4096, 11.9},
                                  {32, 6144, 4096, 11.2},
                                  {2048, 5120, 5120, 67.4},
                                  {512, 5120, 5120, 20.1},
                                  {128, 5120, 5120, 12.7},
                                  {32, 5120, 5120, 13.7},
                                  {2048, 16384, 4096, 167.2},
                                  {128, 16384, 4096, 27.2},
                                  {32, 16384, 4096, 27.4},
                                  {512, 16384, 4096, 50.0}}) < 0.2);
  CHECK(median_error("gb300-nvl72", {{2048, 6144, 4096, 57.5},
                                     {512, 6144, 4096, 17.9},
                                     {128, 6144, 4096, 11.1},
                                     {32, 6144, 4096, 11.2},
                                     {2048, 5120, 5120, 57.8},
                                     {512, 5120, 5120, 18.9},
                                     {128, 5120, 5120, 13.2},
                                     {32, 5120, 5120, 13.5},
                                     {2048, 16384, 4096, 139.9},
                                     {512, 16384, 4096, 43.0},
                                     {128, 16384, 4096, 25.4},
                                     {32, 16384, 4096, 24.1}}) < 0.1);
}

TEST_CASE("matmuls of few rows take the time to read the weight") {
  const Topology& h100 = default_topology();
  // 59 MB of weights at the rate of the memory, and the ramp.
  const double read = 2 * 8192 * 3584 / h100.memory_rate() * 1e6;
  const double found =
      matmul_microseconds(h100, {.rows = 64, .columns = 3584, .depth = 8192});
  CHECK(found > read + h100.ramp_us.value);
  CHECK(found < 1.2 * (read + h100.ramp_us.value));
}

TEST_CASE("steps correct the rates of the kernels that they measure") {
  const auto times =
      value_of(parse_step_times("# kind measured predicted\n"
                                "attention 31.65 44.47\n"
                                "attention 8.81 11.12\n"
                                "attention 2.17 2.78\n"
                                "matmul 2.0 1.8\n"
                                "eager-memory 2.0 1.0\n"));
  Topology base = default_topology();
  base.attention_efficiency.value = 0.35;
  base.memory_efficiency.value = 0.9;
  base.sustained.value = 0;
  base.eager_memory_efficiency.value = 0;
  const Topology fitted = with_step_rates(base, times, "the table");
  CHECK(fitted.attention_efficiency.value ==
        doctest::Approx(0.35 * 2.78 / 2.17));
  CHECK(fitted.attention_efficiency.source == "the table");
  CHECK(fitted.eager_memory_efficiency.value == doctest::Approx(0.45));
  CHECK(fitted.sustained.value == doctest::Approx(0.9));
  CHECK(fitted.efficiency == base.efficiency);
  CHECK(fitted.memory_efficiency == base.memory_efficiency);
  for (const char* text : {"attention 3", "passes 3 4", "matmul 0 4",
                           "matmul 4 -1", "matmul 1 2 3"}) {
    CAPTURE(text);
    CHECK_CODE(parse_step_times(text), ErrorCode::kMeasurementTable);
  }
}

}  // namespace
}  // namespace shardprop
