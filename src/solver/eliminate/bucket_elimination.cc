#include "solver/eliminate/bucket_elimination.h"

#include "base/index.h"
#include "base/parallel.h"
#include "solver/presolve/factor_join.h"
#include "solver/tuning.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <utility>

namespace shardprop::solver {
namespace {

template <class T>
class Elimination {
 public:
  Elimination(Network& network, const EliminationOrder& order, T ceiling,
              int threads, const Budget& budget, std::uint64_t& work)
      : network_(network),
        order_(order.variables),
        ceiling_(ceiling),
        threads_(static_cast<std::size_t>(std::max(1, threads))),
        budget_(budget),
        work_(work),
        position_(network.variables.size(), 0),
        waiting_(network.variables.size()) {
    for (const NetVariable& v : network.variables) {
      choices_.push_back(v.costs.size());
    }
    for (std::size_t i = 0; i < order_.size(); ++i) {
      position_[index(order_[i])] = i;
    }
  }

  std::optional<Eliminated> run() {
    place_network();
    double cost = 0;
    for (const int v : order_) {
      joined_.push_back(std::move(waiting_[index(v)]));
      Factor<T> made = join(v, joined_.back());
      if (stopped_) return std::nullopt;
      if (made.scope.empty()) {
        cost += static_cast<double>((*made.costs)[0]);
      } else {
        place(std::move(made));
      }
    }
    return Eliminated{std::min(cost, static_cast<double>(ceiling_)),
                      best_choices()};
  }

 private:
  // A factor waits at the first variable of its scope in the order.
  void place(Factor<T> factor) {
    const int first = *std::min_element(
        factor.scope.begin(), factor.scope.end(), [&](int x, int y) {
          return position_[index(x)] < position_[index(y)];
        });
    waiting_[index(first)].push_back(std::move(factor));
  }

  void place_network() {
    const auto clipped = [&](const std::vector<double>& costs) {
      std::vector<T> out;
      out.reserve(costs.size());
      for (const double cost : costs) {
        out.push_back(cost < static_cast<double>(ceiling_)
                          ? static_cast<T>(cost)
                          : ceiling_);
      }
      return std::make_shared<const std::vector<T>>(std::move(out));
    };
    std::map<std::vector<double>, Factor<T>> unary;
    for (const int v : order_) {
      const std::vector<double>& costs = network_.variables[index(v)].costs;
      Factor<T>& known = unary[costs];
      if (!known.costs) known = {{}, clipped(costs), next_id_++};
      place({{v}, known.costs, known.id});
    }
    std::map<int, Factor<T>> tables;
    for (const NetEdge& edge : network_.edges) {
      if (!edge.alive) continue;
      Factor<T>& known = tables[edge.table];
      if (!known.costs) {
        known = {{}, clipped(network_.tables().costs(edge.table)), next_id_++};
      }
      place({{edge.a, edge.b}, known.costs, known.id});
    }
  }

  // Repeated layers have equal tables in equal places. These factors have the
  // same join, with its axes in the same places.
  Factor<T> join(int v, const std::vector<Factor<T>>& factors) {
    std::vector<int> variables;
    for (const Factor<T>& f : factors) {
      variables.insert(variables.end(), f.scope.begin(), f.scope.end());
    }
    std::sort(variables.begin(), variables.end());
    variables.erase(std::unique(variables.begin(), variables.end()),
                    variables.end());
    const auto place_of = [&](int u) {
      return static_cast<int>(
          std::lower_bound(variables.begin(), variables.end(), u) -
          variables.begin());
    };
    std::vector<int> key{place_of(v)};
    for (const Factor<T>& f : factors) {
      key.push_back(-1 - f.id);
      for (const int u : f.scope) key.push_back(place_of(u));
    }
    Factor<T>& known = made_[std::move(key)];
    if (!known.costs) {
      const FactorJoin<T> loops(v, factors, choices_, ceiling_);
      for (const int u : loops.scope()) known.scope.push_back(place_of(u));
      known.costs = filled(loops);
      known.id = next_id_++;
    }
    Factor<T> out = known;
    for (int& u : out.scope) u = variables[index(u)];
    return out;
  }

  std::shared_ptr<const std::vector<T>> filled(const FactorJoin<T>& loops) {
    std::vector<T> out(loops.entries());
    const auto stop = [this] {
      if (budget_.is_cut_off()) stopped_ = true;
      return stopped_.load();
    };
    const std::size_t threads = loops.touched() < tuning::kEntriesForOneThread
                                    ? 1
                                    : std::min(threads_, loops.rows());
    parallel(threads, [&](std::size_t i) {
      loops.run(loops.rows() * i / threads, loops.rows() * (i + 1) / threads,
                out.data(), stop);
    });
    work_ += loops.touched();
    return std::make_shared<const std::vector<T>>(std::move(out));
  }

  // Goes from the last variable to the first. Each gets its best choice given
  // the variables after it.
  std::vector<int> best_choices() const {
    std::vector<int> out(network_.variables.size(), 0);
    for (std::size_t i = order_.size(); i-- > 0;) {
      int& mine = out[index(order_[i])];
      const std::size_t k = choices_[index(order_[i])];
      T least = std::numeric_limits<T>::max();
      int best = 0;
      for (mine = 0; static_cast<std::size_t>(mine) < k; ++mine) {
        T cost = 0;
        for (const Factor<T>& f : joined_[i]) {
          cost = std::min<T>(cost + entry(f, out), ceiling_);
        }
        if (cost >= least) continue;
        least = cost;
        best = mine;
      }
      mine = best;
    }
    return out;
  }
  T entry(const Factor<T>& f, const std::vector<int>& at) const {
    std::size_t i = 0;
    for (const int u : f.scope) {
      const auto v = index(u);
      i = i * choices_[v] + static_cast<std::size_t>(at[v]);
    }
    return (*f.costs)[i];
  }

  Network& network_;
  const std::vector<int>& order_;
  T ceiling_;
  std::size_t threads_;
  const Budget& budget_;
  std::uint64_t& work_;
  std::vector<std::size_t> choices_;             // by variable
  std::vector<std::size_t> position_;            // in the order, by variable
  std::vector<std::vector<Factor<T>>> waiting_;  // by variable
  std::vector<std::vector<Factor<T>>> joined_;   // by place in the order
  std::map<std::vector<int>, Factor<T>> made_;   // keys list scopes as places
  int next_id_ = 0;
  std::atomic<bool> stopped_ = false;
};

template <class T>
std::optional<Eliminated> run_elimination(Network& network,
                                          const EliminationOrder& order,
                                          T ceiling, int threads,
                                          const Budget& budget,
                                          std::uint64_t& work) {
  return Elimination<T>(network, order, ceiling, threads, budget, work).run();
}

}  // namespace

std::optional<Eliminated> eliminate_in_order(Network& network,
                                             const EliminationOrder& order,
                                             double ceiling, int threads,
                                             const Budget& budget,
                                             std::uint64_t& work) {
  if (ceiling >= 1 && ceiling <= kMostNarrowCost) {
    return run_elimination(network, order, static_cast<std::int32_t>(ceiling),
                           threads, budget, work);
  }
  return run_elimination(network, order, ceiling, threads, budget, work);
}

std::optional<Eliminated> eliminate_all(Network& network, std::size_t cap,
                                        std::uint64_t& work) {
  const auto limit = static_cast<double>(cap);
  const auto order = order_elimination(network, {limit, 4 * limit}, Budget());
  if (!order) return std::nullopt;
  return eliminate_in_order(network, *order, kInfinity, 1, Budget(), work);
}

}  // namespace shardprop::solver
