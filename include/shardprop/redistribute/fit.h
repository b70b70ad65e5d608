// `fit_collective` turns tables of measurements, as nccl-tests prints them,
// into lines of the cost model.
//
// A table has rows of nccl-tests (size, count, type, redop, root, time, ...),
// whose out-of-place time is used, or rows of two numbers, bytes and
// microseconds. Lines that start with # are comments. Sizes are defined as in
// collective_cost.h, which follows nccl-tests.
//
// An engine chooses among protocols, each with a line `latency + bytes /
// bandwidth`. So the fit is the minimum of up to three lines. Each line
// minimises the squared relative error over its own range of sizes.
//
//   auto table = parse_measurements("1048576  61.2\n8388608 122.4\n").value();
//   auto fit = fit_collective(CollectiveKind::kAllGather, {8, 8, 1}, table,
//                             "nccl-tests, 2026-11").value();
//   topology.measured.insert(topology.measured.end(), fit.lines.begin(),
//                            fit.lines.end());
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/mesh/topology.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {

// `Measurement` is one row of a table: a size and its time.
struct Measurement {
  std::int64_t bytes = 0;
  double microseconds = 0;
  friend bool operator==(const Measurement&, const Measurement&) = default;
};

// Error: kMeasurementTable, which names the line.
Result<std::vector<Measurement>> parse_measurements(std::string_view text);

// `CollectiveTable` is the measurements of one collective in groups of one size.
struct CollectiveTable {
  CollectiveKind collective = CollectiveKind::kAllGather;
  std::int64_t ranks = 1;
  std::vector<Measurement> measurements;
};

// Parses a CSV table of several collectives, such as the files nccl_perf of
// aiconfigurator. Its first line names the columns, among them op_name,
// num_gpus, nccl_dtype, message_size (in elements) and latency (in
// milliseconds). Only rows of half, bfloat16 and float16 are used. Error:
// kMeasurementTable, which names the line.
Result<std::vector<CollectiveTable>> parse_collective_tables(
    std::string_view text);

// `CollectiveFit` is the fitted lines and their largest error.
struct CollectiveFit {
  std::vector<MeasuredLine> lines;
  double worst_relative_error = 0;  // of the minimum over the lines
};

// Fits lines to measurements of at least two different sizes.
// Error: kMeasurementTable.
Result<CollectiveFit> fit_collective(CollectiveKind collective,
                                     const GroupPlace& place,
                                     std::span<const Measurement> measurements,
                                     const std::string& source);

}  // namespace shardprop
