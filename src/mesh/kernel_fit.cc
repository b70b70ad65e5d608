#include <shardprop/mesh/kernel_fit.h>

#include "base/parse_number.h"

#include <shardprop/mesh/product_cost.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

namespace shardprop {
namespace {

constexpr double kF16Bytes = 2;

// The columns of a table, by place.
struct MatmulColumns {
  std::size_t rows = 0;
  std::size_t columns = 1;
  std::size_t depth = 2;
  std::size_t time = 3;
  double microseconds_per_unit = 1;
  std::optional<std::size_t> dtype;  // rows of other dtypes are skipped
};

// The kinds of kernels in a table of steps.
struct KernelKindName {
  std::string_view name;
  Figure Topology::* rate;
};
constexpr std::array<KernelKindName, 4> kKernelKinds = {{
    {"matmul", &Topology::sustained},
    {"attention", &Topology::attention_efficiency},
    {"memory", &Topology::memory_efficiency},
    {"eager-memory", &Topology::eager_memory_efficiency},
}};

std::optional<StepTime> step_time_of(
    const std::vector<std::string_view>& cells) {
  if (cells.size() != 3) return std::nullopt;
  const auto measured = parse_number(cells[1]);
  const auto predicted = parse_number(cells[2]);
  for (const KernelKindName& kind : kKernelKinds) {
    if (kind.name == cells[0] && measured.value_or(0) > 0 &&
        predicted.value_or(0) > 0) {
      return StepTime{kind.rate, *measured, *predicted};
    }
  }
  return std::nullopt;
}

// Returns the rate with which the kernels of a kind were predicted.
double predicted_rate(const Topology& topology, Figure Topology::* rate) {
  const double own = (topology.*rate).value;
  if (own > 0) return own;
  if (rate == &Topology::sustained) return 1;
  const double memory = topology.memory_efficiency.value;
  return rate == &Topology::eager_memory_efficiency && memory > 0
             ? memory
             : topology.efficiency.value;
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half]
                                : (values[half - 1] + values[half]) / 2;
}

std::vector<std::string_view> cells_of(std::string_view line,
                                       std::string_view separators) {
  std::vector<std::string_view> cells;
  std::size_t at = 0;
  while ((at = line.find_first_not_of(separators, at)) !=
         std::string_view::npos) {
    const std::size_t end =
        std::min(line.find_first_of(separators, at), line.size());
    cells.push_back(line.substr(at, end - at));
    at = end;
  }
  return cells;
}

// Returns the columns that a line of names describes; nullopt if a name is
// missing.
std::optional<MatmulColumns> columns_of(
    const std::vector<std::string_view>& names) {
  const auto place = [&](std::string_view name) -> std::optional<std::size_t> {
    const auto at = std::find(names.begin(), names.end(), name);
    if (at == names.end()) return std::nullopt;
    return static_cast<std::size_t>(at - names.begin());
  };
  const auto rows = place("m");
  const auto columns = place("n");
  const auto depth = place("k");
  const auto time = place("latency");
  if (!rows || !columns || !depth || !time) return std::nullopt;
  return MatmulColumns{*rows, *columns, *depth,
                       *time, 1e3,      place("gemm_dtype")};
}

tl::unexpected<Error> no_matmul(std::string_view line, std::size_t row) {
  return fail(Error{
      ErrorCode::kMeasurementTable,
      "`" + std::string(line.substr(0, 80)) + "` is not a measured matmul",
      "line " + std::to_string(row),
      {},
      "write rows, columns, depth and microseconds, or CSV with the columns m, "
      "n, k and latency (in milliseconds)"});
}

std::optional<MatmulSample> sample_of(
    const std::vector<std::string_view>& cells, const MatmulColumns& columns) {
  const auto number = [&](std::size_t at) {
    return at < cells.size() ? parse_number(cells[at]).value_or(0) : 0;
  };
  const MatmulSample sample{
      number(columns.rows), number(columns.columns), number(columns.depth),
      number(columns.time) * columns.microseconds_per_unit};
  const bool is_positive = sample.rows > 0 && sample.columns > 0 &&
                           sample.depth > 0 && sample.microseconds > 0;
  if (!is_positive) return std::nullopt;
  return sample;
}

bool is_16_bit(std::string_view dtype) {
  return dtype == "bfloat16" || dtype == "float16";
}

double mean_error(const Topology& topology,
                  std::span<const MatmulSample> samples) {
  double sum = 0;
  for (const MatmulSample& sample : samples) {
    sum += std::abs(
        std::log(matmul_microseconds(topology, sample) / sample.microseconds));
  }
  return sum / static_cast<double>(samples.size());
}

// A figure that the fit changes, and the values that it tries.
struct FittedFigure {
  Figure Topology::* figure;
  int first;
  int last;
  double parts;  // of a unit: 1 / parts is the distance of two values
};
constexpr std::array<FittedFigure, 3> kFitted = {{
    {&Topology::efficiency, 20, 100, 100},
    {&Topology::memory_efficiency, 20, 100, 100},
    {&Topology::ramp_us, 0, 100, 10},
}};

// Fits are compared on at most this many samples, evenly spread over the table,
// so that a table of 36,000 rows takes seconds.
constexpr std::size_t kMostFittedSamples = 1000;

}  // namespace

Result<std::vector<MatmulSample>> parse_matmuls(std::string_view text) {
  std::vector<MatmulSample> samples;
  MatmulColumns columns;
  std::string_view separators = " \t\r";
  std::size_t row = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++row;
    if (line.empty() || line.front() == '#') continue;
    const bool names_columns = samples.empty() && separators.front() == ' ' &&
                               line.find(',') != std::string_view::npos;
    if (names_columns) {
      separators = ",\r";
      const auto named = columns_of(cells_of(line, separators));
      if (!named) return no_matmul(line, row);
      columns = *named;
      continue;
    }
    const std::vector<std::string_view> cells = cells_of(line, separators);
    if (cells.empty()) continue;
    if (columns.dtype && *columns.dtype < cells.size() &&
        !is_16_bit(cells[*columns.dtype])) {
      continue;
    }
    const auto sample = sample_of(cells, columns);
    if (!sample) return no_matmul(line, row);
    samples.push_back(*sample);
  }
  return samples;
}

double matmul_microseconds(const Topology& topology,
                           const MatmulSample& matmul) {
  const ProductCost cost = product_cost(
      topology, MathClass::kF16,
      {.rows = matmul.rows, .columns = matmul.columns, .depth = matmul.depth});
  const double elements = matmul.rows * matmul.depth +
                          matmul.depth * matmul.columns +
                          matmul.rows * matmul.columns;
  return static_cast<double>(
             compute_nanoseconds(topology, MathClass::kF16, cost.flops,
                                 kF16Bytes * elements + cost.bytes)) *
         1e-3;
}

Result<RateFit> fit_matmul_rates(const Topology& topology,
                                 std::span<const MatmulSample> samples) {
  constexpr std::size_t kLeastSamples = 8;
  if (samples.size() < kLeastSamples) {
    return fail(ErrorCode::kMeasurementTable,
                "a fit of rates needs at least 8 matmuls, and the table has " +
                    std::to_string(samples.size()),
                "measure matmuls of 1 to 8192 rows");
  }
  std::vector<MatmulSample> used;
  const std::size_t stride =
      (samples.size() + kMostFittedSamples - 1) / kMostFittedSamples;
  for (std::size_t i = 0; i < samples.size(); i += stride) {
    used.push_back(samples[i]);
  }
  Topology best = topology;
  best.launch_us.value = 0;  // matmuls are measured one after the other,
  best.sustained.value = 0;  // for a short time
  best.efficiency.value = 0.7;
  best.memory_efficiency.value = 0.7;
  best.ramp_us.value = 0;
  double least = mean_error(best, used);
  for (double before = 2 * least + 1; least < before;) {
    before = least;
    for (const FittedFigure& fitted : kFitted) {
      Topology tried = best;
      for (int i = fitted.first; i <= fitted.last; ++i) {
        (tried.*fitted.figure).value = i / fitted.parts;
        const double error = mean_error(tried, used);
        if (error >= least) continue;
        least = error;
        best = tried;
      }
    }
  }
  return RateFit{best.efficiency.value, best.memory_efficiency.value,
                 best.ramp_us.value, least};
}

Result<std::vector<StepTime>> parse_step_times(std::string_view text) {
  std::vector<StepTime> times;
  std::size_t row = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++row;
    const std::vector<std::string_view> cells = cells_of(line, " \t\r");
    if (cells.empty() || cells.front().front() == '#') continue;
    const auto time = step_time_of(cells);
    if (!time) {
      return fail(Error{ErrorCode::kMeasurementTable,
                        "`" + std::string(line.substr(0, 80)) +
                            "` is not the time of a step's kernels",
                        "line " + std::to_string(row),
                        {},
                        "write a kind (matmul, attention, memory or "
                        "eager-memory), measured and predicted milliseconds"});
    }
    times.push_back(*time);
  }
  return times;
}

Topology with_step_rates(Topology topology, std::span<const StepTime> times,
                         const std::string& source) {
  const Topology predicted = topology;
  for (const KernelKindName& kind : kKernelKinds) {
    std::vector<double> ratios;
    for (const StepTime& time : times) {
      if (time.rate != kind.rate) continue;
      ratios.push_back(time.predicted_ms / time.measured_ms);
    }
    if (ratios.empty()) continue;
    const double rate =
        predicted_rate(predicted, kind.rate) * median_of(std::move(ratios));
    topology.*kind.rate = {std::min(rate, 1.0), source};
  }
  return topology;
}

}  // namespace shardprop
