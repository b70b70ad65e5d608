#include "solver/search_worker.h"

#include "solver/recombination.h"

#include <algorithm>
#include <cmath>

namespace shardprop::solver {
namespace {

constexpr double kShortCycle = 1.5e8;
constexpr double kFirstCycle = 4e8;  // in units of work
constexpr double kCycleGrowth = 1.25;
constexpr double kLongestCycle = 2e10;
constexpr double kColdShare = 0.2;  // of a cycle, at its end
// Temperatures are drawn between these, times the cost per variable.
constexpr double kColdest = 3e-3;
constexpr double kHottest = 3.0;
constexpr int kSteps = 64;  // of temperature in a cycle

}  // namespace

SearchWorker::SearchWorker(const Core& core, std::uint64_t seed)
    : core_(core),
      rng_(seed),
      search_(core, rng_.next()),
      cycle_work_(kShortCycle) {}

// What the last cycle found, or left behind, may be better here and there than
// the best known assignment.
std::vector<int> SearchWorker::put_together(const std::vector<int>& best) {
  std::vector<int> out = best;
  const auto take = [&](const std::vector<int>& other) {
    Recombined both = recombine(core_, out, other);
    recombination_work_ += both.work;
    out = std::move(both.choices);
  };
  if (!search_.best().empty()) take(search_.best());
  if (search_.feasible()) take(search_.choices());
  return out;
}

void SearchWorker::guide(const Guide& guide) {
  if (in_cycle_) return;
  in_cycle_ = true;
  cycle_start_ = search_.work();
  if (guide.prices != nullptr) search_.set_prices(*guide.prices);
  // The first cycles look for a good valley; later ones mostly dig deeper.
  const double afresh = guide.settling ? 1.0 : long_cycles_ < 4 ? 0.4 : 0.1;
  const bool start_afresh = guide.best == nullptr
                                ? cycles_ == 0 || guide.settling
                                : rng_.unit() < afresh;
  if (guide.best != nullptr && cycles_ > 0) {
    search_.assign(put_together(*guide.best));
    best_ = search_.best();
    best_cost_ = search_.best_cost();
  }
  if (start_afresh) {
    search_.assign(*guide.decoded);
  } else if (guide.best != nullptr && cycles_ == 0) {
    search_.assign(*guide.best);
  }
  const double scale =
      std::isfinite(guide.best_cost)
          ? std::abs(guide.best_cost) / std::max(1, core_.size())
          : 0.0;
  if (guide.settling) {
    hottest_ = 0;
    cycle_work_ = kShortCycle;
  } else {
    hottest_ = scale * kColdest * std::pow(kHottest / kColdest, rng_.unit());
    cycle_work_ = std::min(kFirstCycle * std::pow(kCycleGrowth, long_cycles_++),
                           kLongestCycle);
  }
  ++cycles_;
}

void SearchWorker::run(std::uint64_t work, const StopSignal& stop) {
  const std::uint64_t until = search_.work() + work;
  while (in_cycle_ && search_.work() < until && !stop.raised()) {
    const double progress =
        static_cast<double>(search_.work() - cycle_start_) / cycle_work_;
    if (progress >= 1) {
      in_cycle_ = false;
      break;
    }
    search_.set_temperature(hottest_ *
                            std::max(0.0, 1 - progress / (1 - kColdShare)));
    const auto step = static_cast<std::uint64_t>(cycle_work_ / kSteps) + 1;
    search_.run(std::min(step, until - search_.work()), stop);
  }
}

}  // namespace shardprop::solver
