// `fit_matmul_rates` computes the rates of a device from measured matmuls, and
// `fit_step_rates` from the kernels of measured steps.
//
// A table of matmuls has rows of four numbers: rows, columns, depth, microseconds. A table
// may also be CSV with a line of column names. The columns m, n, k and latency
// (in milliseconds) are those of the files gemm_perf of aiconfigurator; only
// rows whose gemm_dtype is bfloat16 or float16 are used. Lines that start with
// # are comments.
//
//   auto table = parse_matmuls("4096 4096 4096 191\n8192 8192 8192 1440\n");
//   RateFit fit = fit_matmul_rates(default_topology(), *table).value();
//   Topology fitted = default_topology();
//   fitted.efficiency.value = fit.efficiency;
//
// Matmuls of few rows are bound by memory, so one table determines the rate of
// the multipliers, the rate of the memory, and the ramp of a kernel.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/mesh/topology.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {

// `MatmulSample` is the measured time of a matmul [rows, depth] x [depth,
// columns] of 16-bit numbers.
struct MatmulSample {
  double rows = 1;
  double columns = 1;
  double depth = 1;
  double microseconds = 0;
  friend bool operator==(const MatmulSample&, const MatmulSample&) = default;
};

// Error: kMeasurementTable, which names the line.
Result<std::vector<MatmulSample>> parse_matmuls(std::string_view text);

// `PresetSamples` is the table of measured matmuls in the file of a preset.
struct PresetSamples {
  std::vector<MatmulSample> matmuls;
  std::string source;
};

// Returns the samples of a preset; empty if its file has none. Error:
// kTopologyUnknown.
Result<PresetSamples> preset_samples(std::string_view name);

// `RateFit` is the fitted figures of a device.
struct RateFit {
  double efficiency = 0;
  double memory_efficiency = 0;
  double ramp_us = 0;
  double mean_error = 0;  // mean of |ln(predicted / measured)|
};

// Returns the time of a matmul on the topology, in microseconds.
double matmul_microseconds(const Topology& topology,
                           const MatmulSample& matmul);

// Fits three rates of single kernels (`sustained` and `launch_us` do not apply);
// the other figures are those of the topology. Error:
// kMeasurementTable if there are fewer than 8 samples.
Result<RateFit> fit_matmul_rates(const Topology& topology,
                                 std::span<const MatmulSample> samples);

// `StepTime` is the time that kernels of one kind take in a measured step, and
// their predicted time.
struct StepTime {
  Figure Topology::* rate = nullptr;  // the figure that the kind determines
  double measured_ms = 0;
  double predicted_ms = 0;
};

// Parses lines of three columns: the kind of kernels (matmul, attention, memory
// or eager-memory), the measured and the predicted milliseconds. Lines that
// start with # are comments. Error: kMeasurementTable, which names the line.
//
//   # kind       measured  predicted
//   attention    31.65     44.47
Result<std::vector<StepTime>> parse_step_times(std::string_view text);

// Multiplies each rate that the steps determine by the median of predicted /
// measured of its kind. `topology` is that of the predictions; the source of
// the new figures is `source`.
Topology with_step_rates(Topology topology, std::span<const StepTime> times,
                         const std::string& source);

}  // namespace shardprop
