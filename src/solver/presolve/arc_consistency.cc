#include "solver/presolve/passes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <deque>
#include <limits>

#include "base/index.h"

namespace shardprop::solver {
namespace {

// LeastCapacity returns the least capacity over a row range in constant time.
class LeastCapacity {
 public:
  explicit LeastCapacity(const std::vector<std::int64_t>& capacity) {
    levels_.push_back(capacity);
    for (std::size_t width = 2; width <= capacity.size(); width *= 2) {
      const std::vector<std::int64_t>& below = levels_.back();
      std::vector<std::int64_t> level(capacity.size() - width + 1);
      for (std::size_t i = 0; i < level.size(); ++i) {
        level[i] = std::min(below[i], below[i + width / 2]);
      }
      levels_.push_back(std::move(level));
    }
  }
  std::int64_t operator()(int lo, int hi) const {
    if (lo >= hi) return std::numeric_limits<std::int64_t>::max();
    const auto width = std::bit_floor(static_cast<unsigned>(hi - lo));
    const auto level = index(std::countr_zero(width));
    return std::min(levels_[level][index(lo)],
                    levels_[level][index(hi) - width]);
  }

 private:
  std::vector<std::vector<std::int64_t>> levels_;
};

bool has_support(const double* row, const std::vector<char>& alive) {
  for (std::size_t d = 0; d < alive.size(); ++d) {
    if (alive[d] != 0 && std::isfinite(row[d])) return true;
  }
  return false;
}

}  // namespace

bool arc_consistency(Network& network) {
  const std::size_t n = network.variables.size();
  std::vector<std::vector<char>> alive(n);
  std::deque<int> queue;
  std::vector<char> queued(n, 0);
  const LeastCapacity least_capacity(network.capacity);
  for (std::size_t v = 0; v < n; ++v) {
    const NetVariable& variable = network.variables[v];
    if (!variable.alive) continue;
    alive[v].assign(variable.costs.size(), 1);
    for (std::size_t c = 0; c < alive[v].size(); ++c) {
      if (!std::isfinite(variable.costs[c])) alive[v][c] = 0;
      for (const Segment& s : variable.segments) {
        if (s.bytes[c] > 0 && s.bytes[c] > least_capacity(s.lo, s.hi))
          alive[v][c] = 0;
      }
    }
    queue.push_back(static_cast<int>(v));
    queued[v] = 1;
  }
  while (!queue.empty()) {
    const int u = queue.front();
    queue.pop_front();
    queued[index(u)] = 0;
    for (const int e : network.live_edges(u)) {
      const NetEdge& edge = network.edges[index(e)];
      const auto w = index(edge.other(u));
      const int table = network.table_from(edge, static_cast<int>(w));
      const std::vector<char>& support = alive[index(u)];
      const double* row = network.tables().costs(table).data();
      bool lost = false;
      for (char& mine : alive[w]) {
        if (mine != 0 && !has_support(row, support)) {
          mine = 0;
          lost = true;
        }
        row += support.size();
      }
      if (lost && queued[w] == 0) {
        queue.push_back(static_cast<int>(w));
        queued[w] = 1;
      }
    }
  }
  bool changed = false;
  for (std::size_t v = 0; v < n; ++v) {
    if (!network.variables[v].alive) continue;
    std::vector<int> kept;
    for (std::size_t c = 0; c < alive[v].size(); ++c) {
      if (alive[v][c] != 0) kept.push_back(static_cast<int>(c));
    }
    if (kept.size() == alive[v].size()) continue;
    changed = true;
    network.keep_choices(static_cast<int>(v), kept);
    if (network.infeasible) return true;
  }
  return changed;
}

}  // namespace shardprop::solver
