// FactorJoin is one step of bucket elimination. It adds up the tables that
// contain a variable and minimises over its choices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace shardprop::solver {

// Factor is a table over several variables, the last one fastest. Entries are
// in [0, ceiling].
template <class T>
struct Factor {
  std::vector<int> scope;
  std::shared_ptr<const std::vector<T>> costs;
  int id = 0;  // equal ids mean equal costs
};

// The innermost axis of the result is the one that fewest factors contain.
// Along it, the join is a min-plus product.
template <class T>
class FactorJoin {
 public:
  // All `factors` contain `variable`; `choices` are by variable. Sums above the
  // ceiling become the ceiling; twice the ceiling must fit T.
  FactorJoin(int variable, const std::vector<Factor<T>>& factors,
             const std::vector<std::size_t>& choices, T ceiling);

  // The variables of the result, in the order of its axes.
  const std::vector<int>& scope() const { return scope_; }
  // The number of innermost rows, each computed separately.
  std::size_t rows() const { return rows_; }
  std::size_t entries() const { return rows_ * width_; }
  // Returns the entries of the result times the choices minimised over.
  std::uint64_t touched() const { return std::uint64_t{entries()} * choices_; }

  // Computes rows [from, to) of `out`, which holds entries() values. Calls
  // `stop` regularly, and leaves the remaining rows unset if it returns true.
  void run(std::size_t from, std::size_t to, T* out,
           const std::function<bool()>& stop) const;

 private:
  struct Arranged {
    std::vector<T> costs;
    std::vector<std::size_t> stride;  // by outer axis of the result
  };

  std::size_t choices_;
  std::size_t width_ = 1;  // of the innermost axis
  std::size_t rows_ = 1;
  T ceiling_;
  std::vector<int> scope_;
  std::vector<std::size_t> outer_;  // sizes
  std::vector<Arranged> plain_;     // [outer][choice]
  std::vector<Arranged> wide_;      // [outer][choice][innermost]
};

extern template class FactorJoin<std::int32_t>;
extern template class FactorJoin<double>;

}  // namespace shardprop::solver
