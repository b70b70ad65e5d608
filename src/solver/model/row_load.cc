#include "solver/model/row_load.h"

#include <algorithm>

#include "base/index.h"

namespace shardprop::solver {

RowLoad::RowLoad(std::span<const std::int64_t> capacity)
    : rows_(static_cast<int>(capacity.size())) {
  while (width_ < rows_) width_ *= 2;
  node_.resize(2 * static_cast<std::size_t>(width_));
  for (std::size_t r = 0; r < capacity.size(); ++r) {
    node_[index(width_) + r].most = -capacity[r];
  }
  for (std::size_t i = static_cast<std::size_t>(width_) - 1; i >= 1; --i) {
    node_[i].most = std::max(node_[2 * i].most, node_[2 * i + 1].most);
  }
}

void RowLoad::rebuild(int i) {
  for (i /= 2; i >= 1; i /= 2) {
    Node& node = node_[index(i)];
    node.most =
        std::max(node_[2 * index(i)].most, node_[2 * index(i) + 1].most) +
        node.pending;
  }
}

void RowLoad::add(int lo, int hi, std::int64_t bytes) {
  if (lo >= hi || bytes == 0) return;
  const auto bump = [&](int i) {
    node_[index(i)].most += bytes;
    node_[index(i)].pending += bytes;
  };
  const int first = lo + width_;
  const int last = hi - 1 + width_;
  for (int l = first, r = last + 1; l < r; l /= 2, r /= 2) {
    if ((l & 1) != 0) bump(l++);
    if ((r & 1) != 0) bump(--r);
  }
  rebuild(first);
  if (last != first) rebuild(last);
}

std::int64_t RowLoad::max(int lo, int hi) const {
  if (lo >= hi) return kEmpty;
  // Climbs from both ends with the maxima found below. At each level, it adds
  // the pending adds of the nodes above the ends.
  int l = lo + width_;
  int r = hi - 1 + width_;
  std::int64_t left = node_[index(l)].most;
  std::int64_t right = node_[index(r)].most;
  while (l / 2 != r / 2) {
    if ((l & 1) == 0) left = std::max(left, node_[index(l) + 1].most);
    if ((r & 1) == 1) right = std::max(right, node_[index(r) - 1].most);
    l /= 2;
    r /= 2;
    left += node_[index(l)].pending;
    right += node_[index(r)].pending;
  }
  std::int64_t out = l == r ? left : std::max(left, right);
  for (l /= 2; l >= 1; l /= 2) out += node_[index(l)].pending;
  return out;
}

int RowLoad::row_of_max() const {
  int i = 1;
  while (i < width_) {
    const Node& left = node_[2 * index(i)];
    const Node& right = node_[2 * index(i) + 1];
    i = left.most >= right.most ? 2 * i : 2 * i + 1;
  }
  return i - width_;
}

}  // namespace shardprop::solver
