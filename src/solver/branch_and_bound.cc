#include "solver/branch_and_bound.h"

#include "solver/bucket_elimination.h"
#include "solver/core.h"
#include "solver/dual_bound.h"
#include "solver/forest_search.h"
#include "solver/reduce.h"

#include <algorithm>
#include <cmath>

namespace shardprop::solver {
namespace {

constexpr std::size_t kTableCap = 1U << 20;
constexpr int kMaxRounds = 4;       // of bounding and pruning at a node
constexpr int kMaxSweeps = 60;      // at one round
constexpr int kSweepsBetween = 10;  // after which progress is judged

// Above this no sum of costs is exact in a double.
constexpr double kMostExact = 0x1p52;

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
  return std::min(most, kMostExact);
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

void BranchAndBound::run(std::uint64_t work, const StopSignal& stop,
                         PassClock& clock) {
  const std::uint64_t until = work_ + work;
  while (!open_.empty() && work_ < until && !stop.raised()) {
    Node node = std::move(open_.back());
    open_.pop_back();
    if (node.bound < below_) process(std::move(node), stop, clock);
  }
}

void BranchAndBound::process(Node node, const StopSignal& stop,
                             PassClock& clock) {
  Network& network = node.network;
  for (int round = 0;; ++round) {
    // Small enough to be done before a limit would matter.
    reduce(network, passes_, clock, StopSignal{});
    if (network.infeasible || network.offset >= below_) return;
    std::vector<int> none(network.variables.size(), 0);
    if (network.num_alive() == 0) {
      offer(network, none, network.offset);
      return;
    }
    const bool memory = std::any_of(
        network.variables.begin(), network.variables.end(),
        [](const NetVariable& v) { return v.alive && !v.segments.empty(); });
    if (!memory && passes_.enabled(Pass::kElimination)) {
      const auto solved = clock.time(Pass::kElimination, [&] {
        return eliminate_all(network, kTableCap, work_);
      });
      if (solved.has_value()) {
        if (std::isfinite(solved->cost)) {
          offer(network, solved->choices,
                network.offset + static_cast<Int128>(solved->cost));
        }
        return;
      }
    }
    const double room = static_cast<double>(below_ - network.offset);
    const double top = most_of_all(network);
    const Core core(network, std::min(room, top));
    work_ += 64 + 4 * core.unary.size();
    const int n = core.size();
    DualBound dual(core);
    std::vector<int> decoded;
    clock.time(Pass::kDualBound, [&] {
      // Rows come and go; a price stays with the time of its row.
      std::vector<double> price(network.row_time.size(), 0.0);
      for (std::size_t r = 0; r < price.size() && !node.price.empty(); ++r) {
        const auto it =
            std::lower_bound(node.price_time.begin(), node.price_time.end(),
                             network.row_time[r]);
        if (it != node.price_time.end() && *it == network.row_time[r]) {
          price[r] = node.price[static_cast<std::size_t>(
              it - node.price_time.begin())];
        }
      }
      dual.set_prices(price);
      if (!passes_.enabled(Pass::kDualBound)) return;
      const double target = room < top ? room : kInfinity;
      double judged = -kInfinity;
      for (int i = 0; i < kMaxSweeps && (i == 0 || !stop.raised()); ++i) {
        dual.advance(target);
        if (std::ceil(dual.best_bound()) >= room) break;
        if ((i + 1) % kSweepsBetween != 0) continue;
        if (dual.best_bound() < judged + 0.02 * (room - judged)) break;
        judged = dual.best_bound();
      }
      dual.restore_best();
      decoded = dual.decode();
      node.price_time = network.row_time;
      node.price = dual.best_prices();
    });
    work_ += dual.work();
    if (passes_.enabled(Pass::kDualBound)) {
      const double bound = std::ceil(dual.best_bound());
      if (bound >= room) return;
      node.bound =
          std::max(node.bound, network.offset + static_cast<Int128>(bound));
    } else {
      decoded.assign(static_cast<std::size_t>(n), 0);
    }
    if (passes_.enabled(Pass::kLocalSearch)) {
      clock.time(Pass::kLocalSearch, [&] {
        ForestSearch search(core, seed_ + work_);
        search.assign(decoded);
        search.run(64 * static_cast<std::uint64_t>(n) + 8 * core.unary.size(),
                   stop);
        work_ += search.work();
        if (search.best().empty() || search.best_cost() >= room) return;
        std::vector<int> choices = none;
        for (int v = 0; v < n; ++v) {
          choices[static_cast<std::size_t>(
              core.network_variable[static_cast<std::size_t>(v)])] =
              search.best()[static_cast<std::size_t>(v)];
        }
        offer(network, std::move(choices),
              network.offset + static_cast<Int128>(search.best_cost()));
      });
    }
    // What cannot be part of anything better goes.
    const double now_room = static_cast<double>(below_ - network.offset);
    std::vector<double> extra = dual.choice_bounds();
    const double base =
        passes_.enabled(Pass::kDualBound) ? dual.best_bound() : 0.0;
    if (!passes_.enabled(Pass::kDualBound)) extra = core.unary;
    bool pruned = false;
    for (int v = 0; v < n && !network.infeasible; ++v) {
      std::vector<int> kept;
      for (int c = 0; c < core.choices(v); ++c) {
        const auto at =
            static_cast<std::size_t>(core.at[static_cast<std::size_t>(v)]) +
            static_cast<std::size_t>(c);
        if (std::ceil(base + extra[at]) < now_room) kept.push_back(c);
      }
      pruned = pruned || static_cast<int>(kept.size()) < core.choices(v);
      network.keep_choices(core.network_variable[static_cast<std::size_t>(v)],
                           kept);
    }
    if (network.infeasible) return;
    if (pruned && round < kMaxRounds) continue;
    if (stop.raised()) {
      open_.push_back(std::move(node));
      return;
    }
    // Splits where leaving the best choice costs most, or where there is most
    // to decide.
    int branch = -1;
    int best_choice = 0;
    double most = -1;
    for (int v = 0; v < n; ++v) {
      const int mine = core.network_variable[static_cast<std::size_t>(v)];
      if (pruned && !network.variables[static_cast<std::size_t>(mine)].alive)
        continue;
      const double* e = &extra[static_cast<std::size_t>(
          core.at[static_cast<std::size_t>(v)])];
      double second = kInfinity;
      int first = 0;
      const int k = core.choices(v);
      if (k < 2) continue;
      for (int c = 1; c < k; ++c) first = e[c] < e[first] ? c : first;
      for (int c = 0; c < k; ++c)
        second = c == first ? second : std::min(second, e[c]);
      const double score =
          second + 1e-6 * (static_cast<double>(core.arcs(v).size()) + k +
                           static_cast<double>(core.segments(v).size()));
      if (score > most) {
        most = score;
        branch = v;
        best_choice = first;
      }
    }
    if (branch < 0) {
      // Passes that would have finished the node are switched off: there is
      // one assignment left to try.
      ForestSearch only(core, seed_);
      only.assign(std::vector<int>(static_cast<std::size_t>(n), 0));
      if (only.feasible()) {
        offer(network, none, network.offset + static_cast<Int128>(only.cost()));
      }
      return;
    }
    const int mine = core.network_variable[static_cast<std::size_t>(branch)];
    if (pruned) {
      // The choices were renumbered when some were dropped just now.
      reduce(network, passes_, clock, StopSignal{});
      node.bound = std::max(node.bound, network.offset);
      open_.push_back(std::move(node));
      return;
    }
    std::vector<int> rest;
    for (int c = 0; c < core.choices(branch); ++c) {
      if (c != best_choice) rest.push_back(c);
    }
    Node without{network, node.bound, node.price_time, node.price};
    without.network.keep_choices(mine, rest);
    network.keep_choices(mine, {best_choice});
    open_.push_back(std::move(without));
    open_.push_back(std::move(node));
    return;
  }
}

}  // namespace shardprop::solver
