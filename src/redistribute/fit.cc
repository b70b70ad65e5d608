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
