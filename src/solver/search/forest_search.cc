#include "solver/search/forest_search.h"

#include "base/index.h"
#include "solver/presolve/min_plus.h"
#include "solver/tuning.h"

#include <algorithm>
#include <cmath>

namespace shardprop::solver {

ForestSearch::ForestSearch(const Core& core, std::uint64_t seed)
    : core_(core), rng_(seed), load_(core.capacity) {
  const auto n = static_cast<std::size_t>(core.size());
  steering_.assign(core.unary.size(), 0.0);
  penalty_.assign(core.unary.size(), 0.0);
  touch_.resize(n);
  in_block_.assign(n, 0);
  for (int v = 0; v < core.size(); ++v) {
    for (const CoreSegment& s : core.segments(v)) {
      starts_.push_back({s.lo, v});
      if (s.hi - s.lo >= tuning::kLastingRows)
        lasting_.push_back({s.lo, s.hi, v});
    }
  }
  std::stable_sort(
      starts_.begin(), starts_.end(),
      [](const Start& a, const Start& b) { return a.row < b.row; });
}

void ForestSearch::assign(const std::vector<int>& choices) {
  load_ = RowLoad(core_.capacity);
  x_ = choices;
  best_.clear();
  best_cost_ = kInfinity;
  recompute_cost();
  for (int v = 0; v < core_.size(); ++v) {
    for (const CoreSegment& s : core_.segments(v)) {
      load_.add(s.lo, s.hi, core_.bytes_of(s)[x_[index(v)]]);
    }
  }
  overflowing_.clear();
  last_overflow_ = kInfinity;
  stuck_ = 0;
  load_.for_each_positive([&](int row, std::int64_t bytes) {
    overflowing_.push_back({row, bytes});
    return true;
  });
  for (const Overflow& o : overflowing_)
    load_.add(o.row, o.row + 1, -o.tolerated);
  refresh_penalties();
  note_best();
}

void ForestSearch::recompute_cost() {
  cost_ = 0;
  for (int v = 0; v < core_.size(); ++v) {
    const int mine = x_[index(v)];
    cost_ += core_.cost(v)[mine];
    for (const Arc& arc : core_.arcs(v)) {
      if (arc.other < v) continue;
      cost_ += arc.to_other[static_cast<std::ptrdiff_t>(mine) *
                                core_.choices(arc.other) +
                            x_[index(arc.other)]];
    }
  }
}

void ForestSearch::set_prices(const std::vector<double>& row_prices) {
  std::vector<double> prefix(row_prices.size() + 1, 0.0);
  double most = 0;
  for (std::size_t r = 0; r < row_prices.size(); ++r) {
    prefix[r + 1] = prefix[r] + row_prices[r];
    most = std::max(most, row_prices[r]);
  }
  penalty_price_ = std::max(penalty_price_, most);
  for (int v = 0; v < core_.size(); ++v) {
    double* mine = &steering_[index(core_.at[index(v)])];
    const int k = core_.choices(v);
    std::fill(mine, mine + k, 0.0);
    for (const CoreSegment& s : core_.segments(v)) {
      const double rate = prefix[index(s.hi)] - prefix[index(s.lo)];
      if (rate <= 0) continue;
      for (int c = 0; c < k; ++c) {
        mine[c] += rate * static_cast<double>(core_.bytes_of(s)[c]);
      }
    }
  }
}

void ForestSearch::refresh_penalties() {
  std::fill(penalty_.begin(), penalty_.end(), 0.0);
  if (overflowing_.empty()) return;
  if (penalty_price_ <= 0) {
    const double bytes = static_cast<double>(
        *std::max_element(core_.capacity.begin(), core_.capacity.end()));
    penalty_price_ = std::max(1.0, std::abs(cost_)) / std::max(1.0, bytes);
  }
  std::vector<int> before(core_.capacity.size() + 1, 0);
  for (const Overflow& o : overflowing_) before[index(o.row) + 1] = 1;
  for (std::size_t r = 1; r < before.size(); ++r) before[r] += before[r - 1];
  for (int v = 0; v < core_.size(); ++v) {
    double* mine = &penalty_[index(core_.at[index(v)])];
    for (const CoreSegment& s : core_.segments(v)) {
      const double rate =
          penalty_price_ * (before[index(s.hi)] - before[index(s.lo)]);
      if (rate <= 0) continue;
      for (int c = 0; c < core_.choices(v); ++c) {
        mine[c] += rate * static_cast<double>(core_.bytes_of(s)[c]);
      }
    }
  }
}

void ForestSearch::prepare_block(double steer) {
  priced_.resize(base_.size());
  for (const Member& m : block_) {
    const int k = core_.choices(m.variable);
    const auto flat = index(core_.at[index(m.variable)]);
    double* base = &base_[m.at];
    for (int c = 0; c < k; ++c) {
      base[c] = core_.unary[flat + index(c)] + penalty_[flat + index(c)];
    }
    for (const Arc& arc : core_.arcs(m.variable)) {
      if (in_block_[index(arc.other)] != 0) continue;
      const double* add = arc.from_other +
                          static_cast<std::ptrdiff_t>(x_[index(arc.other)]) * k;
      for (int c = 0; c < k; ++c) base[c] += add[c];
      work_ += static_cast<std::uint64_t>(k);
    }
    for (int c = 0; c < k; ++c) {
      priced_[m.at + index(c)] = base[c] + steer * steering_[flat + index(c)] +
                                 temperature_ * rng_.unit();
    }
  }
}

double ForestSearch::extra_rate(int lo, int hi) const {
  double rate = 0;
  for (const ExtraPrice& e : extra_) {
    if (lo <= e.row && e.row < hi) rate += e.price;
  }
  return rate;
}

void ForestSearch::solve_block() {
  belief_ = priced_;
  for (std::size_t i = block_.size(); i-- > 0;) {
    Member& m = block_[i];
    if (m.parent < 0) continue;
    const int k = core_.choices(m.variable);
    const Member& parent = block_[index(m.parent)];
    const int up = core_.choices(parent.variable);
    message_.resize(static_cast<std::size_t>(up));
    min_plus(&belief_[m.at], k, m.to_parent, up, message_.data());
    for (int d = 0; d < up; ++d) {
      belief_[parent.at + index(d)] += message_[index(d)];
    }
    work_ += static_cast<std::uint64_t>(k * up);
  }
  for (Member& m : block_) {
    const int k = core_.choices(m.variable);
    const double* belief = &belief_[m.at];
    const double* link =
        m.parent < 0
            ? nullptr
            : m.from_parent +
                  static_cast<std::ptrdiff_t>(block_[index(m.parent)].choice) *
                      k;
    int best = 0;
    double least = kInfinity;
    for (int c = 0; c < k; ++c) {
      const double cost = belief[c] + (link == nullptr ? 0.0 : link[c]);
      if (cost < least) {
        least = cost;
        best = c;
      }
    }
    if (best != m.choice) {
      move_loads(m.variable, m.choice, best);
      m.choice = best;
    }
  }
}

void ForestSearch::move_loads(int v, int from, int to) {
  for (const CoreSegment& s : core_.segments(v)) {
    const std::int64_t* bytes = core_.bytes_of(s);
    load_.add(s.lo, s.hi, bytes[to] - bytes[from]);
  }
}

ForestSearch::BlockCost ForestSearch::block_cost(int Member::* which) const {
  BlockCost out;
  for (const Member& m : block_) {
    const auto choice = index(m.*which);
    double link = 0;
    if (m.parent >= 0) {
      link = m.from_parent[index(block_[index(m.parent)].*which) *
                               index(core_.choices(m.variable)) +
                           choice];
    }
    out.objective += base_[m.at + choice] + link;
    out.priced += priced_[m.at + choice] + link;
  }
  return out;
}

std::int64_t ForestSearch::bytes_added(int row) const {
  std::int64_t added = 0;
  for (const Member& m : block_) {
    if (m.choice == m.before) continue;
    for (const CoreSegment& s : core_.segments(m.variable)) {
      if (s.lo <= row && row < s.hi) {
        const std::int64_t* bytes = core_.bytes_of(s);
        added += bytes[m.choice] - bytes[m.before];
      }
    }
  }
  return added;
}

// Raises the prices of up to tuning::kMostRowsPriced overflowing rows, in equal parts.
// The added prices pay back the gain of the new choice over the old one.
void ForestSearch::raise_prices(double gain) {
  int rows[tuning::kMostRowsPriced];
  int count = 0;
  rows[count++] = load_.row_of_max();
  int seen = 0;
  load_.for_each_positive([&](int row, std::int64_t) {
    bool apart = true;
    for (int i = 0; i < count; ++i)
      apart = apart && std::abs(row - rows[i]) > 16;
    if (apart) rows[count++] = row;
    return count < tuning::kMostRowsPriced && ++seen < 256;
  });
  extra_.clear();
  for (int i = 0; i < count; ++i) {
    const auto added = static_cast<double>(bytes_added(rows[i]));
    extra_.push_back(
        {rows[i], (gain * 1.0001 + 1e-3) / (count * std::max(1.0, added))});
  }
  for (const Member& m : block_) {
    const int k = core_.choices(m.variable);
    for (const CoreSegment& s : core_.segments(m.variable)) {
      const double rate = extra_rate(s.lo, s.hi);
      if (rate <= 0) continue;
      const std::int64_t* bytes = core_.bytes_of(s);
      for (int c = 0; c < k; ++c) {
        priced_[m.at + index(c)] += rate * static_cast<double>(bytes[c]);
      }
    }
  }
}

bool ForestSearch::improve_block() {
  const double steer = static_cast<double>(rng_.below(4)) * 0.5;
  prepare_block(steer);
  const double before = block_cost(&Member::before).objective;
  bool fits = false;
  BlockCost now;
  for (int round = 0; round < tuning::kMostPriceRounds; ++round) {
    solve_block();
    now = block_cost(&Member::choice);
    fits = load_.max() <= 0;
    if (fits || core_.rows() == 0) break;
    raise_prices(
        std::max(0.0, block_cost(&Member::before).priced - now.priced));
  }
  const double slack =
      temperature_ > 0 ? -temperature_ * std::log(1 - rng_.unit()) : 0.0;
  if (!fits || now.objective > before + slack) {
    for (Member& m : block_) {
      if (m.choice != m.before) move_loads(m.variable, m.choice, m.before);
    }
    return false;
  }
  for (const Member& m : block_) {
    const auto flat = index(core_.at[index(m.variable)]);
    x_[index(m.variable)] = m.choice;
    now.objective -=
        penalty_[flat + index(m.choice)] - penalty_[flat + index(m.before)];
  }
  cost_ += now.objective - before;
  if (!overflowing_.empty()) give_back();
  note_best();
  return true;
}

void ForestSearch::give_back() {
  for (Overflow& o : overflowing_) {
    const std::int64_t room = -load_.max(o.row, o.row + 1);
    const std::int64_t back = std::min(room, o.tolerated);
    load_.add(o.row, o.row + 1, back);
    o.tolerated -= back;
  }
  const std::size_t had = overflowing_.size();
  std::erase_if(overflowing_,
                [](const Overflow& o) { return o.tolerated == 0; });
  if (overflowing_.size() * 10 < had * 9 || overflowing_.empty())
    refresh_penalties();
  // Differences of large penalties have been added up, so the cost is computed
  // again from exact integers.
  if (overflowing_.empty()) recompute_cost();
}

void ForestSearch::note_best() {
  if (!feasible() || cost_ >= best_cost_) return;
  best_cost_ = cost_;
  best_ = x_;
}

double ForestSearch::overflow() const {
  double sum = 0;
  for (const Overflow& o : overflowing_)
    sum += static_cast<double>(o.tolerated);
  return sum;
}

// Raises the penalty of overflow if moves are rejected. It also rises if moves
// are accepted but do not reduce the overflow.
void ForestSearch::judge_penalty(bool moved) {
  rejected_in_a_row_ = moved ? 0 : rejected_in_a_row_ + 1;
  if (++stuck_ % tuning::kMovesBetweenStopChecks == 0) {
    const double now = overflow();
    if (now < last_overflow_) stuck_ = 0;
    last_overflow_ = now;
  }
  if (rejected_in_a_row_ <= tuning::kMovePatience &&
      stuck_ <= tuning::kMovePatience + core_.size()) {
    return;
  }
  penalty_price_ = std::min(2 * penalty_price_, core_.ceiling);
  refresh_penalties();
  rejected_in_a_row_ = 0;
  stuck_ = 0;
}

void ForestSearch::run(std::uint64_t work, const Budget& budget) {
  const std::uint64_t until = work_ + work;
  while (work_ < until && !budget.is_cut_off()) {
    pick_block();
    work_ += 16 * block_.size();
    const bool moved = improve_block();
    if (!overflowing_.empty()) judge_penalty(moved);
  }
}

}  // namespace shardprop::solver
