#include "io/emit/runs.h"

#include "base/index.h"
#include "io/emit/tensor_ops.h"

#include <optional>
#include <span>
#include <utility>

namespace shardprop::emit {
namespace {

// The most strips that repeat as a group. A dim that several mesh dims shard
// unevenly has a few kinds of parts.
constexpr std::size_t kLongestPeriod = 8;

void begins(const Strip& strip, std::vector<std::int64_t>& out) {
  if (strip.parts.empty()) out.push_back(strip.run.begin);
  for (const Strip& part : strip.parts) begins(part, out);
}

std::vector<std::int64_t> begins(std::span<const Strip> strips) {
  std::vector<std::int64_t> out;
  for (const Strip& strip : strips) begins(strip, out);
  return out;
}

// True if the strips are equal except for the begin of their runs.
bool alike(const Strip& a, const Strip& b) {
  if (a.run.size() != b.run.size() || a.steps != b.steps ||
      a.count != b.count || a.parts.size() != b.parts.size()) {
    return false;
  }
  for (std::size_t i = 0; i < a.parts.size(); ++i) {
    if (!alike(a.parts[i], b.parts[i])) return false;
  }
  return true;
}

// Returns the distance of each run of `next` from the same run of `now`.
// Returns nullopt if the strips differ, or if a run of `next` is before its run
// of `now`.
std::optional<std::vector<std::int64_t>> moved(std::span<const Strip> now,
                                               std::span<const Strip> next) {
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (!alike(now[i], next[i])) return std::nullopt;
  }
  std::vector<std::int64_t> out = begins(next);
  const std::vector<std::int64_t> before = begins(now);
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] -= before[i];
    if (out[i] < 0) return std::nullopt;
  }
  return out;
}

void add_loop(Strip& strip, const std::vector<std::int64_t>& by,
              std::size_t& next) {
  if (strip.parts.empty()) {
    strip.steps.insert(strip.steps.begin(), by[next++]);
  }
  for (Strip& part : strip.parts) add_loop(part, by, next);
}

// Returns the strips with every repetition of `period` strips as a loop.
std::vector<Strip> folded(const std::vector<Strip>& strips,
                          std::size_t period) {
  const std::span<const Strip> all(strips);
  std::vector<Strip> out;
  for (std::size_t at = 0; at < all.size();) {
    std::size_t count = 1;
    std::optional<std::vector<std::int64_t>> by;
    for (std::size_t next = at + period; next + period <= all.size();
         next += period) {
      auto step =
          moved(all.subspan(next - period, period), all.subspan(next, period));
      if (!step || (by && *step != *by)) break;
      by = std::move(step);
      ++count;
    }
    if (!by) {
      out.push_back(all[at++]);
      continue;
    }
    Strip loop;
    loop.parts.assign(all.begin() + static_cast<std::ptrdiff_t>(at),
                      all.begin() + static_cast<std::ptrdiff_t>(at + period));
    loop.count = static_cast<std::int64_t>(count);
    std::size_t first = 0;
    for (Strip& part : loop.parts) add_loop(part, *by, first);
    out.push_back(std::move(loop));
    at += count * period;
  }
  return out;
}

// Emits strips as operators on one dim.
class Rearrangement {
 public:
  Rearrangement(TorchGraph& graph, int dim) : graph_(graph), dim_(dim) {}

  // Replaces the dim by one dim for each enclosing loop, followed by the
  // concatenated strips.
  TorchId run(TorchId x, const std::vector<Strip>& strips) {
    std::vector<TorchId> parts;
    for (const Strip& strip : strips) {
      parts.push_back(strip.parts.empty() ? window(x, strip) : loop(x, strip));
    }
    return parts.size() == 1 ? parts[0]
                             : cat(graph_, std::move(parts), inner());
  }

 private:
  int inner() const { return dim_ + static_cast<int>(counts_.size()); }

  TorchId loop(TorchId x, const Strip& strip) {
    counts_.push_back(strip.count);
    x = run(x, strip.parts);
    counts_.pop_back();
    Dims shape = graph_.shape(x);
    const auto d = index(inner());
    shape[d] *= shape[d + 1];
    shape.erase(shape.begin() + inner() + 1);
    return reshape(graph_, x, std::move(shape));
  }

  TorchId window(TorchId x, const Strip& strip) {
    // The elements that each loop spans, computed from the innermost loop
    // outwards.
    std::vector<std::int64_t> reach(counts_.size() + 1, strip.run.size());
    for (std::size_t k = counts_.size(); k-- > 0;) {
      reach[k] = reach[k + 1] + (counts_[k] - 1) * strip.steps[k];
    }
    x = slice(graph_, x, dim_, strip.run.begin, strip.run.begin + reach[0]);
    for (std::size_t k = 0; k < counts_.size(); ++k) {
      x = windows(graph_, x, dim_ + static_cast<int>(k), counts_[k],
                  reach[k + 1], strip.steps[k]);
    }
    return x;
  }

  TorchGraph& graph_;
  int dim_;
  std::vector<std::int64_t> counts_;  // of the loops around, outermost first
};

}  // namespace

std::vector<Strip> fold(const std::vector<Interval>& runs) {
  std::vector<Strip> out;
  for (const Interval& run : runs) {
    if (run.size() == 0) continue;
    if (!out.empty() && out.back().run.end == run.begin) {
      out.back().run.end = run.end;
    } else {
      out.push_back({run, {}, {}, 1});
    }
  }
  for (std::size_t period = 1; period <= kLongestPeriod; ++period) {
    std::vector<Strip> next = folded(out, period);
    if (next.size() == out.size()) continue;
    out = std::move(next);
    period = 0;  // what is shorter may repeat now
  }
  return out;
}

TorchId rearranged(TorchGraph& graph, TorchId x, int dim,
                   const std::vector<Interval>& runs) {
  const std::vector<Strip> strips = fold(runs);
  if (strips.empty()) return slice(graph, x, dim, 0, 0);
  return Rearrangement(graph, dim).run(x, strips);
}

}  // namespace shardprop::emit
