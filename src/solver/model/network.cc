#include "solver/model/network.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/index.h"

namespace shardprop::solver {
namespace {

constexpr std::int64_t kMostExactCost = std::int64_t{1} << 52;

// Returns the least power of two that divides costs so that they are exact in a
// double. This holds for every finite cost; with `sums_fit`, it holds for every
// sum of costs and every difference of sums.
std::int64_t unit_of(const Problem& problem, bool sums_fit) {
  Int128 most = 0;
  const auto look = [&](std::int64_t cost) {
    most = sums_fit ? most + 2 * Int128{cost} : std::max(most, Int128{cost});
  };
  const auto largest = [](std::span<const std::int64_t> costs) {
    std::int64_t out = 0;
    for (const std::int64_t cost : costs) {
      if (!is_forbidden(cost)) {
        out = std::max(out, cost < 0 ? -(cost + 1) : cost);
      }
    }
    return out;
  };
  for (std::size_t v = 0; v < problem.num_variables(); ++v) {
    look(largest(problem.costs(VariableId(v))));
  }
  std::vector<std::int64_t> of_table(problem.num_tables());
  for (std::size_t t = 0; t < of_table.size(); ++t) {
    of_table[t] = largest(problem.table(TableId(t)).costs);
  }
  for (const Edge& edge : problem.edges()) look(of_table[edge.table.index()]);
  std::int64_t unit = 1;
  while (most / unit >= kMostExactCost) unit *= 2;
  return unit;
}

}  // namespace

Network::Network(const Problem& problem, bool sums_fit)
    : pool_(std::make_shared<TablePool>()) {
  const std::size_t n = problem.num_variables();
  unit = unit_of(problem, sums_fit);
  const auto to_cost = [this](std::int64_t cost) {
    if (is_forbidden(cost)) return kInfinity;
    const bool round_down = cost < 0 && cost % unit != 0;
    const auto units = cost / unit - (round_down ? 1 : 0);
    return static_cast<double>(units);
  };
  variables.resize(n);
  for (std::size_t v = 0; v < n; ++v) {
    const auto costs = problem.costs(VariableId(v));
    variables[v].costs.reserve(costs.size());
    for (const std::int64_t cost : costs)
      variables[v].costs.push_back(to_cost(cost));
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
      std::transform(table.costs.begin(), table.costs.end(), costs.begin(),
                     to_cost);
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

void Network::add_edge(int a, int b, int table) {
  const int id = static_cast<int>(edges.size());
  edges.push_back({a, b, table});
  variables[index(a)].edges.push_back(id);
  variables[index(b)].edges.push_back(id);
}

const std::vector<int>& Network::live_edges(int v) {
  std::vector<int>& list = variables[index(v)].edges;
  std::erase_if(list, [&](int e) { return !edges[index(e)].alive; });
  return list;
}

void Network::keep_choices(int v, const std::vector<int>& kept) {
  NetVariable& variable = variables[index(v)];
  if (kept.size() == variable.costs.size()) return;
  if (kept.empty()) {
    infeasible = true;
    return;
  }
  std::vector<double> costs;
  costs.reserve(kept.size());
  for (const int c : kept) costs.push_back(variable.costs[index(c)]);
  variable.costs = std::move(costs);
  for (Segment& segment : variable.segments) {
    std::vector<std::int64_t> bytes;
    bytes.reserve(kept.size());
    for (const int c : kept) bytes.push_back(segment.bytes[index(c)]);
    segment.bytes = std::move(bytes);
  }
  for (const int e : live_edges(v)) {
    NetEdge& edge = edges[index(e)];
    const int mine = tables().gather_rows(table_from(edge, v), kept);
    edge.table = edge.a == v ? mine : tables().transposed(mine);
  }
  trail.push_back({v, {}, {}, kept, true});
}

void Network::forget(int v, TrailStep step) {
  NetVariable& variable = variables[index(v)];
  variable.alive = false;
  for (const int e : live_edges(v)) remove_edge(e);
  variable =
      NetVariable{.alive = false, .costs = {}, .segments = {}, .edges = {}};
  step.variable = v;
  trail.push_back(std::move(step));
}

void Network::normalise(int v) {
  std::vector<double>& costs = variables[index(v)].costs;
  const double least = *std::min_element(costs.begin(), costs.end());
  if (least == 0 || !std::isfinite(least)) return;
  for (double& cost : costs) cost -= least;
  offset += static_cast<Int128>(least);
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
    out.add_edge(
        mine[index(edge.a)], mine[index(edge.b)],
        out.tables().intern(rows, columns, tables().costs(edge.table)));
  }
  out.capacity = capacity;
  out.row_time = row_time;
  out.offset = offset;
  out.unit = unit;
  return out;
}

std::vector<std::vector<int>> Network::choices_left() const {
  std::vector<std::vector<int>> out;
  for (const NetVariable& v : variables) {
    out.emplace_back(v.costs.size());
    std::iota(out.back().begin(), out.back().end(), 0);
  }
  for (auto step = trail.rbegin(); step != trail.rend(); ++step) {
    if (!step->renames) continue;
    for (int& c : out[index(step->variable)]) c = step->choice[index(c)];
  }
  return out;
}

std::size_t Network::num_alive() const {
  return static_cast<std::size_t>(
      std::count_if(variables.begin(), variables.end(),
                    [](const NetVariable& v) { return v.alive; }));
}

Assignment Network::expand(std::vector<int> choices) const {
  for (auto step = trail.rbegin(); step != trail.rend(); ++step) {
    int& mine = choices[index(step->variable)];
    std::size_t at = 0;
    if (step->renames) {
      at = static_cast<std::size_t>(mine);
    } else {
      for (std::size_t i = 0; i < step->on.size(); ++i) {
        at = at * static_cast<std::size_t>(step->sizes[i]) +
             static_cast<std::size_t>(choices[index(step->on[i])]);
      }
    }
    mine = step->choice[at];
  }
  return {choices.begin(), choices.end()};
}

}  // namespace shardprop::solver
