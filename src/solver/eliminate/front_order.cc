#include "solver/eliminate/front_order.h"

#include "base/index.h"
#include "solver/model/rng.h"
#include "solver/tuning.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <unordered_set>
#include <utility>

namespace shardprop::solver {
namespace {

using Neighbours = std::vector<std::vector<int>>;

enum class Visit : std::uint8_t { kUnmet, kInFront, kGone };

// Beginning is a prefix of an order.
struct Beginning {
  std::vector<Visit> status;
  std::vector<int> front;
  double weight = 0;         // weight of the front
  double total = 0;          // over the steps so far
  std::uint64_t digest = 0;  // of the front and the eliminated variables
};

// Step is a possible next step of a prefix.
struct Step {
  double key = 0;
  double weight = 0;
  double total = 0;
  std::uint64_t digest = 0;
  std::size_t from = 0;
  int variable = 0;
};

struct Taken {
  std::size_t from = 0;  // index of the prefix one step earlier
  int variable = 0;
};

class Beam {
 public:
  Beam(const Neighbours& neighbours, const std::vector<double>& weight,
       std::size_t width)
      : neighbours_(neighbours), weight_(weight), width_(width) {
    Rng rng(1);
    for (std::size_t v = 0; v < weight.size(); ++v) {
      met_.push_back(rng.next());
      gone_.push_back(rng.next());
    }
  }

  std::vector<int> run() {
    const std::size_t n = weight_.size();
    for (const int v : far_ends()) {
      Beginning start;
      start.status.assign(n, Visit::kUnmet);
      meet(start, v);
      beginnings_.push_back(std::move(start));
    }
    std::vector<std::vector<Taken>> taken;
    for (std::size_t i = 0; i < n; ++i) taken.push_back(advance());
    std::vector<int> order(n, 0);
    std::size_t at = 0;
    for (std::size_t i = n; i-- > 0;) {
      order[i] = taken[i][at].variable;
      at = taken[i][at].from;
    }
    return order;
  }

 private:
  void meet(Beginning& b, int v) const {
    b.status[index(v)] = Visit::kInFront;
    b.front.push_back(v);
    b.weight += weight_[index(v)];
    b.digest ^= met_[index(v)];
  }

  // Returns the variables that are farthest from some others: the ends of a
  // long graph.
  std::set<int> far_ends() const {
    Rng rng(2);
    std::set<int> out;
    const auto n = static_cast<int>(weight_.size());
    for (int look = 0; look < tuning::kStartSamples; ++look) {
      std::vector<char> seen(weight_.size(), 0);
      std::vector<int> queue{rng.below(n)};
      seen[index(queue[0])] = 1;
      for (std::size_t i = 0; i < queue.size(); ++i) {
        for (const int u : neighbours_[index(queue[i])]) {
          if (std::exchange(seen[index(u)], 1) == 0) queue.push_back(u);
        }
      }
      for (std::size_t i = 0;
           i < std::min(tuning::kStartVariables, queue.size()); ++i) {
        out.insert(queue[queue.size() - 1 - i]);
      }
    }
    return out;
  }

  Step step_of(std::size_t from, int v) const {
    const Beginning& b = beginnings_[from];
    Step out{0, b.weight, b.total, b.digest, from, v};
    for (const int u : neighbours_[index(v)]) {
      if (b.status[index(u)] != Visit::kUnmet) continue;
      out.weight += weight_[index(u)];
      out.digest ^= met_[index(u)];
    }
    out.total += std::exp(out.weight);
    out.weight -= weight_[index(v)];
    out.digest ^= gone_[index(v)];
    out.key = std::log(out.total) + tuning::kLastFrontWeight * out.weight;
    return out;
  }

  Beginning after(const Step& step) const {
    Beginning b = beginnings_[step.from];
    std::erase(b.front, step.variable);
    b.status[index(step.variable)] = Visit::kGone;
    for (const int u : neighbours_[index(step.variable)]) {
      if (b.status[index(u)] == Visit::kUnmet) meet(b, u);
    }
    b.weight = step.weight;
    b.total = step.total;
    b.digest = step.digest;
    return b;
  }

  // Extends all prefixes by one step and keeps the best ones.
  std::vector<Taken> advance() {
    std::vector<Step> steps;
    for (std::size_t i = 0; i < beginnings_.size(); ++i) {
      Beginning& b = beginnings_[i];
      if (b.front.empty()) {
        // Starts with another component of the graph.
        const auto unmet =
            std::find(b.status.begin(), b.status.end(), Visit::kUnmet);
        meet(b, static_cast<int>(unmet - b.status.begin()));
      }
      for (const int v : b.front) steps.push_back(step_of(i, v));
    }
    std::stable_sort(
        steps.begin(), steps.end(),
        [](const Step& a, const Step& b) { return a.key < b.key; });
    std::vector<Beginning> next;
    std::vector<Taken> taken;
    std::unordered_set<std::uint64_t> seen;
    for (const Step& step : steps) {
      if (next.size() >= width_) break;
      if (!seen.insert(step.digest).second) continue;
      next.push_back(after(step));
      taken.push_back({step.from, step.variable});
    }
    beginnings_ = std::move(next);
    return taken;
  }

  const Neighbours& neighbours_;
  const std::vector<double>& weight_;
  std::size_t width_;
  std::vector<std::uint64_t> met_;  // digests, by variable
  std::vector<std::uint64_t> gone_;
  std::vector<Beginning> beginnings_;
};

}  // namespace

std::vector<int> front_order(const Neighbours& neighbours,
                             const std::vector<double>& weight,
                             std::size_t width) {
  if (weight.empty()) return {};
  return Beam(neighbours, weight, std::max<std::size_t>(1, width)).run();
}

std::vector<int> order_met(const Neighbours& neighbours,
                           const std::vector<int>& eliminated) {
  std::vector<char> is_met(neighbours.size(), 0);
  std::vector<int> out;
  const auto meet = [&](int v) {
    if (std::exchange(is_met[index(v)], 1) == 0) out.push_back(v);
  };
  for (const int v : eliminated) {
    meet(v);
    for (const int u : neighbours[index(v)]) meet(u);
  }
  return out;
}

}  // namespace shardprop::solver
