#include <shardprop/redistribute/fit.h>

#include "support/result_checks.h"

#include <shardprop/redistribute/collective_cost.h>

#include <cmath>

namespace shardprop {
namespace {

using testing::value_of;

// As all_gather_perf of nccl-tests 2.13 prints it.
constexpr const char* kNcclTests = R"(# nThread 1 nGpus 8 minBytes 8 maxBytes 64
#                                                    out-of-place
#       size         count      type   redop    root     time   algbw   busbw
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)
     1048576         32768     float    none      -1    12.50   83.89   73.40      0    12.4
     8388608        262144     float    none      -1    51.29  163.55  143.11      0    51.0
# Avg bus bandwidth    : 123.4
)";

TEST_CASE("tables of nccl-tests and plain ones are read") {
  const auto rows = value_of(parse_measurements(kNcclTests));
  CHECK(rows == std::vector<Measurement>{{1048576, 12.5}, {8388608, 51.29}});
  CHECK(value_of(parse_measurements("8 3.5\r\n\n 16\t4\n")) ==
        std::vector<Measurement>{{8, 3.5}, {16, 4}});
  CHECK_CODE(parse_measurements("8 fast"), ErrorCode::kMeasurementTable);
  CHECK_CODE(parse_measurements("8 -1"), ErrorCode::kMeasurementTable);
  CHECK_CODE(parse_measurements("8 0"), ErrorCode::kMeasurementTable);
  CHECK_CODE(parse_measurements("8 nan"), ErrorCode::kMeasurementTable);
  CHECK_CODE(parse_measurements("1 2 3"), ErrorCode::kMeasurementTable);
  CHECK(parse_measurements("# x\n8 1\n9 x\n").error().location == "line 3");
}

TEST_CASE("a fit needs two sizes") {
  const Measurement one[] = {{8, 1.0}, {8, 1.1}};
  CHECK_CODE(fit_collective(CollectiveKind::kAllGather, {8, 8, 1}, one, "t"),
             ErrorCode::kMeasurementTable);
  CHECK_CODE(fit_collective(CollectiveKind::kAllGather, {8, 8, 1}, {}, "t"),
             ErrorCode::kMeasurementTable);
}

TEST_CASE("one line is found again, exactly") {
  std::vector<Measurement> seen;
  for (std::int64_t bytes = 1024; bytes < 1 << 30; bytes *= 2) {
    seen.push_back({bytes, 20 + static_cast<double>(bytes) / 200e3});
  }
  const auto fit = value_of(
      fit_collective(CollectiveKind::kAllReduce, {8, 8, 1}, seen, "t"));
  CHECK(fit.worst_relative_error < 1e-9);
  REQUIRE(fit.lines.size() == 1);
  CHECK(fit.lines[0].latency_us == doctest::Approx(20));
  CHECK(fit.lines[0].bandwidth_gbps == doctest::Approx(200));
  CHECK(fit.lines[0].source == "t");
}

TEST_CASE("what the model prices, the fit prices alike") {
  // Sizes at the model's own times, as if a machine behaved just so.
  const Topology& h100 = default_topology();
  for (const GroupPlace& place :
       {GroupPlace{8, 8, 1}, GroupPlace{4, 1, 4}, GroupPlace{16, 8, 2}}) {
    for (const CollectiveKind kind :
         {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter}) {
      std::vector<Measurement> seen;
      for (std::int64_t bytes = 256; bytes < std::int64_t{1} << 32;
           bytes *= 2) {
        seen.push_back({bytes, static_cast<double>(collective_nanoseconds(
                                   h100, kind, place, bytes)) /
                                   1e3});
      }
      const auto fit = value_of(fit_collective(kind, place, seen, "model"));
      Topology fitted = h100;
      fitted.measured = fit.lines;
      CHECK(check_topology(fitted).has_value());
      CHECK(fit.worst_relative_error < 0.12);
      for (const Measurement& point : seen) {
        const double priced = static_cast<double>(collective_nanoseconds(
                                  fitted, kind, place, point.bytes)) /
                              1e3;
        CHECK(std::abs(priced / point.microseconds - 1) <
              fit.worst_relative_error + 1e-3);
      }
    }
  }
}

TEST_CASE("noise moves a fit by no more than the noise") {
  std::vector<Measurement> seen;
  for (std::int64_t bytes = 1 << 20; bytes < std::int64_t{1} << 33;
       bytes *= 2) {
    const double noise = bytes % 3 == 1 ? 1.04 : 0.96;
    seen.push_back({bytes, noise * (30 + static_cast<double>(bytes) / 394e3)});
  }
  const auto fit = value_of(
      fit_collective(CollectiveKind::kAllGather, {8, 8, 1}, seen, "t"));
  CHECK(fit.worst_relative_error < 0.09);
}

TEST_CASE("a table of several collectives is fitted for each of them") {
  std::string text =
      "framework,op_name,nccl_dtype,num_gpus,message_size,latency\n";
  for (const std::int64_t elements : {1024, 65536, 1 << 20, 1 << 26}) {
    for (const auto& [name, rate] :
         {std::pair("all_gather", 400.0), std::pair("alltoall", 300.0)}) {
      const double ms = 0.02 + static_cast<double>(elements) * 2 / rate * 1e-6;
      text += "nccl," + std::string(name) + ",half,8," +
              std::to_string(elements) + "," + std::to_string(ms) + "\n";
      text += "nccl," + std::string(name) + ",int8,8," +
              std::to_string(elements) + ",1.0\r\n";
    }
  }
  const auto tables = value_of(parse_collective_tables(text));
  REQUIRE(tables.size() == 2);
  CHECK(tables[0].collective == CollectiveKind::kAllGather);
  CHECK(tables[1].collective == CollectiveKind::kAllToAll);
  for (const CollectiveTable& table : tables) {
    CHECK(table.ranks == 8);
    REQUIRE(table.measurements.size() == 4);
    CHECK(table.measurements[0].bytes == 2048);
    const CollectiveFit fit = value_of(fit_collective(
        table.collective, {8, 8, 1}, table.measurements, "a table"));
    const bool gathers = table.collective == CollectiveKind::kAllGather;
    REQUIRE_FALSE(fit.lines.empty());
    CHECK(fit.lines.back().bandwidth_gbps ==
          doctest::Approx(gathers ? 400 : 300).epsilon(0.01));
  }
}

TEST_CASE("a row that is no measured collective is reported with its line") {
  const std::string head = "op_name,nccl_dtype,num_gpus,message_size,latency\n";
  for (const char* row :
       {"all_gather,half,8,1024", "scatter,half,8,1024,0.1",
        "all_gather,half,0,1024,0.1", "all_gather,half,8,0,0.1",
        "all_gather,half,8,1024,0", "all_gather,half,8,9223372036854775807,1",
        "all_gather,half,8,1024,x"}) {
    CAPTURE(row);
    const auto made = parse_collective_tables(head + row);
    CHECK_CODE(made, ErrorCode::kMeasurementTable);
    CHECK(made.error().location == "line 2");
  }
  CHECK_CODE(parse_collective_tables("op_name,latency\n"),
             ErrorCode::kMeasurementTable);
}

}  // namespace
}  // namespace shardprop
