#include "solver/search/branch_and_bound.h"

#include "base/index.h"
#include "solver/bound/dual_bound.h"
#include "solver/eliminate/bucket_elimination.h"
#include "solver/presolve/core.h"
#include "solver/presolve/reduce.h"
#include "solver/search/forest_search.h"
#include "solver/tuning.h"

#include <algorithm>
#include <cmath>

namespace shardprop::solver {
namespace {

// Below this limit, every sum of costs is exact in a double.
constexpr double kMostExactSum = 0x1p52;

double most_of_all(Network& network) {
  double most = 1;
  const auto finite_most = [](const std::vector<double>& costs) {
    double out = 0;
    for (const double cost : costs)
      out = std::isfinite(cost) ? std::max(out, cost) : out;
    return out;
  };
  for (const NetVariable& v : network.variables) {
    if (v.alive) most += finite_most(v.costs);
  }
  for (const NetEdge& e : network.edges) {
    if (e.alive) most += finite_most(network.tables().costs(e.table));
  }
  return std::min(most, kMostExactSum);
}

}  // namespace

BranchAndBound::BranchAndBound(Network root, Int128 below,
                               std::vector<double> root_row_price,
                               const PassSet& passes, std::uint64_t seed)
    : passes_(passes), seed_(seed), below_(below) {
  std::vector<std::int64_t> times = root.row_time;
  const Int128 bound = root.offset;
  open_.push_back(
      {std::move(root), bound, std::move(times), std::move(root_row_price)});
}

Int128 BranchAndBound::bound() const {
  Int128 least = below_;
  for (const Node& node : open_) least = std::min(least, node.bound);
  return least;
}

void BranchAndBound::offer(const Network& network, std::vector<int> choices,
                           Int128 cost) {
  if (cost >= below_) return;
  below_ = cost;
  best_cost_ = cost;
  const Assignment full = network.expand(std::move(choices));
  choices_.assign(full.begin(), full.end());
}

void BranchAndBound::run(std::uint64_t work, const Budget& budget,
                         PassTable& table) {
  const std::uint64_t until = work_ + work;
  while (!open_.empty() && work_ < until && !budget.is_cut_off()) {
    Node node = std::move(open_.back());
    open_.pop_back();
    if (node.bound < below_) process(std::move(node), budget, table);
  }
}

// Bounded is the core of a node, its dual bound, and the least extra cost of
// each choice.
struct BranchAndBound::Bounded {
  Bounded(Network& network, double ceiling)
      : core(network, ceiling), dual(core) {}

  const Core core;
  DualBound dual;
  std::vector<int> decoded;  // a choice for each variable of the core
  double base = 0;
  std::vector<double> extra;  // by choice, in the order of Core::unary

  std::size_t at(int variable) const {
    return static_cast<std::size_t>(core.at[index(variable)]);
  }
  int network_variable(int variable) const {
    return core.network_variable[index(variable)];
  }
};

void BranchAndBound::process(Node node, const Budget& budget,
                             PassTable& table) {
  Network& network = node.network;
  work_ += tuning::kWorkOfVariable * network.variables.size();
  for (int round = 0;; ++round) {
    if (settle(network, table)) return;
    const auto room = static_cast<double>(below_ - network.offset);
    const double top = most_of_all(network);
    Bounded here(network, std::min(room, top));
    work_ += 64 + 4 * here.core.unary.size();
    raise_bound(node, here, room, room < top ? room : kInfinity, budget, table);
    if (std::ceil(here.base) >= room) return;
    if (passes_.enabled(Pass::kLocalSearch)) {
      table.time(Pass::kLocalSearch,
                 [&] { look_around(network, here, room, budget); });
    }
    const bool pruned = prune(network, here);
    if (network.infeasible) return;
    if (pruned && round < tuning::kMostRoundsAtNode) continue;
    // Pruning renumbers the choices of a variable, so the node is split at its
    // next visit.
    if (pruned || budget.is_cut_off()) {
      open_.push_back(std::move(node));
    } else {
      split(std::move(node), here);
    }
    return;
  }
}

// Returns whether the node needs no further decision.
bool BranchAndBound::settle(Network& network, PassTable& table) {
  // The network is small enough that no limit matters here.
  reduce(network, passes_, table, Budget());
  if (network.infeasible || network.offset >= below_) return true;
  if (network.num_alive() == 0) {
    offer(network, std::vector<int>(network.variables.size(), 0),
          network.offset);
    return true;
  }
  const bool memory = std::any_of(
      network.variables.begin(), network.variables.end(),
      [](const NetVariable& v) { return v.alive && !v.segments.empty(); });
  if (memory || !passes_.enabled(Pass::kElimination)) return false;
  const auto solved = table.time(Pass::kElimination, [&] {
    return eliminate_all(network, tuning::kMostNodeTableEntries, work_);
  });
  if (!solved.has_value()) return false;
  if (std::isfinite(solved->cost)) {
    offer(network, solved->choices,
          network.offset + static_cast<Int128>(solved->cost));
  }
  return true;
}

// The prices start from those of the parent node. Rows may appear and
// disappear, so a price belongs to the time of its row.
void BranchAndBound::raise_bound(Node& node, Bounded& here, double room,
                                 double target, const Budget& budget,
                                 PassTable& table) {
  const std::vector<std::int64_t>& row_time = node.network.row_time;
  DualBound& dual = here.dual;
  std::vector<double> price(row_time.size(), 0.0);
  for (std::size_t r = 0; r < price.size() && !node.price.empty(); ++r) {
    const auto it = std::lower_bound(node.price_time.begin(),
                                     node.price_time.end(), row_time[r]);
    if (it != node.price_time.end() && *it == row_time[r]) {
      price[r] = node.price[index(it - node.price_time.begin())];
    }
  }
  dual.set_prices(price);
  if (!passes_.enabled(Pass::kDualBound)) {
    here.decoded.assign(static_cast<std::size_t>(here.core.size()), 0);
    here.extra = here.core.unary;
    return;
  }
  table.time(Pass::kDualBound, [&] {
    double judged = -kInfinity;
    for (int i = 0;
         i < tuning::kMostSweepsAtNode && (i == 0 || !budget.is_cut_off());
         ++i) {
      dual.advance(target);
      if (std::ceil(dual.best_bound()) >= room) break;
      if ((i + 1) % tuning::kSweepsBetweenChecks != 0) continue;
      if (dual.best_bound() <
          judged + tuning::kLeastNodeGainShare * (room - judged))
        break;
      judged = dual.best_bound();
    }
    dual.restore_best();
  });
  work_ += dual.work();
  here.decoded = dual.decode();
  here.extra = dual.choice_bounds();
  here.base = dual.best_bound();
  node.price_time = row_time;
  node.price = dual.best_prices();
  if (std::ceil(here.base) < room) {
    node.bound =
        std::max(node.bound, node.network.offset +
                                 static_cast<Int128>(std::ceil(here.base)));
  }
}

// Starts a local search from the choices that the bound suggests.
void BranchAndBound::look_around(const Network& network, const Bounded& here,
                                 double room, const Budget& budget) {
  const Core& core = here.core;
  ForestSearch search(core, seed_ + work_);
  search.assign(here.decoded);
  search.run(
      64 * static_cast<std::uint64_t>(core.size()) + 8 * core.unary.size(),
      budget);
  work_ += search.work();
  if (search.best().empty() || search.best_cost() >= room) return;
  std::vector<int> choices(network.variables.size(), 0);
  for (int v = 0; v < core.size(); ++v) {
    choices[index(here.network_variable(v))] = search.best()[index(v)];
  }
  offer(network, std::move(choices),
        network.offset + static_cast<Int128>(search.best_cost()));
}

// Removes choices that cannot be part of a better assignment.
bool BranchAndBound::prune(Network& network, const Bounded& here) const {
  const auto room = static_cast<double>(below_ - network.offset);
  bool pruned = false;
  for (int v = 0; v < here.core.size() && !network.infeasible; ++v) {
    std::vector<int> kept;
    for (int c = 0; c < here.core.choices(v); ++c) {
      const double extra = here.extra[here.at(v) + index(c)];
      if (std::ceil(here.base + extra) < room) kept.push_back(c);
    }
    pruned = pruned || static_cast<int>(kept.size()) < here.core.choices(v);
    network.keep_choices(here.network_variable(v), kept);
  }
  return pruned;
}

// Branches on the variable for which leaving the best choice costs most. On a
// tie, the variable with the most edges, choices and segments wins.
void BranchAndBound::split(Node node, const Bounded& here) {
  const Core& core = here.core;
  int branch = -1;
  int best_choice = 0;
  double most = -1;
  for (int v = 0; v < core.size(); ++v) {
    const int k = core.choices(v);
    if (k < 2) continue;
    const double* e = &here.extra[here.at(v)];
    double second = kInfinity;
    int first = 0;
    for (int c = 1; c < k; ++c) first = e[c] < e[first] ? c : first;
    for (int c = 0; c < k; ++c) {
      second = c == first ? second : std::min(second, e[c]);
    }
    const double score =
        second + 1e-6 * (static_cast<double>(core.arcs(v).size()) + k +
                         static_cast<double>(core.segments(v).size()));
    if (score <= most) continue;
    most = score;
    branch = v;
    best_choice = first;
  }
  Network& network = node.network;
  if (branch < 0) {
    // The passes that would have finished the node are switched off. Only one
    // assignment is left to try.
    ForestSearch only(core, seed_);
    only.assign(std::vector<int>(static_cast<std::size_t>(core.size()), 0));
    if (!only.feasible()) return;
    offer(network, std::vector<int>(network.variables.size(), 0),
          network.offset + static_cast<Int128>(only.cost()));
    return;
  }
  std::vector<int> rest;
  for (int c = 0; c < core.choices(branch); ++c) {
    if (c != best_choice) rest.push_back(c);
  }
  const int mine = here.network_variable(branch);
  Node without{network, node.bound, node.price_time, node.price};
  without.network.keep_choices(mine, rest);
  network.keep_choices(mine, {best_choice});
  open_.push_back(std::move(without));
  open_.push_back(std::move(node));
}

}  // namespace shardprop::solver
