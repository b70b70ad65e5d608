// `Groups` partitions the elements of a tensor: the elements that a reduction
// combines, or the lines along one dim that a scan or a sort processes.
#pragma once

#include "base/index.h"
#include "reference/call.h"

#include <utility>
#include <vector>

namespace shardprop::reference {

// `Groups` is the groups of a reduction over some dims. There is one group per
// element of the result, in the order of the result. The elements of a group
// are in row-major order.
class Groups {
 public:
  Groups(const Dims& shape, const std::vector<int>& reduced);

  // Calls f(const std::vector<T>&) for every group.
  template <class T, class F>
  void visit(const Tensor& tensor, F&& f) const {
    const std::vector<T> all = values<T>(tensor);
    std::vector<T> group(inner_.size());
    for (const std::int64_t begin : outer_) {
      for (std::size_t i = 0; i < inner_.size(); ++i) {
        group[i] = all[index(begin + inner_[i])];
      }
      f(group);
    }
  }
  template <class T, class F>
  std::vector<T> map(const Tensor& tensor, F&& f) const {
    std::vector<T> out;
    out.reserve(outer_.size());
    visit<T>(tensor,
             [&](const std::vector<T>& group) { out.push_back(f(group)); });
    return out;
  }
  // The inverse of `visit`: writes the values of group g to its elements.
  template <class T>
  std::vector<T> scattered(const std::vector<std::vector<T>>& groups) const {
    std::vector<T> out(outer_.size() * inner_.size());
    for (std::size_t g = 0; g < groups.size(); ++g) {
      for (std::size_t i = 0; i < inner_.size(); ++i) {
        out[index(outer_[g] + inner_[i])] = groups[g][i];
      }
    }
    return out;
  }

 private:
  std::vector<std::int64_t> outer_;  // row-major offset of each group
  std::vector<std::int64_t> inner_;  // of its elements, from there
};

// Returns the groups of a reduction over argument `dim` or `dims`, or over all
// dims.
Groups groups_of(const Call& call);
// Returns the lines along one dim. A scalar has one line of one element.
Groups lines_of(const Dims& shape, int dim);

}  // namespace shardprop::reference
