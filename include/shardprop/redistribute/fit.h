// A topology from measurements: tables as nccl-tests prints them in, lines of
// the cost model out.
//
// A table holds rows of nccl-tests (size, count, type, redop, root, time, ...;
// the out-of-place time counts) or plain rows of two numbers, bytes and
// microseconds. Lines that start with # are comments. Sizes are those of
// collective_cost.h, which are nccl-tests' own.
//
// Engines choose among protocols, each a line `latency + bytes / bandwidth`; so
// the fit is the least of up to three lines, each by least squares of the
// relative error over its own range of sizes.
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

struct Measurement {
  std::int64_t bytes = 0;
  double microseconds = 0;
  friend bool operator==(const Measurement&, const Measurement&) = default;
};

// Error: kMeasurementTable, with the line.
Result<std::vector<Measurement>> parse_measurements(std::string_view text);

struct CollectiveFit {
  std::vector<MeasuredLine> lines;
  double worst_relative_error = 0;  // of the least of the lines
};

// Needs measurements of at least two different sizes.
// Error: kMeasurementTable.
Result<CollectiveFit> fit_collective(CollectiveKind collective,
                                     const GroupPlace& place,
                                     std::span<const Measurement> measurements,
                                     const std::string& source);

}  // namespace shardprop
