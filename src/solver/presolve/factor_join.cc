#include "solver/presolve/factor_join.h"

#include "base/index.h"
#include "solver/presolve/min_plus.h"
#include "solver/tuning.h"

#include <algorithm>
#include <numeric>

namespace shardprop::solver {
namespace {

template <class T>
bool knows(const Factor<T>& factor, int variable) {
  return std::find(factor.scope.begin(), factor.scope.end(), variable) !=
         factor.scope.end();
}

// Advances an index over axes of these sizes; the last axis is the fastest.
void step(std::vector<std::size_t>& index,
          const std::vector<std::size_t>& sizes) {
  for (std::size_t a = index.size(); a-- > 0;) {
    if (++index[a] < sizes[a]) return;
    index[a] = 0;
  }
}

std::size_t offset(const std::vector<std::size_t>& index,
                   const std::vector<std::size_t>& stride) {
  return std::inner_product(index.begin(), index.end(), stride.begin(),
                            std::size_t{0});
}

// Returns the factor's entries with its axes in the order of `want`.
template <class T>
std::vector<T> permuted(const Factor<T>& factor, const std::vector<int>& want,
                        const std::vector<std::size_t>& choices) {
  if (want == factor.scope) return *factor.costs;
  std::vector<std::size_t> sizes;
  std::vector<std::size_t> stride;
  for (const int u : want) {
    sizes.push_back(choices[index(u)]);
    std::size_t s = 1;
    for (std::size_t i = factor.scope.size(); factor.scope[--i] != u;) {
      s *= choices[index(factor.scope[i])];
    }
    stride.push_back(s);
  }
  const std::size_t width = sizes.back();
  const std::size_t apart = stride.back();
  sizes.pop_back();
  stride.pop_back();
  std::vector<std::size_t> index(sizes.size(), 0);
  std::vector<T> out;
  out.reserve(factor.costs->size());
  while (out.size() < factor.costs->size()) {
    const T* from = factor.costs->data() + offset(index, stride);
    for (std::size_t i = 0; i < width; ++i) out.push_back(from[i * apart]);
    step(index, sizes);
  }
  return out;
}

}  // namespace

template <class T>
FactorJoin<T>::FactorJoin(int variable, const std::vector<Factor<T>>& factors,
                          const std::vector<std::size_t>& choices, T ceiling)
    : choices_(choices[index(variable)]), ceiling_(ceiling) {
  const auto size = [&](int u) { return choices[index(u)]; };
  for (const Factor<T>& f : factors) {
    for (const int u : f.scope) {
      if (u != variable) scope_.push_back(u);
    }
  }
  std::sort(scope_.begin(), scope_.end());
  scope_.erase(std::unique(scope_.begin(), scope_.end()), scope_.end());
  int inner = -1;
  std::ptrdiff_t fewest = 0;
  for (const int u : scope_) {
    const std::ptrdiff_t count =
        std::count_if(factors.begin(), factors.end(),
                      [&](const Factor<T>& f) { return knows(f, u); });
    if (inner < 0 || count < fewest ||
        (count == fewest && size(u) > size(inner))) {
      inner = u;
      fewest = count;
    }
  }
  // Variables that share a factor with the innermost axis come first. The sum
  // of those factors then changes least often.
  std::erase(scope_, inner);
  std::stable_partition(scope_.begin(), scope_.end(), [&](int u) {
    return std::any_of(factors.begin(), factors.end(), [&](const Factor<T>& f) {
      return knows(f, u) && knows(f, inner);
    });
  });
  for (const int u : scope_) {
    outer_.push_back(size(u));
    rows_ *= size(u);
  }
  for (const Factor<T>& f : factors) {
    const bool wide = inner >= 0 && knows(f, inner);
    std::vector<int> want;
    for (const int u : scope_) {
      if (knows(f, u)) want.push_back(u);
    }
    want.push_back(variable);
    if (wide) want.push_back(inner);
    Arranged arranged{permuted(f, want, choices), {}};
    std::size_t stride = arranged.costs.size();
    for (const int u : scope_) {
      if (knows(f, u)) stride /= size(u);
      arranged.stride.push_back(knows(f, u) ? stride : 0);
    }
    (wide ? wide_ : plain_).push_back(std::move(arranged));
  }
  if (inner >= 0) {
    width_ = size(inner);
    scope_.push_back(inner);
  }
}

template <class T>
void FactorJoin<T>::run(std::size_t from, std::size_t to, T* out,
                        const std::function<bool()>& stop) const {
  std::vector<std::size_t> index(outer_.size());
  for (std::size_t a = outer_.size(), rest = from; a-- > 0; rest /= outer_[a]) {
    index[a] = rest % outer_[a];
  }
  std::vector<T> sum(choices_);
  std::vector<int> kept(choices_);
  std::vector<T> together(wide_.size() > 1 ? choices_ * width_ : 0);
  std::vector<std::size_t> at(wide_.size());
  std::vector<std::size_t> together_at;
  std::uint64_t since = tuning::kEntriesBetweenStopChecks;
  for (std::size_t row = from; row < to; ++row, step(index, outer_)) {
    since += choices_ * width_;
    if (since >= tuning::kEntriesBetweenStopChecks) {
      since = 0;
      if (stop()) return;
    }
    std::fill(sum.begin(), sum.end(), T{0});
    for (const Arranged& f : plain_) {
      const T* costs = f.costs.data() + offset(index, f.stride);
      for (std::size_t c = 0; c < choices_; ++c) {
        sum[c] = std::min<T>(sum[c] + costs[c], ceiling_);
      }
    }
    if (wide_.empty()) {
      out[row] = *std::min_element(sum.begin(), sum.end());
      continue;
    }
    // Choices that already cost too much are skipped.
    int left = 0;
    for (std::size_t c = 0; c < choices_; ++c) {
      kept[static_cast<std::size_t>(left)] = static_cast<int>(c);
      left += sum[c] < ceiling_ ? 1 : 0;
    }
    for (std::size_t f = 0; f < wide_.size(); ++f) {
      at[f] = offset(index, wide_[f].stride);
    }
    const T* table = wide_[0].costs.data() + at[0];
    if (wide_.size() > 1) {
      if (at != together_at) {
        std::copy_n(table, together.size(), together.begin());
        for (std::size_t f = 1; f < wide_.size(); ++f) {
          const T* more = wide_[f].costs.data() + at[f];
          for (std::size_t i = 0; i < together.size(); ++i) {
            together[i] = std::min<T>(together[i] + more[i], ceiling_);
          }
        }
        together_at = at;
      }
      table = together.data();
    }
    min_plus_of(sum.data(), kept.data(), left, table, static_cast<int>(width_),
                ceiling_, out + row * width_);
  }
}

template class FactorJoin<std::int32_t>;
template class FactorJoin<double>;

}  // namespace shardprop::solver
