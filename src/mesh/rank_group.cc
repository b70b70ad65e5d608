#include <shardprop/mesh/rank_group.h>

#include "mesh/rank_modes.h"

#include <utility>

namespace shardprop {

RankGroup::RankGroup(std::int64_t first, RankModes modes,
                     std::shared_ptr<const std::vector<std::int64_t>> table)
    : first_(first),
      size_(mode_count(modes)),
      modes_(std::move(modes)),
      table_(std::move(table)) {}

std::int64_t RankGroup::rank(std::int64_t i) const {
  const std::int64_t position = first_ + mode_offset(modes_, i);
  return table_ ? (*table_)[static_cast<std::size_t>(position)] : position;
}

std::optional<std::int64_t> RankGroup::index_of(std::int64_t rank) const {
  if (!table_) return mode_index(modes_, rank - first_);
  for (std::int64_t i = 0; i < size_; ++i) {
    if (this->rank(i) == rank) return i;
  }
  return std::nullopt;
}

std::vector<std::int64_t> RankGroup::ranks() const {
  std::vector<std::int64_t> out(static_cast<std::size_t>(size_));
  for (std::int64_t i = 0; i < size_; ++i) {
    out[static_cast<std::size_t>(i)] = rank(i);
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
