#include "solver/search/search_worker.h"

#include "base/index.h"
#include "base/saturating.h"
#include "solver/search/recombination.h"
#include "solver/tuning.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

namespace shardprop::solver {

std::vector<int> leanest(const Core& core) {
  std::vector<int> out(static_cast<std::size_t>(core.size()), 0);
  std::vector<double> held;
  for (int v = 0; v < core.size(); ++v) {
    const int k = core.choices(v);
    held.assign(static_cast<std::size_t>(k), 0.0);
    for (const CoreSegment& s : core.segments(v)) {
      for (int c = 0; c < k; ++c) {
        held[index(c)] +=
            static_cast<double>(core.bytes_of(s)[c]) * (s.hi - s.lo);
      }
    }
    int& best = out[index(v)];
    for (int c = 1; c < k; ++c) {
      if (std::pair(held[index(c)], core.cost(v)[c]) <
          std::pair(held[index(best)], core.cost(v)[best])) {
        best = c;
      }
    }
  }
  return out;
}

SearchWorker::SearchWorker(const Core& core, std::uint64_t seed,
                           bool recombines)
    : core_(core),
      rng_(seed),
      search_(core, rng_.next()),
      recombines_(recombines),
      cycle_work_(tuning::kShortCycleWork) {}

// Makes `found` the best combination of itself and `other`, group by group.
void SearchWorker::recombine_into(Found& found, const std::vector<int>& other,
                                  double cost) {
  if (other.empty()) return;
  if (found.choices.empty()) {
    found = {other, cost};
    return;
  }
  if (!recombines_) {
    if (cost < found.cost) found = {other, cost};
    return;
  }
  const auto start = std::chrono::steady_clock::now();
  Recombined both = recombine(core_, found.choices, other);
  const double known = std::min({found.cost, cost, best_cost()});
  found = {std::move(both.choices), found.cost + both.cost_change};
  ++recombination_.runs;
  recombination_.work += both.work;
  recombination_.seconds +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  if (found.cost >= known) return;
  ++recombination_.improvements;
  recombination_.gap_closed =
      sat_add(recombination_.gap_closed, saturated(known - found.cost));
}

void SearchWorker::record_recombination(PassTable& passes,
                                        std::int64_t unit) const {
  const Procedure& mine = recombination_;
  passes.add(Pass::kRecombination, mine.runs, mine.seconds);
  passes.add_work(Pass::kRecombination, mine.work);
  passes.add_gain(Pass::kRecombination, mine.improvements,
                  sat_mul(mine.gap_closed, unit));
}

void SearchWorker::guide(const Guide& guide) {
  if (in_cycle_) return;
  if (guide.prices != nullptr) search_.set_prices(*guide.prices);
  if (cycles_ > 0) end_cycle(guide);
  start_cycle(guide);
}

void SearchWorker::end_cycle(const Guide& guide) {
  if (guide.best != nullptr && guide.best_cost < best_.cost) {
    best_ = {*guide.best, guide.best_cost};
  }
  if (!exploring_) own_ = best_;
  const double before = own_.cost;
  // The end of a cycle is usually not better in total, but may be better in
  // some groups.
  recombine_into(own_, search_.best(), search_.best_cost());
  if (search_.feasible())
    recombine_into(own_, search_.choices(), search_.cost());
  if (exploring_) {
    recombine_into(best_, own_.choices, own_.cost);
  } else {
    best_ = own_;
  }
  const double room = std::isfinite(guide.bound) ? best_.cost - guide.bound
                                                 : std::abs(best_.cost);
  // As long as no assignment fits, the search reduces the overflow.
  found_little_ = !guide.settling && !best_.choices.empty() &&
                  (own_.choices.empty() ||
                   before - own_.cost < tuning::kLittleGainShare * room);
}

void SearchWorker::start_cycle(const Guide& guide) {
  in_cycle_ = true;
  cycle_start_ = search_.work();
  if (guide.settling || cycles_ == 0) {
    search_.assign(*guide.decoded);
  } else if (found_little_ && (exploring_ || guide.may_explore)) {
    exploring_ = !exploring_;
    explored_ = 0;
    own_ = exploring_ ? Found{} : best_;
    if (exploring_) search_.assign(*guide.decoded);
  }
  if (!guide.settling && !own_.choices.empty()) search_.assign(own_.choices);
  // As long as no assignment fits, every other cycle starts from the fewest
  // bytes. Cycles are short at first, so that a new start soon replaces a
  // useless one.
  const bool nothing_fits = guide.best == nullptr && own_.choices.empty();
  if (nothing_fits && cycles_ % 2 == 1) search_.assign(leanest(core_));
  const double brief =
      tuning::kBriefCycleWork *
      std::exp2(std::min(cycles_, tuning::kMostBriefDoublings));
  ++cycles_;
  if (guide.settling || nothing_fits) {
    hottest_ = 0;
    cycle_work_ = nothing_fits ? std::min(brief, tuning::kShortCycleWork)
                               : tuning::kShortCycleWork;
    return;
  }
  const double scale =
      std::isfinite(guide.best_cost)
          ? std::abs(guide.best_cost) / std::max(1, core_.size())
          : 0.0;
  hottest_ = scale * tuning::kColdest *
             std::pow(tuning::kHottest / tuning::kColdest, rng_.unit());
  const int longer = exploring_ ? explored_++ : dug_++;
  cycle_work_ =
      std::min(tuning::kFirstCycleWork * std::pow(tuning::kCycleGrowth, longer),
               tuning::kLongestCycleWork);
}

void SearchWorker::run(std::uint64_t work, const Budget& budget) {
  const std::uint64_t until = search_.work() + work;
  while (in_cycle_ && search_.work() < until && !budget.is_cut_off()) {
    const double progress =
        static_cast<double>(search_.work() - cycle_start_) / cycle_work_;
    if (progress >= 1) {
      in_cycle_ = false;
      break;
    }
    search_.set_temperature(
        hottest_ * std::max(0.0, 1 - progress / (1 - tuning::kColdShare)));
    const auto step =
        static_cast<std::uint64_t>(cycle_work_ / tuning::kTemperatureSteps) + 1;
    search_.run(std::min(step, until - search_.work()), budget);
  }
}

}  // namespace shardprop::solver
