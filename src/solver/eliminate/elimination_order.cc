#include "solver/eliminate/elimination_order.h"

#include "base/index.h"
#include "solver/model/rng.h"
#include "solver/tuning.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

namespace shardprop::solver {
namespace {

// The variable that goes next is the one with the least ...
enum class Rule : std::uint8_t {
  kTouched,  // entries touched
  kKept,     // entries of the resulting table
  kFill,     // new edges, weighted by the sizes of their ends
};
constexpr Rule kRules[] = {Rule::kTouched, Rule::kKept, Rule::kFill};

using Adjacency = std::vector<std::vector<int>>;

// Eliminating is the graph of the network during elimination. Neighbours are
// sorted lists.
class Eliminating {
 public:
  // Adds 1 to `steps` for every visited neighbour.
  Eliminating(const std::vector<double>& choices,
              const std::vector<double>& bits, Adjacency neighbours, Rule rule,
              double shake, std::uint64_t seed, std::uint64_t& steps)
      : choices_(choices),
        bits_(bits),
        neighbours_(std::move(neighbours)),
        rule_(rule),
        shake_(shake),
        rng_(seed),
        steps_(steps),
        key_(choices.size(), 0) {
    for (std::size_t v = 0; v < choices.size(); ++v) {
      if (choices_[v] > 0) enqueue(static_cast<int>(v));
    }
  }

  std::optional<EliminationOrder> run(const EliminationLimits& limits,
                                      double most_touched,
                                      const Budget& budget) {
    EliminationOrder out;
    while (!queue_.empty()) {
      const int v = queue_.begin()->second;
      queue_.erase(queue_.begin());
      const double made = table_around(v);
      const double touched = made * choices_[index(v)];
      out.kept += made;
      out.touched += touched;
      out.largest = std::max(out.largest, touched);
      if (touched > limits.touched || out.touched > most_touched ||
          out.kept > limits.kept || steps_ > tuning::kMostOrderSteps ||
          budget.is_cut_off()) {
        return std::nullopt;
      }
      out.variables.push_back(v);
      take_out(v);
    }
    return out;
  }

 private:
  std::vector<int>& around(int v) { return neighbours_[index(v)]; }
  double table_around(int v) {
    double product = 1;
    for (const int u : around(v)) {
      product *= choices_[index(u)];
    }
    return product;
  }
  double fill_around(int v) {
    const std::vector<int>& mine = around(v);
    double fill = 0;
    for (std::size_t i = 0; i < mine.size(); ++i) {
      const std::vector<int>& theirs = around(mine[i]);
      steps_ += mine.size() - i;
      for (std::size_t j = i + 1; j < mine.size(); ++j) {
        if (std::binary_search(theirs.begin(), theirs.end(), mine[j])) continue;
        fill += bits_[index(mine[i])] * bits_[index(mine[j])];
      }
    }
    return fill;
  }
  void enqueue(int v) {
    double key = 0;
    switch (rule_) {
      case Rule::kTouched:
        key = table_around(v) * choices_[index(v)];
        break;
      case Rule::kKept:
        key = table_around(v);
        break;
      case Rule::kFill:
        key = fill_around(v);
        break;
    }
    if (shake_ > 0) key *= 1 + shake_ * rng_.unit();
    key_[index(v)] = key;
    queue_.emplace(key, v);
  }

  void take_out(int v) {
    const std::vector<int> mine = std::move(around(v));
    for (const int u : mine) {
      std::vector<int> joined;
      joined.reserve(around(u).size() + mine.size());
      steps_ += around(u).size() + mine.size();
      std::set_union(around(u).begin(), around(u).end(), mine.begin(),
                     mine.end(), std::back_inserter(joined));
      std::erase_if(joined, [&](int w) { return w == u || w == v; });
      around(u) = std::move(joined);
    }
    std::vector<int> changed = mine;
    if (rule_ == Rule::kFill) {
      // A new edge changes the keys of all variables adjacent to both ends.
      for (const int u : mine) {
        changed.insert(changed.end(), around(u).begin(), around(u).end());
      }
      std::sort(changed.begin(), changed.end());
      changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
    }
    for (const int u : changed) {
      queue_.erase({key_[index(u)], u});
      enqueue(u);
    }
  }

  const std::vector<double>& choices_;
  const std::vector<double>& bits_;  // logarithms of the choices
  Adjacency neighbours_;
  Rule rule_;
  double shake_;
  Rng rng_;
  std::uint64_t& steps_;
  std::vector<double> key_;
  std::set<std::pair<double, int>> queue_;
};

}  // namespace

std::optional<EliminationOrder> order_elimination(
    Network& network, const EliminationLimits& limits, const Budget& budget) {
  const std::size_t n = network.variables.size();
  std::vector<double> choices(n, 0);
  std::vector<double> bits(n, 0);
  Adjacency neighbours(n);
  for (std::size_t v = 0; v < n; ++v) {
    if (!network.variables[v].alive) continue;
    choices[v] = network.variables[v].num_choices();
    bits[v] = std::log2(choices[v] + 1);
    for (const int e : network.live_edges(static_cast<int>(v))) {
      neighbours[v].push_back(
          network.edges[index(e)].other(static_cast<int>(v)));
    }
    std::sort(neighbours[v].begin(), neighbours[v].end());
    neighbours[v].erase(std::unique(neighbours[v].begin(), neighbours[v].end()),
                        neighbours[v].end());
  }
  std::optional<EliminationOrder> best;
  std::uint64_t steps = 0;
  const auto attempt = [&](Rule rule, double shake, std::uint64_t seed,
                           const EliminationLimits& within) {
    const double most = best ? best->touched : 4 * within.touched;
    return Eliminating(choices, bits, neighbours, rule, shake, seed, steps)
        .run(within, most, budget);
  };
  const auto keep = [&](std::optional<EliminationOrder> order) {
    if (order && order->largest <= limits.touched &&
        order->touched <= 4 * limits.touched && order->kept <= limits.kept &&
        (!best || order->touched < best->touched)) {
      best = std::move(order);
    }
  };
  const bool may_shake = limits.touched > tuning::kCheapOrderEntries;
  const double slack = may_shake ? tuning::kPerturbOrdersWithinFactor : 1;
  bool near = false;
  for (const Rule rule : kRules) {
    auto order =
        attempt(rule, 0, 0, {slack * limits.touched, slack * limits.kept});
    near = near || order.has_value();
    keep(std::move(order));
  }
  if (!may_shake || !near ||
      (best && best->touched <= tuning::kCheapOrderEntries))
    return best;
  for (int i = 0; i < tuning::kPerturbedOrders; ++i) {
    for (const Rule rule : kRules) {
      keep(attempt(rule, tuning::kMostOrderPerturbation,
                   static_cast<std::uint64_t>(i), limits));
    }
  }
  return best;
}

}  // namespace shardprop::solver
