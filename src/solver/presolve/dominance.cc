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

// Returns, for each side, the place where choice b costs least. A choice that
// costs more than b there cannot dominate b.
std::vector<std::size_t> cheapest_for(const std::vector<Side>& sides,
                                      std::size_t b) {
  std::vector<std::size_t> out;
  out.reserve(sides.size());
  for (const Side& side : sides) {
    const double* row = side.row(b);
    out.push_back(static_cast<std::size_t>(
        std::min_element(row, row + side.columns) - row));
  }
  return out;
}

bool costs_more_there(const std::vector<Side>& sides, double unary_beyond,
                      const std::vector<std::size_t>& where, std::size_t a,
                      std::size_t b) {
  double beyond = unary_beyond;
  for (std::size_t i = 0; i < sides.size(); ++i) {
    const double there = sides[i].row(b)[where[i]];
    if (!std::isfinite(there)) return false;
    beyond += sides[i].row(a)[where[i]] - there;
  }
  return beyond > 0;
}

// Returns the most that choice a can cost beyond choice b, over all choices of
// the neighbours that b allows.
double most_beyond(const std::vector<Side>& sides, double unary_beyond,
                   std::size_t a, std::size_t b) {
  double most = unary_beyond;
  for (const Side& side : sides) {
    const double* row_a = side.row(a);
    const double* row_b = side.row(b);
    double here = -kInfinity;
    for (std::size_t d = 0; d < side.columns; ++d) {
      if (!std::isfinite(row_b[d])) continue;
      const double beyond = row_a[d] - row_b[d];
      here = beyond > here ? beyond : here;
    }
    most += here;
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
      const std::vector<std::size_t> cheapest = cheapest_for(sides, b);
      for (std::size_t a = 0; a < k && gone[b] == 0; ++a) {
        if (a == b || gone[a] != 0) continue;
        const double unary = variable.costs[a] - variable.costs[b];
        if (costs_more_there(sides, unary, cheapest, a, b) ||
            !uses_no_more(variable, a, b)) {
          continue;
        }
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
