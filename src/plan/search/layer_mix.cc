#include "plan/search/layer_mix.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/index.h"
#include "base/name_folding.h"
#include "plan/tuning.h"

namespace shardprop {
namespace {

// Returns, by slot, the repeated layer that it belongs to. Layers are numbered
// in the order in which they first run. Nodes between two layers belong to the
// layer before them.
std::vector<std::size_t> layers_of(const Graph& graph, std::int64_t& count) {
  std::map<std::string, std::size_t> numbers;
  std::vector<std::size_t> out;
  std::size_t now = 0;
  for (const Node& node : graph.nodes()) {
    const std::string layer = layer_path(node.module_path);
    if (!layer.empty()) {
      now = numbers.try_emplace(layer, numbers.size()).first->second;
    }
    out.push_back(now);
  }
  out.push_back(now);
  count = static_cast<std::int64_t>(numbers.size());
  return out;
}

double excess(const WindowLoad& load) {
  return static_cast<double>(load.overlappable - load.compute);
}

double base(const PlanEvaluation& plan) {
  return static_cast<double>(plan.objective - plan.exposed());
}

}  // namespace

LayerMix::LayerMix(NetworkSearch& search)
    : search_(search),
      layers_(layers_of(search.problem().graph(), num_layers_)) {}

void LayerMix::add(const SolvedNetwork& solved) {
  for (const Known& known : known_) {
    if (known.evaluation.windows == solved.evaluation.windows &&
        known.evaluation.objective == solved.evaluation.objective) {
      return;
    }
  }
  keep_best(solved,
            std::vector<std::size_t>(index(num_layers_), known_.size()));
  known_.push_back({solved.assignment, solved.evaluation});
  std::set<Counts> tried_now;
  for (Counts counts : tried_) {
    counts.push_back(0);
    tried_now.insert(std::move(counts));
  }
  tried_ = std::move(tried_now);
}

double LayerMix::predicted(const Counts& counts, const Guess& at,
                           const PlanEvaluation& there) const {
  std::vector<double> over;
  double cost = base(there);
  for (const WindowLoad& load : there.windows) over.push_back(excess(load));
  for (std::size_t k = 0; k < known_.size(); ++k) {
    const auto more = static_cast<double>(counts[k] - at.counts[k]) /
                      static_cast<double>(num_layers_);
    if (more == 0) continue;
    const PlanEvaluation& plan = known_[k].evaluation;
    cost += more * base(plan);
    for (std::size_t w = 0; w < over.size(); ++w) {
      over[w] += more * excess(plan.windows[w]);
    }
  }
  for (const double exposed : over) cost += std::max(0.0, exposed);
  const auto boundaries = std::count_if(counts.begin(), counts.end(),
                                        [](std::int64_t n) { return n > 0; }) -
                          1;
  return cost * (1 + tuning::kLayerBoundaryCostShare *
                         static_cast<double>(boundaries));
}

LayerMix::Guess LayerMix::most_promising(const Guess& at,
                                         const PlanEvaluation& there) const {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Guess best{{}, kInfinity};
  Guess now{at.counts, kInfinity};
  for (bool moved = true; moved;) {
    moved = false;
    Guess next = now;
    const auto look = [&](const Counts& counts) {
      const double cost = predicted(counts, at, there);
      if (cost < best.cost && !tried_.contains(counts)) best = {counts, cost};
      if (cost < next.cost) next = {counts, cost};
    };
    // Moves layers from one plan to another, and at the same time one layer
    // between two further plans.
    const std::size_t n = known_.size();
    Counts counts = now.counts;
    for (std::size_t pair = 0; pair < n * n; ++pair) {
      const std::size_t from = pair / n;
      const std::size_t to = pair % n;
      if (from == to) continue;
      for (std::int64_t few = 1; few <= now.counts[from]; few *= 2) {
        counts[from] -= few;
        counts[to] += few;
        look(counts);
        for (std::size_t third = 0; third < n; ++third) {
          if (counts[third] == 0 || third == to) continue;
          for (std::size_t fourth = 0; fourth < n; ++fourth) {
            if (fourth == third || fourth == from) continue;
            --counts[third];
            ++counts[fourth];
            look(counts);
            ++counts[third];
            --counts[fourth];
          }
        }
        counts[from] += few;
        counts[to] -= few;
      }
    }
    moved = next.cost < now.cost;
    now = std::move(next);
  }
  return best;
}

// Layers follow the plans in the order of the plans.
std::vector<std::size_t> LayerMix::layers_by(const Counts& counts) {
  std::vector<std::size_t> out;
  for (std::size_t k = 0; k < counts.size(); ++k) {
    out.insert(out.end(), static_cast<std::size_t>(counts[k]), k);
  }
  return out;
}

// Layers next to a boundary keep all their choices.
SolvedNetwork LayerMix::solve(const Counts& counts,
                              const NetworkOptions& network) {
  const std::vector<std::size_t> plan_of = layers_by(counts);
  const auto at_boundary = [&](std::size_t layer) {
    return (layer > 0 && plan_of[layer - 1] != plan_of[layer]) ||
           (layer + 1 < plan_of.size() && plan_of[layer + 1] != plan_of[layer]);
  };
  NetworkOptions options = network;
  for (std::size_t v = 0; v < known_[0].assignment.size(); ++v) {
    const std::size_t layer = layers_[index(known_[0].assignment.slot(v))];
    if (at_boundary(layer)) continue;
    options.left.hold(known_[plan_of[layer]].assignment, v);
  }
  return search_.solve(
      options, {.bounds = false,
                .budget = search_.budget().share(tuning::kMixBudgetShare),
                .enough_gap = tuning::kMixGap});
}

bool LayerMix::keep_best(const SolvedNetwork& solved,
                         std::vector<std::size_t> follows) {
  if (!best_.assignment.empty() &&
      best_.evaluation.objective <= solved.evaluation.objective) {
    return false;
  }
  best_ = {solved.assignment, solved.evaluation};
  follows_ = std::move(follows);
  return true;
}

SolvedNetwork LayerMix::solve_again(std::size_t layer, double share,
                                    const NetworkOptions& network) {
  NetworkOptions options = network;
  for (std::size_t w = 0; w < options.overlap_multipliers.size(); ++w) {
    std::int64_t& price = options.overlap_multipliers[w];
    const std::int64_t worth =
        best_.evaluation.windows[w].exposed() > 0 ? kOverlapMultiplierUnit : 0;
    price +=
        static_cast<std::int64_t>(share * static_cast<double>(worth - price));
  }
  for (std::size_t v = 0; v < best_.assignment.size(); ++v) {
    if (layers_[index(best_.assignment.slot(v))] == layer) continue;
    options.left.hold(best_.assignment, v);
  }
  return search_.solve(
      options, {.bounds = false,
                .budget = search_.budget().share(tuning::kMixBudgetShare)});
}

// Returns the plans that the layer and its neighbours follow. Layers with the
// same result are alike.
std::vector<std::size_t> LayerMix::followed_around(std::size_t layer) const {
  std::vector<std::size_t> out;
  for (std::size_t l = 0; l < follows_.size(); ++l) {
    if (l + 1 >= layer && l <= layer + 1) out.push_back(follows_[l]);
  }
  return out;
}

void LayerMix::resolve_layers(const NetworkOptions& network) {
  if (num_layers_ < 2 || best_.assignment.empty()) return;
  if (best_.evaluation.objective == resolved_) return;
  std::set<std::vector<std::size_t>> seen;
  std::size_t plans = known_.size();
  int left = tuning::kMostLayerResolves;
  for (std::size_t layer = 0; layer < follows_.size(); ++layer) {
    if (!seen.insert(followed_around(layer)).second) continue;
    for (const double share : tuning::kResolveMultiplierShares) {
      if (search_.incumbent().is_done() || left-- == 0) return;
      const SolvedNetwork solved = solve_again(layer, share, network);
      if (solved.is_infeasible()) continue;
      if (!solved) return;
      std::vector<std::size_t> follows = follows_;
      follows[layer] = plans;
      if (!keep_best(solved, std::move(follows))) continue;
      ++plans;
      // Layers that were tried before may improve the new plan.
      seen.clear();
    }
  }
  resolved_ = best_.evaluation.objective;
}

void LayerMix::run(const NetworkOptions& network) {
  if (num_layers_ < 2 || known_.empty()) return;
  const auto cheapest = std::min_element(
      known_.begin(), known_.end(), [](const Known& a, const Known& b) {
        return a.evaluation.objective < b.evaluation.objective;
      });
  Guess at{Counts(known_.size(), 0), 0};
  at.counts[index(cheapest - known_.begin())] = num_layers_;
  at.cost = static_cast<double>(cheapest->evaluation.objective);
  tried_.insert(at.counts);
  PlanEvaluation there = cheapest->evaluation;
  int failures = 0;
  for (int i = 0; i < tuning::kMostMixes && failures < tuning::kMostFailedMixes;
       ++i) {
    if (search_.incumbent().is_done()) return;
    Guess next = most_promising(at, there);
    if (next.cost >= at.cost * (1 - tuning::kLeastMixGainShare)) return;
    tried_.insert(next.counts);
    const SolvedNetwork solved = solve(next.counts, network);
    if (solved.is_infeasible()) {
      ++failures;
      continue;
    }
    if (!solved) return;
    keep_best(solved, layers_by(next.counts));
    const PlanEvaluation& found = solved.evaluation;
    ++failures;
    if (static_cast<double>(found.objective) >= at.cost) continue;
    failures = 0;
    at = {std::move(next.counts), static_cast<double>(found.objective)};
    there = found;
  }
}

}  // namespace shardprop
