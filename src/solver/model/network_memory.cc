// Builds the memory rows of a network from the problem's times, and keeps them
// few.
#include "solver/model/network.h"

#include <algorithm>

#include "base/index.h"

namespace shardprop::solver {

void Network::build_memory(const Problem& problem) {
  std::vector<std::int64_t> times;
  for (std::size_t v = 0; v < problem.num_variables(); ++v) {
    for (std::size_t u = 0; u < problem.num_usages(VariableId(v)); ++u) {
      const Interval when = problem.usage(VariableId(v), u).when;
      if (when.empty()) continue;
      times.push_back(when.lo);
      times.push_back(when.hi);
    }
  }
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  if (times.empty()) return;
  row_time.assign(times.begin(), times.end() - 1);
  capacity.assign(row_time.size(), *problem.limit());
  const auto row_of = [&](std::int64_t time) {
    return static_cast<int>(std::lower_bound(times.begin(), times.end(), time) -
                            times.begin());
  };
  for (std::size_t v = 0; v < problem.num_variables(); ++v) {
    for (std::size_t u = 0; u < problem.num_usages(VariableId(v)); ++u) {
      const Usage usage = problem.usage(VariableId(v), u);
      if (usage.when.empty()) continue;
      variables[v].segments.push_back(
          {row_of(usage.when.lo),
           row_of(usage.when.hi),
           {usage.bytes.begin(), usage.bytes.end()}});
    }
  }
}

void Network::reserve_bytes(int lo, int hi, std::int64_t bytes) {
  reserved_.resize(capacity.size() + 1, 0);
  reserved_[index(lo)] += bytes;
  reserved_[index(hi)] -= bytes;
}

void Network::tidy_segments(int v) {
  std::vector<Segment>& segments = variables[index(v)].segments;
  for (Segment& segment : segments) {
    const auto [least, most] =
        std::minmax_element(segment.bytes.begin(), segment.bytes.end());
    const std::int64_t common = *least;
    if (common == *most) segment.bytes.clear();
    for (std::int64_t& bytes : segment.bytes) bytes -= common;
    reserve_bytes(segment.lo, segment.hi, common);
  }
  std::erase_if(segments, [](const Segment& s) {
    return s.bytes.empty() || s.lo >= s.hi;
  });
  if (segments.size() < 2) return;
  std::sort(segments.begin(), segments.end(),
            [](const Segment& x, const Segment& y) {
              return x.lo < y.lo || (x.lo == y.lo && x.hi < y.hi);
            });
  bool disjoint = true;
  for (std::size_t i = 1; i < segments.size(); ++i) {
    disjoint = disjoint && segments[i - 1].hi <= segments[i].lo;
  }
  std::vector<Segment> out;
  const auto emit = [&](int lo, int hi,
                        const std::vector<std::int64_t>& bytes) {
    if (lo >= hi) return;
    if (!out.empty() && out.back().hi == lo && out.back().bytes == bytes) {
      out.back().hi = hi;
    } else {
      out.push_back({lo, hi, bytes});
    }
  };
  if (disjoint) {
    for (const Segment& s : segments) emit(s.lo, s.hi, s.bytes);
    segments = std::move(out);
    return;
  }
  // Sweeps over the ends with the sum of the live bytes.
  struct Event {
    int row;
    std::size_t segment;
    bool starts;
  };
  std::vector<Event> events;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    events.push_back({segments[i].lo, i, true});
    events.push_back({segments[i].hi, i, false});
  }
  std::sort(events.begin(), events.end(),
            [](const Event& x, const Event& y) { return x.row < y.row; });
  std::vector<std::int64_t> live(segments[0].bytes.size(), 0);
  int count = 0;
  for (std::size_t i = 0; i < events.size();) {
    const int row = events[i].row;
    for (; i < events.size() && events[i].row == row; ++i) {
      const std::vector<std::int64_t>& bytes =
          segments[events[i].segment].bytes;
      const std::int64_t sign = events[i].starts ? 1 : -1;
      for (std::size_t c = 0; c < live.size(); ++c) live[c] += sign * bytes[c];
      count += events[i].starts ? 1 : -1;
    }
    if (count > 0 && i < events.size()) emit(row, events[i].row, live);
  }
  segments = std::move(out);
  for (Segment& segment : segments) {
    const auto [least, most] =
        std::minmax_element(segment.bytes.begin(), segment.bytes.end());
    const std::int64_t common = *least;
    if (common == *most) segment.bytes.clear();
    for (std::int64_t& bytes : segment.bytes) bytes -= common;
    reserve_bytes(segment.lo, segment.hi, common);
  }
  std::erase_if(segments, [](const Segment& s) { return s.bytes.empty(); });
}

void Network::tidy_rows() {
  if (capacity.empty()) return;
  std::int64_t reserved = 0;
  for (std::size_t r = 0; r < reserved_.size() && r < capacity.size(); ++r) {
    reserved += reserved_[r];
    capacity[r] -= reserved;
  }
  reserved_.clear();
  const std::vector<char> tight = tight_rows();
  if (infeasible) return;
  // Segments shrink to the kept rows before neighbours are compared.
  keep_rows(tight);
  keep_rows(telling_rows());
}

// Returns the rows that could overflow.
std::vector<char> Network::tight_rows() {
  const std::size_t rows = capacity.size();
  std::vector<std::int64_t> most(rows + 1, 0);
  for (const NetVariable& variable : variables) {
    if (!variable.alive) continue;
    for (const Segment& s : variable.segments) {
      const std::int64_t bytes =
          *std::max_element(s.bytes.begin(), s.bytes.end());
      most[index(s.lo)] += bytes;
      most[index(s.hi)] -= bytes;
    }
  }
  std::vector<char> tight(rows, 0);
  std::int64_t sum = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    sum += most[r];
    if (capacity[r] < 0 && !infeasible) {
      infeasible = true;
      short_row = static_cast<int>(r);
    }
    tight[r] = sum > capacity[r] ? 1 : 0;
  }
  return tight;
}

// Returns the rows that no neighbour implies. Between two changes, the live set
// only grows or only shrinks along a run. A row that a kept neighbour implies
// is therefore implied for good, so one scan with a stack of kept rows is
// enough.
std::vector<char> Network::telling_rows() const {
  const std::size_t rows = capacity.size();
  std::vector<char> starts(rows + 1, 0);
  std::vector<char> ends(rows + 1, 0);
  for (const NetVariable& variable : variables) {
    if (!variable.alive) continue;
    for (const Segment& segment : variable.segments) {
      starts[index(segment.lo)] = 1;
      ends[index(segment.hi)] = 1;
    }
  }
  std::vector<char> keep(rows, 1);
  struct Kept {
    std::size_t row;
    char grew;    // a segment starts between it and the previous kept row
    char shrank;  // a segment ends in that range
  };
  std::vector<Kept> stack;
  for (std::size_t r = 0; r < rows; ++r) {
    char grows = starts[r];
    char shrinks = ends[r];
    while (!stack.empty() && shrinks == 0 &&
           capacity[r] <= capacity[stack.back().row]) {
      // The live set of the last kept row is a subset of that of r, which
      // implies it.
      keep[stack.back().row] = 0;
      grows = static_cast<char>(grows | stack.back().grew);
      shrinks = static_cast<char>(shrinks | stack.back().shrank);
      stack.pop_back();
    }
    if (stack.empty() || grows != 0 ||
        capacity[stack.back().row] > capacity[r]) {
      stack.push_back({r, grows, shrinks});
      continue;
    }
    keep[r] = 0;
    // A segment that ended before r also ended before the rows after r.
    ends[r + 1] = static_cast<char>(ends[r + 1] | shrinks);
    starts[r + 1] = static_cast<char>(starts[r + 1] | grows);
  }
  return keep;
}

void Network::keep_rows(const std::vector<char>& kept) {
  std::vector<int> before(kept.size() + 1, 0);
  for (std::size_t r = 0; r < kept.size(); ++r) {
    before[r + 1] = before[r] + kept[r];
  }
  for (NetVariable& variable : variables) {
    if (!variable.alive) continue;
    for (Segment& s : variable.segments) {
      s.lo = before[index(s.lo)];
      s.hi = before[index(s.hi)];
    }
    std::erase_if(variable.segments,
                  [](const Segment& s) { return s.lo >= s.hi; });
  }
  std::size_t to = 0;
  for (std::size_t r = 0; r < kept.size(); ++r) {
    if (kept[r] == 0) continue;
    capacity[to] = capacity[r];
    row_time[to++] = row_time[r];
  }
  capacity.resize(to);
  row_time.resize(to);
}

}  // namespace shardprop::solver
