#include <shardprop/mesh/rank_group.h>

#include "mesh/rank_modes.h"

#include <utility>

#include "base/index.h"

namespace shardprop {

RankTable::RankTable(std::vector<std::int64_t> ranks)
    : ranks_(std::move(ranks)) {
  places_.reserve(ranks_.size());
  for (std::size_t place = 0; place < ranks_.size(); ++place) {
    places_.emplace(ranks_[place], static_cast<std::int64_t>(place));
  }
}

std::optional<std::int64_t> RankTable::place_of(std::int64_t rank) const {
  const auto found = places_.find(rank);
  if (found == places_.end()) return std::nullopt;
  return found->second;
}

RankGroup::RankGroup(std::int64_t first, RankModes modes,
                     std::shared_ptr<const RankTable> table)
    : first_(first),
      size_(mode_count(modes)),
      modes_(std::move(modes)),
      table_(std::move(table)) {}

std::int64_t RankGroup::rank(std::int64_t i) const {
  const std::int64_t position = first_ + mode_offset(modes_, i);
  return table_ ? table_->rank(position) : position;
}

std::optional<std::int64_t> RankGroup::index_of(std::int64_t rank) const {
  const auto position = table_ ? table_->place_of(rank) : rank;
  if (!position) return std::nullopt;
  return mode_index(modes_, *position - first_);
}

std::vector<std::int64_t> RankGroup::ranks() const {
  std::vector<std::int64_t> out(static_cast<std::size_t>(size_));
  for (std::int64_t i = 0; i < size_; ++i) {
    out[index(i)] = rank(i);
  }
  return out;
}

bool operator==(const RankGroup& a, const RankGroup& b) {
  if (a.size_ != b.size_) return false;
  if (!a.table_ && !b.table_) {
    return a.first_ == b.first_ && coalesced(a.modes_) == coalesced(b.modes_);
  }
  for (std::int64_t i = 0; i < a.size_; ++i) {
    if (a.rank(i) != b.rank(i)) return false;
  }
  return true;
}

}  // namespace shardprop
