#include <shardprop/redistribute/fit.h>

#include "base/parse_int.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

namespace shardprop {
namespace {

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  std::size_t at = 0;
  while ((at = line.find_first_not_of(" \t\r", at)) != std::string_view::npos) {
    const std::size_t end =
        std::min(line.find_first_of(" \t\r", at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

std::optional<double> number(std::string_view text) {
  double value = 0;
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto [stop, code] = std::from_chars(begin, end, value);
  if (code != std::errc() || stop != end) return std::nullopt;
  return value;
}

constexpr std::int64_t kHalfBytes = 2;
constexpr std::int64_t kMostElements = std::int64_t{1} << 50;

std::vector<std::string_view> split_at_commas(std::string_view line) {
  std::vector<std::string_view> cells;
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  if (line.empty()) return cells;
  for (std::size_t at = 0; at <= line.size();) {
    const std::size_t end = std::min(line.find(',', at), line.size());
    cells.push_back(line.substr(at, end - at));
    at = end + 1;
  }
  return cells;
}

// The columns of a table of collectives, by place.
struct CollectiveColumns {
  std::size_t collective = 0;
  std::size_t ranks = 0;
  std::size_t dtype = 0;
  std::size_t elements = 0;
  std::size_t time = 0;
};

std::optional<CollectiveColumns> collective_columns(
    const std::vector<std::string_view>& names) {
  CollectiveColumns columns;
  const std::pair<std::string_view, std::size_t*> wanted[] = {
      {"op_name", &columns.collective},
      {"num_gpus", &columns.ranks},
      {"nccl_dtype", &columns.dtype},
      {"message_size", &columns.elements},
      {"latency", &columns.time}};
  for (const auto& [name, place] : wanted) {
    const auto at = std::find(names.begin(), names.end(), name);
    if (at == names.end()) return std::nullopt;
    *place = static_cast<std::size_t>(at - names.begin());
  }
  return columns;
}

bool is_half(std::string_view dtype) {
  return dtype == "half" || dtype == "float16" || dtype == "bfloat16";
}

std::optional<CollectiveKind> collective_named(std::string_view name) {
  if (name == "alltoall") return CollectiveKind::kAllToAll;
  return parse_collective_kind(name);
}

tl::unexpected<Error> no_collective(std::string_view line, std::size_t row) {
  return fail(Error{
      ErrorCode::kMeasurementTable,
      "`" + std::string(line.substr(0, 80)) + "` is not a measured collective",
      "line " + std::to_string(row),
      {},
      "write CSV with the columns op_name, num_gpus, nccl_dtype, message_size "
      "(in elements) and latency (in milliseconds)"});
}

struct Line {
  double latency = 0;   // us
  double per_byte = 0;  // us
  double at(double bytes) const { return latency + per_byte * bytes; }
};

// Minimises the squares of (predicted - measured) / measured. The latency stays
// at 0 or more, and the time grows with the size.
Line fit_line(std::span<const Measurement> points) {
  double w = 0;
  double x = 0;
  double y = 0;
  double xx = 0;
  double xy = 0;
  for (const Measurement& point : points) {
    const double weight = 1 / (point.microseconds * point.microseconds);
    const auto size = static_cast<double>(point.bytes);
    w += weight;
    x += weight * size;
    y += weight * point.microseconds;
    xx += weight * size * size;
    xy += weight * size * point.microseconds;
  }
  const double spread = w * xx - x * x;
  Line line;
  // If the sizes are too close to each other, they do not determine a slope.
  line.per_byte = spread > 1e-12 * w * xx ? (w * xy - x * y) / spread : 0;
  line.latency = (y - line.per_byte * x) / w;
  if (line.per_byte <= 0) line = {y / w, 0};
  if (line.latency < 0) line = {0, xy / xx};
  return line;
}

double error_of(const Line& line, std::span<const Measurement> points) {
  double sum = 0;
  for (const Measurement& point : points) {
    const double off =
        line.at(static_cast<double>(point.bytes)) / point.microseconds - 1;
    sum += off * off;
  }
  return sum;
}

double worst_error(std::span<const Line> lines,
                   std::span<const Measurement> points) {
  double worst = 0;
  for (const Measurement& point : points) {
    double least = std::numeric_limits<double>::infinity();
    for (const Line& line : lines) {
      least = std::min(least, line.at(static_cast<double>(point.bytes)));
    }
    worst = std::max(worst, std::abs(least / point.microseconds - 1));
  }
  return worst;
}

// Returns the best way to cut `points` into `count` ranges of at least two
// sizes.
std::vector<Line> fit_ranges(std::span<const Measurement> points,
                             std::size_t count) {
  const std::size_t n = points.size();
  constexpr double kNever = std::numeric_limits<double>::infinity();
  // best[k][end]: least error of k ranges over points[0, end).
  std::vector<std::vector<double>> best(count + 1,
                                        std::vector<double>(n + 1, kNever));
  std::vector<std::vector<std::size_t>> cut(count + 1,
                                            std::vector<std::size_t>(n + 1));
  best[0][0] = 0;
  for (std::size_t k = 1; k <= count; ++k) {
    for (std::size_t end = 2 * k; end <= n; ++end) {
      for (std::size_t begin = 2 * (k - 1); begin + 2 <= end; ++begin) {
        const auto range = points.subspan(begin, end - begin);
        if (best[k - 1][begin] == kNever ||
            range.front().bytes == range.back().bytes) {
          continue;
        }
        const double error =
            best[k - 1][begin] + error_of(fit_line(range), range);
        if (error < best[k][end]) {
          best[k][end] = error;
          cut[k][end] = begin;
        }
      }
    }
  }
  if (best[count][n] == kNever) return {};
  std::vector<Line> lines;
  for (std::size_t k = count, end = n; k > 0; --k) {
    const std::size_t begin = cut[k][end];
    lines.push_back(fit_line(points.subspan(begin, end - begin)));
    end = begin;
  }
  std::reverse(lines.begin(), lines.end());
  return lines;
}

}  // namespace

Result<std::vector<Measurement>> parse_measurements(std::string_view text) {
  std::vector<Measurement> out;
  std::size_t row = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++row;
    const std::vector<std::string_view> words = words_of(line);
    if (words.empty() || words.front().front() == '#') continue;
    // A line has the columns size, count, type, redop, root, time, ...; or
    // bytes and time only.
    const std::size_t time = words.size() == 2 ? 1 : 5;
    const auto bytes = parse_int(words.front());
    const double microseconds =
        time < words.size() ? number(words[time]).value_or(-1) : -1;
    if (!bytes || *bytes < 0 || !(microseconds > 0) ||
        !std::isfinite(microseconds)) {
      return fail(Error{
          ErrorCode::kMeasurementTable,
          "`" + std::string(line.substr(0, 80)) + "` is not a measurement",
          "line " + std::to_string(row),
          {},
          "write bytes and microseconds, or rows of nccl-tests"});
    }
    if (*bytes > 0) out.push_back({*bytes, microseconds});
  }
  return out;
}

Result<std::vector<CollectiveTable>> parse_collective_tables(
    std::string_view text) {
  std::vector<CollectiveTable> tables;
  std::optional<CollectiveColumns> columns;
  std::size_t row = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++row;
    const std::vector<std::string_view> cells = split_at_commas(line);
    if (cells.empty()) continue;
    if (!columns) {
      columns = collective_columns(cells);
      if (!columns) return no_collective(line, row);
      continue;
    }
    const std::size_t most =
        std::max({columns->collective, columns->ranks, columns->dtype,
                  columns->elements, columns->time});
    if (most >= cells.size()) return no_collective(line, row);
    if (!is_half(cells[columns->dtype])) continue;
    const auto kind = collective_named(cells[columns->collective]);
    const auto ranks = parse_int(cells[columns->ranks]);
    const auto elements = parse_int(cells[columns->elements]);
    const double milliseconds = number(cells[columns->time]).value_or(-1);
    if (!kind || !ranks || *ranks < 1 || *ranks > kMaxMeshRanks || !elements ||
        *elements < 1 || *elements > kMostElements || !(milliseconds > 0) ||
        !std::isfinite(milliseconds)) {
      return no_collective(line, row);
    }
    auto table = std::find_if(
        tables.begin(), tables.end(), [&](const CollectiveTable& known) {
          return known.collective == *kind && known.ranks == *ranks;
        });
    if (table == tables.end()) {
      table = tables.insert(tables.end(), {*kind, *ranks, {}});
    }
    table->measurements.push_back({*elements * kHalfBytes, milliseconds * 1e3});
  }
  return tables;
}

Result<CollectiveFit> fit_collective(CollectiveKind collective,
                                     const GroupPlace& place,
                                     std::span<const Measurement> measurements,
                                     const std::string& source) {
  std::vector<Measurement> points(measurements.begin(), measurements.end());
  std::sort(points.begin(), points.end(),
            [](const Measurement& a, const Measurement& b) {
              return std::pair(a.bytes, a.microseconds) <
                     std::pair(b.bytes, b.microseconds);
            });
  if (points.empty() || points.front().bytes == points.back().bytes) {
    return fail(ErrorCode::kMeasurementTable,
                "a fit needs measurements of at least two sizes",
                "measure from 8 bytes to some GiB");
  }
  constexpr std::size_t kMostLines = 3;
  std::vector<Line> best;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t count = 1; count <= kMostLines; ++count) {
    const std::vector<Line> lines = fit_ranges(points, count);
    if (lines.empty()) break;
    const double error = worst_error(lines, points);
    // One more line must reduce the worst error by at least 10 %.
    if (error < 0.9 * least) {
      least = error;
      best = lines;
    }
  }
  CollectiveFit fit;
  fit.worst_relative_error = least;
  for (const Line& line : best) {
    // A range without a slope shows only latency; its bandwidth is unknown.
    constexpr double kUnseenBandwidth = 1e6;
    fit.lines.push_back(
        {collective, place.ranks_per_node, place.nodes, line.latency,
         line.per_byte > 0 ? 1e-3 / line.per_byte : kUnseenBandwidth, true,
         source});
  }
  return fit;
}

}  // namespace shardprop
