#include "solver/bucket_elimination.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace shardprop::solver {
namespace {

// A table over several variables, the last one fastest.
struct Factor {
  std::vector<int> scope;
  std::vector<double> costs;
};

struct Step {
  int variable = 0;
  std::vector<int> scope;   // of the new table
  std::vector<int> choice;  // best choice of the variable, by entry
};

// The order: always the variable whose table comes out smallest. Empty when a
// table would exceed the cap.
std::vector<int> plan_order(Network& network, std::size_t cap) {
  std::vector<std::set<int>> neighbours(network.variables.size());
  std::vector<int> alive;
  for (std::size_t v = 0; v < network.variables.size(); ++v) {
    if (!network.variables[v].alive) continue;
    alive.push_back(static_cast<int>(v));
    for (const int e : network.live_edges(static_cast<int>(v))) {
      neighbours[v].insert(network.edges[static_cast<std::size_t>(e)].other(
          static_cast<int>(v)));
    }
  }
  const auto entries = [&](int v) {
    double product = 1;
    for (const int u : neighbours[static_cast<std::size_t>(v)]) {
      product *= network.variables[static_cast<std::size_t>(u)].num_choices();
    }
    return product;
  };
  std::set<std::pair<double, int>> queue;
  std::vector<double> key(network.variables.size(), 0);
  for (const int v : alive) {
    key[static_cast<std::size_t>(v)] = entries(v);
    queue.emplace(key[static_cast<std::size_t>(v)], v);
  }
  std::vector<int> order;
  double total = 0;
  while (!queue.empty()) {
    const auto [size, v] = *queue.begin();
    queue.erase(queue.begin());
    const double touched =
        size * network.variables[static_cast<std::size_t>(v)].num_choices();
    total += touched;
    if (touched > static_cast<double>(cap) ||
        total > 4.0 * static_cast<double>(cap)) {
      return {};
    }
    order.push_back(v);
    const std::set<int> around =
        std::move(neighbours[static_cast<std::size_t>(v)]);
    for (const int u : around) {
      std::set<int>& theirs = neighbours[static_cast<std::size_t>(u)];
      theirs.erase(v);
      for (const int w : around) {
        if (w != u) theirs.insert(w);
      }
    }
    for (const int u : around) {
      queue.erase({key[static_cast<std::size_t>(u)], u});
      key[static_cast<std::size_t>(u)] = entries(u);
      queue.emplace(key[static_cast<std::size_t>(u)], u);
    }
  }
  return order;
}

}  // namespace

std::optional<Eliminated> eliminate_all(Network& network, std::size_t cap,
                                        std::uint64_t& work) {
  const std::vector<int> order = plan_order(network, cap);
  if (order.size() != network.num_alive()) return std::nullopt;
  std::vector<std::vector<Factor>> factors(network.variables.size());
  std::vector<int> position(network.variables.size(), 0);
  for (std::size_t i = 0; i < order.size(); ++i) {
    position[static_cast<std::size_t>(order[i])] = static_cast<int>(i);
  }
  // A factor waits at the variable of its scope that goes first.
  const auto place = [&](Factor factor) {
    const int first = *std::min_element(
        factor.scope.begin(), factor.scope.end(), [&](int x, int y) {
          return position[static_cast<std::size_t>(x)] <
                 position[static_cast<std::size_t>(y)];
        });
    factors[static_cast<std::size_t>(first)].push_back(std::move(factor));
  };
  for (const NetEdge& edge : network.edges) {
    if (edge.alive)
      place({{edge.a, edge.b}, network.tables().costs(edge.table)});
  }
  const auto choices = [&](int v) {
    return static_cast<std::size_t>(
        network.variables[static_cast<std::size_t>(v)].num_choices());
  };
  Eliminated out;
  std::vector<Step> steps;
  for (const int v : order) {
    std::vector<Factor> mine = std::move(factors[static_cast<std::size_t>(v)]);
    Step step{v, {}, {}};
    for (const Factor& f : mine) {
      for (const int u : f.scope) {
        if (u != v) step.scope.push_back(u);
      }
    }
    std::sort(step.scope.begin(), step.scope.end());
    step.scope.erase(std::unique(step.scope.begin(), step.scope.end()),
                     step.scope.end());
    std::size_t entries = 1;
    for (const int u : step.scope) entries *= choices(u);
    // Strides of every factor along the new scope, and along v.
    const std::size_t width = step.scope.size();
    std::vector<std::vector<std::size_t>> stride(
        mine.size(), std::vector<std::size_t>(width + 1, 0));
    for (std::size_t f = 0; f < mine.size(); ++f) {
      std::size_t s = 1;
      for (std::size_t i = mine[f].scope.size(); i-- > 0;) {
        const int u = mine[f].scope[i];
        const auto at = u == v ? width
                               : static_cast<std::size_t>(
                                     std::lower_bound(step.scope.begin(),
                                                      step.scope.end(), u) -
                                     step.scope.begin());
        stride[f][at] = s;
        s *= choices(u);
      }
    }
    Factor result{step.scope, std::vector<double>(entries, kInfinity)};
    step.choice.assign(entries, 0);
    const std::vector<double>& unary =
        network.variables[static_cast<std::size_t>(v)].costs;
    std::vector<std::size_t> index(width, 0);
    std::vector<std::size_t> offset(mine.size(), 0);
    for (std::size_t i = 0; i < entries; ++i) {
      for (std::size_t c = 0; c < unary.size(); ++c) {
        double cost = unary[c];
        for (std::size_t f = 0; f < mine.size(); ++f) {
          cost += mine[f].costs[offset[f] + c * stride[f][width]];
        }
        if (cost < result.costs[i]) {
          result.costs[i] = cost;
          step.choice[i] = static_cast<int>(c);
        }
      }
      for (std::size_t d = width; d-- > 0;) {
        const bool wraps = ++index[d] == choices(step.scope[d]);
        for (std::size_t f = 0; f < mine.size(); ++f) {
          offset[f] += stride[f][d];
          if (wraps) offset[f] -= stride[f][d] * choices(step.scope[d]);
        }
        if (!wraps) break;
        index[d] = 0;
      }
    }
    work += entries * unary.size() * std::max<std::size_t>(1, mine.size());
    if (width == 0) {
      out.cost += result.costs[0];
    } else {
      place(std::move(result));
    }
    steps.push_back(std::move(step));
  }
  out.choices.assign(network.variables.size(), 0);
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    std::size_t at = 0;
    for (const int u : step->scope) {
      at = at * choices(u) +
           static_cast<std::size_t>(out.choices[static_cast<std::size_t>(u)]);
    }
    out.choices[static_cast<std::size_t>(step->variable)] = step->choice[at];
  }
  return out;
}

}  // namespace shardprop::solver
