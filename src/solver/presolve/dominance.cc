#include "solver/presolve/passes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "base/index.h"
#include "solver/tuning.h"

namespace shardprop::solver {
namespace {

bool uses_no_more(const NetVariable& variable, std::size_t a, std::size_t b) {
  for (const Segment& s : variable.segments) {
    if (s.bytes[a] > s.bytes[b]) return false;
  }
  return true;
}

// Side holds the costs of a variable's choices against each choice of one
// neighbour. The costs of one choice are consecutive.
struct Side {
  const double* costs;
  std::size_t columns;

  const double* row(std::size_t choice) const {
    return costs + choice * columns;
  }
};

std::vector<Side> sides_of(Network& network, int v) {
  const std::vector<int>& edges = network.variables[index(v)].edges;
  std::vector<int> tables;
  tables.reserve(edges.size());
  for (const int e : edges) {
    tables.push_back(network.table_from(network.edges[index(e)], v));
  }
  std::vector<Side> out;
  out.reserve(tables.size());
  for (const int table : tables) {
    out.push_back(
        {network.tables().costs(table).data(),
         static_cast<std::size_t>(network.tables().shape(table).columns)});
  }
  return out;
}

// CheapestForB compares choices where choice b costs least, on each side. A
// choice that costs more than b there cannot dominate b.
class CheapestForB {
 public:
  CheapestForB(const std::vector<Side>& sides, const NetVariable& variable,
               std::size_t b)
      : costs_(variable.costs), cost_of_b_(costs_[b]) {
    columns_.reserve(sides.size());
    for (const Side& side : sides) {
      const double* row = side.row(b);
      const double* there = std::min_element(row, row + side.columns);
      cost_of_b_ += *there;
      columns_.push_back({side.costs + (there - row), side.columns});
    }
    is_allowed_ = std::isfinite(cost_of_b_);
  }

  bool costs_more(std::size_t a) const {
    if (!is_allowed_) return false;
    double cost = costs_[a];
    for (const Side& column : columns_) cost += *column.row(a);
    return cost > cost_of_b_;
  }

 private:
  const std::vector<double>& costs_;
  double cost_of_b_;
  bool is_allowed_;
  std::vector<Side> columns_;  // each begins at its place
};

// Returns the most that a number of `a` exceeds that of `b`. Places where `b` is
// infinite do not count: their difference is NaN or -infinity, and no
// comparison with it is true.
double most_beyond(const double* a, const double* b, std::size_t count) {
  constexpr std::size_t kLanes = 4;
  double most[kLanes] = {-kInfinity, -kInfinity, -kInfinity, -kInfinity};
  std::size_t d = 0;
  for (; d + kLanes <= count; d += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const double beyond = a[d + lane] - b[d + lane];
      most[lane] = beyond > most[lane] ? beyond : most[lane];
    }
  }
  for (; d < count; ++d) {
    const double beyond = a[d] - b[d];
    most[0] = beyond > most[0] ? beyond : most[0];
  }
  return *std::max_element(most, most + kLanes);
}

// Returns the most that choice a can cost beyond choice b, over all choices of
// the neighbours that b allows.
double most_beyond(const std::vector<Side>& sides, double unary_beyond,
                   std::size_t a, std::size_t b) {
  double most = unary_beyond;
  for (const Side& side : sides) {
    most += most_beyond(side.row(a), side.row(b), side.columns);
    if (!(most < kInfinity)) return kInfinity;
  }
  return most;
}

// Returns all that determines which choices of a variable are dominated.
// Repeated layers have many equal variables, and tables with equal content have
// equal ids.
std::vector<double> fingerprint(Network& network, int v) {
  const NetVariable& variable = network.variables[index(v)];
  // The counts come first, so that no two different lists are equal.
  std::vector<double> out{static_cast<double>(variable.costs.size()),
                          static_cast<double>(variable.edges.size())};
  out.insert(out.end(), variable.costs.begin(), variable.costs.end());
  for (const int e : variable.edges) {
    out.push_back(network.table_from(network.edges[index(e)], v));
  }
  for (const Segment& s : variable.segments) {
    out.insert(out.end(), s.bytes.begin(), s.bytes.end());
  }
  return out;
}

}  // namespace

bool dominance(Network& network) {
  bool changed = false;
  std::map<std::vector<double>, std::vector<int>> known;
  for (std::size_t i = 0; i < network.variables.size(); ++i) {
    const int v = static_cast<int>(i);
    const NetVariable& variable = network.variables[i];
    if (!variable.alive || variable.costs.size() < 2) continue;
    const std::size_t k = variable.costs.size();
    double width = 1;
    for (const int e : network.live_edges(v)) {
      const NetEdge& edge = network.edges[index(e)];
      width += network.variables[index(edge.other(v))].num_choices();
    }
    if (width * static_cast<double>(k * k) > tuning::kMostDominanceComparisons)
      continue;
    const auto [alike, fresh] =
        known.try_emplace(fingerprint(network, v), std::vector<int>());
    if (!fresh) {
      if (alike->second.size() == k) continue;
      network.keep_choices(v, alike->second);
      changed = true;
      continue;
    }
    const std::vector<Side> sides = sides_of(network, v);
    std::vector<char> gone(k, 0);
    bool lost = false;
    for (std::size_t b = 0; b < k; ++b) {
      const CheapestForB cheapest(sides, variable, b);
      for (std::size_t a = 0; a < k && gone[b] == 0; ++a) {
        if (a == b || gone[a] != 0) continue;
        if (cheapest.costs_more(a) || !uses_no_more(variable, a, b)) continue;
        const double unary = variable.costs[a] - variable.costs[b];
        if (most_beyond(sides, unary, a, b) <= 0) {
          gone[b] = 1;
          lost = true;
        }
      }
    }
    std::vector<int>& kept = alike->second;
    for (std::size_t c = 0; c < k; ++c) {
      if (gone[c] == 0) kept.push_back(static_cast<int>(c));
    }
    if (!lost) continue;
    network.keep_choices(v, kept);
    changed = true;
  }
  return changed;
}

}  // namespace shardprop::solver
