// `RankGroup` is the ranks that take part in one collective, in group order.
//
// It is a strided view (first rank, modes of size and stride, the last mode
// fastest) or a slice of the list of an irregular mesh. It builds no list
// unless asked.
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

// `RankMode` is `size` positions whose ranks differ by `stride`.
struct RankMode {
  std::int64_t size = 1;
  std::int64_t stride = 0;
  friend bool operator==(const RankMode&, const RankMode&) = default;
};

using RankModes = InlineVector<RankMode, 8>;

// `RankTable` is a list of ranks that follow no strides, with the position of
// each rank.
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
  // Makes the group of positions first + sum(index_i * stride_i). A position is
  // a rank, or an index into `table` if there is one.
  RankGroup(std::int64_t first, RankModes modes,
            std::shared_ptr<const RankTable> table = nullptr);

  std::int64_t size() const { return size_; }
  // Precondition: 0 <= i < size().
  std::int64_t rank(std::int64_t i) const;
  std::optional<std::int64_t> index_of(std::int64_t rank) const;
  std::vector<std::int64_t> ranks() const;

  // Groups are equal if they have the same ranks in the same order, in either
  // storage form.
  friend bool operator==(const RankGroup& a, const RankGroup& b);

 private:
  std::int64_t first_ = 0;
  std::int64_t size_ = 1;
  RankModes modes_;
  std::shared_ptr<const RankTable> table_;
};

}  // namespace shardprop
