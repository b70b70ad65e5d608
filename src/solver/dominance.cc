#include "solver/passes.h"

#include <cmath>
#include <map>
#include <vector>

namespace shardprop::solver {
namespace {

// Beyond this many table entries compared, a variable is left as it is.
constexpr double kMaxWork = 2e7;

bool uses_no_more(const NetVariable& variable, std::size_t a, std::size_t b) {
  for (const Segment& s : variable.segments) {
    if (s.bytes[a] > s.bytes[b]) return false;
  }
  return true;
}

// Most that choice a can cost beyond choice b, whatever the neighbours choose
// among what b allows.
double most_beyond(Network& network, int v, std::size_t a, std::size_t b) {
  const std::vector<double>& costs =
      network.variables[static_cast<std::size_t>(v)].costs;
  double most = costs[a] - costs[b];
  for (const int e : network.variables[static_cast<std::size_t>(v)].edges) {
    const NetEdge& edge = network.edges[static_cast<std::size_t>(e)];
    const int table = network.table_from(edge, v);
    const auto columns =
        static_cast<std::size_t>(network.tables().shape(table).columns);
    const double* row_a = network.tables().costs(table).data() + a * columns;
    const double* row_b = network.tables().costs(table).data() + b * columns;
    double here = -kInfinity;
    for (std::size_t d = 0; d < columns; ++d) {
      if (!std::isfinite(row_b[d])) continue;
      const double beyond = row_a[d] - row_b[d];
      here = beyond > here ? beyond : here;
    }
    most += here;
    if (!(most < kInfinity)) return kInfinity;
  }
  return most;
}

// All that decides which choices of a variable are dominated. Repeated layers
// have many variables alike, and tables of equal content have equal ids.
std::vector<double> fingerprint(Network& network, int v) {
  const NetVariable& variable = network.variables[static_cast<std::size_t>(v)];
  std::vector<double> out = variable.costs;
  out.push_back(static_cast<double>(variable.edges.size()));
  for (const int e : variable.edges) {
    out.push_back(
        network.table_from(network.edges[static_cast<std::size_t>(e)], v));
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
      const NetEdge& edge = network.edges[static_cast<std::size_t>(e)];
      width += network.variables[static_cast<std::size_t>(edge.other(v))]
                   .num_choices();
    }
    if (width * static_cast<double>(k * k) > kMaxWork) continue;
    const auto [alike, fresh] =
        known.try_emplace(fingerprint(network, v), std::vector<int>());
    if (!fresh) {
      if (alike->second.size() == k) continue;
      network.keep_choices(v, alike->second);
      changed = true;
      continue;
    }
    std::vector<char> gone(k, 0);
    bool lost = false;
    for (std::size_t b = 0; b < k; ++b) {
      for (std::size_t a = 0; a < k && gone[b] == 0; ++a) {
        if (a == b || gone[a] != 0 || !uses_no_more(variable, a, b)) continue;
        if (most_beyond(network, v, a, b) <= 0) {
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
