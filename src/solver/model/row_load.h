// RowLoad stores the bytes in use minus the capacity, by row. Range add and
// range maximum take O(log rows). A row with a value above zero overflows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/index.h"

namespace shardprop::solver {

class RowLoad {
 public:
  // Starts without bytes in use: row r holds -capacity[r].
  explicit RowLoad(std::span<const std::int64_t> capacity);

  int rows() const { return rows_; }
  void add(int lo, int hi, std::int64_t bytes);
  std::int64_t max(int lo, int hi) const;
  std::int64_t max() const { return rows_ == 0 ? kEmpty : node_[1].most; }
  // Returns a row that holds max(). Precondition: there is one.
  int row_of_max() const;
  // Calls visit(row, value) for rows with a value above zero, until it returns
  // false.
  template <class Visit>
  void for_each_positive(Visit&& visit) const {
    if (rows_ > 0) walk(1, 0, visit);
  }

 private:
  static constexpr std::int64_t kEmpty = -(std::int64_t{1} << 62);

  // `most` is the maximum below, including `pending`. `pending` is the sum of
  // range adds for all rows below.
  struct Node {
    std::int64_t most = kEmpty;
    std::int64_t pending = 0;
  };

  template <class Visit>
  bool walk(int i, std::int64_t above, Visit&& visit) const {
    const Node& node = node_[index(i)];
    if (node.most + above <= 0) return true;
    if (i >= width_) return visit(i - width_, node.most + above);
    above += node.pending;
    return walk(2 * i, above, visit) && walk(2 * i + 1, above, visit);
  }
  void rebuild(int i);

  int rows_ = 0;
  int width_ = 1;  // a power of two, so that a node's children are its halves
  std::vector<Node> node_;
};

}  // namespace shardprop::solver
