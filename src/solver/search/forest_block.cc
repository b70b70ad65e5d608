// Chooses the variables that a move of the forest search changes.
#include "solver/search/forest_search.h"

#include <algorithm>
#include <cmath>

#include "base/index.h"
#include "solver/tuning.h"

namespace shardprop::solver {

int ForestSearch::variable_at(int row) {
  // With probability one half, returns a variable that lives for long;
  // otherwise one that begins shortly before the row.
  if (!lasting_.empty() && (rng_.next() & 1) != 0) {
    for (int attempt = 0; attempt < 4; ++attempt) {
      const Lasting& s =
          lasting_[index(rng_.below(static_cast<int>(lasting_.size())))];
      if (s.lo <= row && row < s.hi) return s.variable;
    }
  }
  const auto after =
      std::upper_bound(starts_.begin(), starts_.end(), row,
                       [](int r, const Start& s) { return r < s.row; });
  const int available = static_cast<int>(after - starts_.begin());
  if (available == 0) return starts_.front().variable;
  const int back = 1 + rng_.below(std::min(available, 24));
  return (after - back)->variable;
}

void ForestSearch::add_member(int v, const Touch& touch) {
  const int index = static_cast<int>(block_.size());
  in_block_[static_cast<std::size_t>(v)] = 1;
  const int now = x_[static_cast<std::size_t>(v)];
  block_.push_back({v, touch.parent, touch.to_parent, touch.from_parent,
                    base_.size(), now, now});
  base_.resize(base_.size() + static_cast<std::size_t>(core_.choices(v)));
  for (const Arc& arc : core_.arcs(v)) {
    Touch& t = touch_[static_cast<std::size_t>(arc.other)];
    if (t.count++ == 0) {
      t.parent = index;
      t.to_parent = arc.from_other;
      t.from_parent = arc.to_other;
      touched_.push_back(arc.other);
      frontier_.push_back(arc.other);
    }
  }
}

void ForestSearch::pick_block() {
  for (const Member& m : block_) in_block_[index(m.variable)] = 0;
  for (const int v : touched_) touch_[index(v)] = {};
  block_.clear();
  touched_.clear();
  frontier_.clear();
  base_.clear();
  const int size = std::min(
      core_.size(),
      static_cast<int>(tuning::kSmallBlock *
                       std::exp(tuning::kLogLargeBlock * rng_.unit())));
  const int seeds = 1 + rng_.below(std::min(8, 1 + size / 4));
  int row = -1;
  if (!overflowing_.empty() && (rng_.next() & 3) != 0) {
    row = overflowing_[index(rng_.below(static_cast<int>(overflowing_.size())))]
              .row;
  } else if (core_.rows() > 0) {
    row = rng_.below(core_.rows());
  }
  for (int i = 0; i < seeds; ++i) {
    const int v =
        row >= 0 && !starts_.empty() && (i > 0 || (rng_.next() & 1) != 0)
            ? variable_at(row)
            : rng_.below(core_.size());
    if (in_block_[index(v)] == 0 && touch_[index(v)].count == 0) {
      add_member(v, {});
    }
  }
  while (static_cast<int>(block_.size()) < size && !frontier_.empty()) {
    const auto at = index(rng_.below(static_cast<int>(frontier_.size())));
    const int v = frontier_[at];
    frontier_[at] = frontier_.back();
    frontier_.pop_back();
    const Touch touch = touch_[index(v)];
    if (in_block_[index(v)] == 0 && touch.count == 1) {
      add_member(v, touch);
    }
  }
}

}  // namespace shardprop::solver
