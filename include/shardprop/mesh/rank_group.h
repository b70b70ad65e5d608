// RankGroup: the ranks that take part in one collective, in group order.
//
// A strided view (first rank, modes of size and stride, the last one fastest),
// or a slice of an irregular mesh's list. Never materialised unless asked.
//
//   DeviceMesh::parse("dp=2,tp=4")->group(0, {0, 3})  // ranks 3, 7
#pragma once

#include <shardprop/base/inline_vector.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

namespace shardprop {

struct RankMode {
  std::int64_t size = 1;
  std::int64_t stride = 0;
  friend bool operator==(const RankMode&, const RankMode&) = default;
};

using RankModes = InlineVector<RankMode, 8>;

// Ranks that follow no strides, and the place of each in the list.
class RankTable {
 public:
  // Precondition: the ranks are distinct.
  explicit RankTable(std::vector<std::int64_t> ranks);

  std::int64_t rank(std::int64_t place) const {
    return ranks_[static_cast<std::size_t>(place)];
  }
  std::optional<std::int64_t> place_of(std::int64_t rank) const;

 private:
  std::vector<std::int64_t> ranks_;
  std::unordered_map<std::int64_t, std::int64_t> places_;
};

class RankGroup {
 public:
  RankGroup() = default;
  // Positions first + sum(index_i * stride_i): ranks themselves, or places in
  // `table` when one is given.
  RankGroup(std::int64_t first, RankModes modes,
            std::shared_ptr<const RankTable> table = nullptr);

  std::int64_t size() const { return size_; }
  // Precondition: 0 <= i < size().
  std::int64_t rank(std::int64_t i) const;
  std::optional<std::int64_t> index_of(std::int64_t rank) const;
  std::vector<std::int64_t> ranks() const;

  // The same ranks in the same order, however they are held.
  friend bool operator==(const RankGroup& a, const RankGroup& b);

 private:
  std::int64_t first_ = 0;
  std::int64_t size_ = 1;
  RankModes modes_;
  std::shared_ptr<const RankTable> table_;
};

}  // namespace shardprop
