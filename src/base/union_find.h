// UnionFind is a partition of 0 .. size-1 into sets that can be joined.
//
//   UnionFind sets(3);
//   sets.join(0, 2);      // {0, 2}, {1}
//   sets.root(0) == 2;    // the root of the second set becomes the root of both
#pragma once

#include <cstddef>
#include <vector>

namespace shardprop {

class UnionFind {
 public:
  explicit UnionFind(std::size_t size = 0) {
    while (parents_.size() < size) add();
  }

  // Adds a set of one element. Returns the element.
  std::size_t add() {
    parents_.push_back(parents_.size());
    return parents_.back();
  }
  std::size_t size() const { return parents_.size(); }

  // Returns the element that stands for the set of `element`. It shortens the
  // path to it, so that later calls are faster.
  std::size_t root(std::size_t element) {
    while (parents_[element] != element) {
      element = parents_[element] = parents_[parents_[element]];
    }
    return element;
  }
  bool are_joined(std::size_t a, std::size_t b) { return root(a) == root(b); }

  // Joins two sets. The root of `into` becomes the root of both.
  void join(std::size_t element, std::size_t into) {
    parents_[root(element)] = root(into);
  }

 private:
  std::vector<std::size_t> parents_;
};

}  // namespace shardprop
