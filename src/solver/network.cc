#include "solver/network.h"

#include <algorithm>
#include <cmath>

namespace shardprop::solver {
namespace {

double to_cost(std::int64_t cost) {
  return is_forbidden(cost) ? kInfinity : static_cast<double>(cost);
}

}  // namespace

Network::Network(const Problem& problem)
    : pool_(std::make_shared<TablePool>()) {
  const std::size_t n = problem.num_variables();
  variables.resize(n);
  for (std::size_t v = 0; v < n; ++v) {
    const auto costs = problem.costs(VariableId(v));
    variables[v].costs.reserve(costs.size());
    for (const std::int64_t cost : costs) variables[v].costs.push_back(to_cost(cost));
  }
  for (const Pin& pin : problem.pins()) {
    std::vector<double>& costs = variables[pin.variable.index()].costs;
    for (std::size_t c = 0; c < costs.size(); ++c) {
      if (c != pin.choice) costs[c] = kInfinity;
    }
  }
  std::vector<int> table_ids(problem.num_tables(), -1);
  for (const Edge& edge : problem.edges()) {
    int& id = table_ids[edge.table.index()];
    if (id < 0) {
      const Table table = problem.table(edge.table);
      std::vector<double> costs(table.costs.size());
      std::transform(table.costs.begin(), table.costs.end(), costs.begin(), to_cost);
      id = tables().intern(static_cast<int>(table.rows),
                         static_cast<int>(table.columns), std::move(costs));
    }
    const int a = static_cast<int>(edge.a.index());
    const int b = static_cast<int>(edge.b.index());
    if (a == b) {
      std::vector<double>& costs = variables[edge.a.index()].costs;
      for (std::size_t c = 0; c < costs.size(); ++c) {
        costs[c] += tables().at(id, static_cast<int>(c), static_cast<int>(c));
      }
    } else {
      add_edge(a, b, id);
    }
  }
  if (problem.limit().has_value()) build_memory(problem);
  for (std::size_t v = 0; v < n && !infeasible; ++v) {
    std::vector<int> kept;
    const std::vector<double>& costs = variables[v].costs;
    for (std::size_t c = 0; c < costs.size(); ++c) {
      if (std::isfinite(costs[c])) kept.push_back(static_cast<int>(c));
    }
    keep_choices(static_cast<int>(v), kept);
  }
}

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
          {row_of(usage.when.lo), row_of(usage.when.hi),
           {usage.bytes.begin(), usage.bytes.end()}});
    }
  }
}

void Network::add_edge(int a, int b, int table) {
  const int id = static_cast<int>(edges.size());
  edges.push_back({a, b, table});
  variables[static_cast<std::size_t>(a)].edges.push_back(id);
  variables[static_cast<std::size_t>(b)].edges.push_back(id);
}

const std::vector<int>& Network::live_edges(int v) {
  std::vector<int>& list = variables[static_cast<std::size_t>(v)].edges;
  std::erase_if(list, [&](int e) { return !edges[static_cast<std::size_t>(e)].alive; });
  return list;
}

void Network::keep_choices(int v, const std::vector<int>& kept) {
  NetVariable& variable = variables[static_cast<std::size_t>(v)];
  if (kept.size() == variable.costs.size()) return;
  if (kept.empty()) {
    infeasible = true;
    return;
  }
  std::vector<double> costs;
  costs.reserve(kept.size());
  for (const int c : kept) costs.push_back(variable.costs[static_cast<std::size_t>(c)]);
  variable.costs = std::move(costs);
  for (Segment& segment : variable.segments) {
    std::vector<std::int64_t> bytes;
    bytes.reserve(kept.size());
    for (const int c : kept) bytes.push_back(segment.bytes[static_cast<std::size_t>(c)]);
    segment.bytes = std::move(bytes);
  }
  for (const int e : live_edges(v)) {
    NetEdge& edge = edges[static_cast<std::size_t>(e)];
    const int mine = tables().gather_rows(table_from(edge, v), kept);
    edge.table = edge.a == v ? mine : tables().transposed(mine);
  }
  trail.push_back({v, {}, {}, kept, true});
}

void Network::forget(int v, TrailStep step) {
  NetVariable& variable = variables[static_cast<std::size_t>(v)];
  variable.alive = false;
  for (const int e : live_edges(v)) remove_edge(e);
  variable = NetVariable{.alive = false, .costs = {}, .segments = {}, .edges = {}};
  step.variable = v;
  trail.push_back(std::move(step));
}

void Network::normalise(int v) {
  std::vector<double>& costs = variables[static_cast<std::size_t>(v)].costs;
  const double least = *std::min_element(costs.begin(), costs.end());
  if (least == 0 || !std::isfinite(least)) return;
  for (double& cost : costs) cost -= least;
  offset += static_cast<Int128>(least);
}

void Network::reserve_bytes(int lo, int hi, std::int64_t bytes) {
  reserved_.resize(capacity.size() + 1, 0);
  reserved_[static_cast<std::size_t>(lo)] += bytes;
  reserved_[static_cast<std::size_t>(hi)] -= bytes;
}

void Network::tidy_segments(int v) {
  std::vector<Segment>& segments = variables[static_cast<std::size_t>(v)].segments;
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
  std::sort(segments.begin(), segments.end(), [](const Segment& x, const Segment& y) {
    return x.lo < y.lo || (x.lo == y.lo && x.hi < y.hi);
  });
  bool disjoint = true;
  for (std::size_t i = 1; i < segments.size(); ++i) {
    disjoint = disjoint && segments[i - 1].hi <= segments[i].lo;
  }
  std::vector<Segment> out;
  const auto emit = [&](int lo, int hi, const std::vector<std::int64_t>& bytes) {
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
  // A sweep over the ends, carrying the sum of what is live.
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
      const std::vector<std::int64_t>& bytes = segments[events[i].segment].bytes;
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
  const std::size_t rows = capacity.size();
  if (rows == 0) return;
  std::int64_t reserved = 0;
  for (std::size_t r = 0; r < reserved_.size() && r < rows; ++r) {
    reserved += reserved_[r];
    capacity[r] -= reserved;
  }
  reserved_.clear();
  std::vector<std::int64_t> most(rows + 1, 0);
  std::vector<char> starts(rows + 1, 0);
  std::vector<char> ends(rows + 1, 0);
  for (const NetVariable& variable : variables) {
    if (!variable.alive) continue;
    for (const Segment& s : variable.segments) {
      const std::int64_t bytes = *std::max_element(s.bytes.begin(), s.bytes.end());
      most[static_cast<std::size_t>(s.lo)] += bytes;
      most[static_cast<std::size_t>(s.hi)] -= bytes;
    }
  }
  std::vector<char> keep(rows, 0);
  std::int64_t sum = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    sum += most[r];
    if (capacity[r] < 0 && !infeasible) {
      infeasible = true;
      short_row = static_cast<int>(r);
    }
    keep[r] = sum > capacity[r] ? 1 : 0;
  }
  // Segments shrink to the rows that are kept before neighbours are compared.
  const auto compress = [&](const std::vector<char>& kept) {
    std::vector<int> before(kept.size() + 1, 0);
    for (std::size_t r = 0; r < kept.size(); ++r) before[r + 1] = before[r] + kept[r];
    for (NetVariable& variable : variables) {
      if (!variable.alive) continue;
      for (Segment& s : variable.segments) {
        s.lo = before[static_cast<std::size_t>(s.lo)];
        s.hi = before[static_cast<std::size_t>(s.hi)];
      }
      std::erase_if(variable.segments, [](const Segment& s) { return s.lo >= s.hi; });
    }
    std::size_t to = 0;
    for (std::size_t r = 0; r < kept.size(); ++r) {
      if (kept[r] == 0) continue;
      capacity[to] = capacity[r];
      row_time[to++] = row_time[r];
    }
    capacity.resize(to);
    row_time.resize(to);
  };
  if (infeasible) return;
  compress(keep);
  const std::size_t left = capacity.size();
  for (const NetVariable& variable : variables) {
    if (!variable.alive) continue;
    for (std::size_t i = 0; i < variable.segments.size(); ++i) {
      starts[static_cast<std::size_t>(variable.segments[i].lo)] = 1;
      ends[static_cast<std::size_t>(variable.segments[i].hi)] = 1;
    }
  }
  // Between two starts-or-ends the live set only grows or only shrinks along a
  // run, so a row implied by a kept neighbour is implied for good: scan with a
  // stack of kept rows.
  keep.assign(left, 1);
  std::vector<std::size_t> stack;
  std::vector<char> grew;   // something starts between stack[i-1] and stack[i]
  std::vector<char> shrank;  // something ends there
  for (std::size_t r = 0; r < left; ++r) {
    char grows = starts[r];
    char shrinks = ends[r];
    bool dropped = false;
    while (!stack.empty()) {
      const std::size_t last = stack.back();
      if (shrinks == 0 && capacity[r] <= capacity[last]) {
        // live(last) is part of live(r): last is implied by r.
        keep[last] = 0;
        grows = static_cast<char>(grows | grew.back());
        shrinks = static_cast<char>(shrinks | shrank.back());
        stack.pop_back();
        grew.pop_back();
        shrank.pop_back();
        continue;
      }
      if (grows == 0 && capacity[last] <= capacity[r]) {
        keep[r] = 0;
        dropped = true;
      }
      break;
    }
    if (dropped) {
      // What ended before r also ended before whatever follows r.
      if (r + 1 < left) {
        ends[r + 1] = static_cast<char>(ends[r + 1] | shrinks);
        starts[r + 1] = static_cast<char>(starts[r + 1] | grows);
      }
      continue;
    }
    stack.push_back(r);
    grew.push_back(grows);
    shrank.push_back(shrinks);
  }
  compress(keep);
}

void Network::normalise_edges() {
  for (NetEdge& edge : edges) {
    if (!edge.alive) continue;
    const double least = tables().least(edge.table);
    if (least == 0 || !std::isfinite(least)) continue;
    edge.table = tables().lowered(edge.table);
    offset += static_cast<Int128>(least);
  }
}

Network Network::extract(std::vector<int>& variable) const {
  Network out;
  std::vector<int> mine(variables.size(), -1);
  variable.clear();
  for (std::size_t v = 0; v < variables.size(); ++v) {
    if (!variables[v].alive) continue;
    mine[v] = static_cast<int>(variable.size());
    variable.push_back(static_cast<int>(v));
    out.variables.push_back(variables[v]);
    out.variables.back().edges.clear();
  }
  for (const NetEdge& edge : edges) {
    if (!edge.alive) continue;
    const auto [rows, columns] = tables().shape(edge.table);
    out.add_edge(mine[static_cast<std::size_t>(edge.a)],
                 mine[static_cast<std::size_t>(edge.b)],
                 out.tables().intern(rows, columns, tables().costs(edge.table)));
  }
  out.capacity = capacity;
  out.row_time = row_time;
  out.offset = offset;
  return out;
}

std::size_t Network::num_alive() const {
  return static_cast<std::size_t>(std::count_if(
      variables.begin(), variables.end(), [](const NetVariable& v) { return v.alive; }));
}

Assignment Network::expand(std::vector<int> choices) const {
  for (auto step = trail.rbegin(); step != trail.rend(); ++step) {
    int& mine = choices[static_cast<std::size_t>(step->variable)];
    std::size_t at = 0;
    if (step->renames) {
      at = static_cast<std::size_t>(mine);
    } else {
      for (std::size_t i = 0; i < step->on.size(); ++i) {
        at = at * static_cast<std::size_t>(step->sizes[i]) +
             static_cast<std::size_t>(choices[static_cast<std::size_t>(step->on[i])]);
      }
    }
    mine = step->choice[at];
  }
  return {choices.begin(), choices.end()};
}

}  // namespace shardprop::solver
