// Evaluates reductions. Each element of the result combines its group of
// elements, in order.

#include "base/index.h"
#include "reference/groups.h"
#include "reference/kernels.h"
#include "reference/math/arithmetic.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace shardprop::reference {
namespace {

template <class T>
using Group = std::vector<T>;

// Computes in the domain of the result. Sums of bools are integers; a sum of
// floats with dtype bool is computed on bools.
template <class F>
Kernel reduced(F f) {
  return [f](const Call& call) -> std::vector<Tensor> {
    const Tensor& self = call.first_value();
    const Groups groups = groups_of(call);
    const Domain domain = domain_of(self.dtype()) == Domain::kComplex
                              ? Domain::kComplex
                              : domain_of(call.out().dtype());
    if (domain == Domain::kReal) {
      return {call.made(groups.map<double>(self, f))};
    }
    if (domain == Domain::kInteger) {
      return {call.made(
          groups.map<std::int64_t>(cast(self, call.out().dtype()), f))};
    }
    if constexpr (std::is_invocable_v<F, const Group<Complex>&>) {
      return {call.made(groups.map<Complex>(self, f))};
    }
    throw NoKernel{"complex numbers"};
  };
}

template <class T>
T sum_of(const Group<T>& x) {
  if constexpr (std::is_same_v<T, std::int64_t>) {
    return std::accumulate(x.begin(), x.end(), T{}, wrap_add);
  } else {
    return std::accumulate(x.begin(), x.end(), T{});
  }
}

template <class T>
bool precedes(T a, T b) {
  if constexpr (std::is_same_v<T, double>) {
    // NaN is larger than anything.
    return std::isnan(b) ? !std::isnan(a) : a < b;
  } else {
    return a < b;
  }
}

template <class T>
std::size_t place_of_largest(const Group<T>& x) {
  if (x.empty()) call_error("a maximum of nothing");
  return static_cast<std::size_t>(
      std::max_element(x.begin(), x.end(), precedes<T>) - x.begin());
}

template <class T>
std::size_t place_of_smallest(const Group<T>& x) {
  if (x.empty()) call_error("a minimum of nothing");
  std::size_t best = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if constexpr (std::is_same_v<T, double>) {
      if (std::isnan(x[i])) return i;
    }
    if (x[i] < x[best]) best = i;
  }
  return best;
}

// Returns the value and the position of one element of each group.
template <class F>
Kernel picked(F place) {
  return [place](const Call& call) -> std::vector<Tensor> {
    const Groups groups = groups_of(call);
    const Tensor& self = call.first_value();
    const auto run = [&]<class T>(T) -> std::vector<Tensor> {
      std::vector<T> found;
      std::vector<std::int64_t> where;
      groups.visit<T>(self, [&](const Group<T>& group) {
        const std::size_t at = place(call, group);
        found.push_back(group[at]);
        where.push_back(static_cast<std::int64_t>(at));
      });
      if (call.outputs() == 1) {
        if (call.base_name().starts_with("arg")) return {call.made(where)};
        return {call.made(found)};
      }
      return {call.made(found), call.made(where, 1)};
    };
    return domain_of(self.dtype()) == Domain::kReal ? run(0.0)
                                                    : run(std::int64_t{0});
  };
}

// Returns the positions in ascending order of values, NaN last.
template <class T>
std::vector<std::size_t> order_of(const Group<T>& x) {
  std::vector<std::size_t> order(x.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(
      order.begin(), order.end(),
      [&](std::size_t a, std::size_t b) { return precedes(x[a], x[b]); });
  return order;
}

// Returns the position of the lower median. If there is a NaN, it is the
// median, unless NaNs are ignored.
template <class T>
std::size_t place_of_median(const Group<T>& x, bool ignores_nan) {
  if (x.empty()) call_error("a median of nothing");
  const std::vector<std::size_t> order = order_of(x);
  std::size_t count = x.size();
  if constexpr (std::is_same_v<T, double>) {
    const auto nan = index(std::count_if(
        x.begin(), x.end(), [](double v) { return std::isnan(v); }));
    if (nan > 0 && !ignores_nan) return order[count - nan];
    if (nan < count) count -= nan;
  }
  return order[(count - 1) / 2];
}

// The median of an empty tensor is NaN, cast to the dtype of the result. A
// median along an empty dim is an error.
Kernel median(bool ignores_nan) {
  const Kernel along = picked([ignores_nan](const Call&, const auto& x) {
    return place_of_median(x, ignores_nan);
  });
  return [along](const Call& call) -> std::vector<Tensor> {
    if (call.outputs() > 1 || call.first_value().numel() > 0) {
      return along(call);
    }
    return {call.made(
        std::vector<double>{std::numeric_limits<double>::quiet_NaN()})};
  };
}

// Returns the sum of squares about the mean, over n - correction.
double variance(const Group<double>& x, double correction) {
  if (x.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto n = static_cast<double>(x.size());
  const double mean = sum_of(x) / n;
  double sum = 0;
  for (const double v : x) sum += (v - mean) * (v - mean);
  return sum / std::max(0.0, n - correction);
}

double correction_of(const Call& call) {
  if (call.has("unbiased")) return call.boolean_or("unbiased", true) ? 1 : 0;
  return call.number("correction", 1);
}

Kernel spread(bool root) {
  return [root](const Call& call) -> std::vector<Tensor> {
    const double correction = correction_of(call);
    const Groups groups = groups_of(call);
    const Tensor& self = call.first_value();
    std::vector<Tensor> out = {
        call.made(groups.map<double>(self, [=](const Group<double>& x) {
          const double v = variance(x, correction);
          return root ? std::sqrt(v) : v;
        }))};
    if (call.outputs() == 2) {
      out.push_back(call.made(
          groups.map<double>(self,
                             [](const Group<double>& x) {
                               return sum_of(x) / static_cast<double>(x.size());
                             }),
          1));
    }
    return out;
  };
}

double norm_of(const Group<double>& x, double order) {
  double sum = 0;
  if (order == kInfinity || order == -kInfinity) {
    if (x.empty()) {
      require(order > 0, "a minimum of nothing");
      return 0;
    }
    double best = std::fabs(x[0]);
    for (const double v : x) {
      best =
          order > 0 ? maximum(best, std::fabs(v)) : minimum(best, std::fabs(v));
    }
    return best;
  }
  for (const double v : x) {
    sum += order == 0 ? static_cast<double>(v != 0)
                      : std::pow(std::fabs(v), order);
  }
  return order == 0 ? sum : std::pow(sum, 1 / order);
}

std::vector<Tensor> norm(const Call& call) {
  const double order = call.number(call.has("ord") ? "ord" : "p", 2);
  const Tensor& self = call.first_value();
  const Groups groups = groups_of(call);
  if (is_complex(self.dtype())) {
    return {call.made(groups.map<Complex>(self, [=](const Group<Complex>& x) {
      Group<double> sizes;
      for (const Complex& v : x) sizes.push_back(std::abs(v));
      return Complex(norm_of(sizes, order), 0);
    }))};
  }
  return {call.made(groups.map<double>(
      self, [=](const Group<double>& x) { return norm_of(x, order); }))};
}

// True if the call asks for singular values or sums of rows, which are not
// vector norms.
bool is_of_matrices(const Call& call) {
  if (call.base_name() == "nuclear_norm") return true;
  const std::string_view word = call.text("ord");
  if (!call.has("ord") || word == "fro") return false;
  if (!word.empty() || call.base_name() != "linalg_norm") return true;
  const int rank = call.first_value().rank();
  return (call.has("dim") ? call.dims("dim", rank).size() : index(rank)) != 1;
}

std::vector<Tensor> norm_of_matrices(const Call& call) {
  if (is_of_matrices(call)) throw NoKernel{"norms of matrices"};
  return norm(call);
}

double log_sum_exp(const Group<double>& x) {
  double top = -kInfinity;
  for (const double v : x) top = maximum(top, v);
  if (std::isinf(top)) {
    if (top < 0 || std::find_if(
                       x.begin(), x.end(),
                       [](double v) { return std::isnan(v); }) == x.end()) {
      return top;
    }
  }
  double sum = 0;
  for (const double v : x) sum += std::exp(v - top);
  return top + std::log(sum);
}

std::vector<Tensor> mode(const Call& call) {
  return picked([](const Call&, const auto& x) {
    if (x.empty()) call_error("a mode of nothing");
    // The mode is the smallest of the most frequent values. The index is that
    // of its last occurrence.
    const std::vector<std::size_t> order = order_of(x);
    std::size_t best = 0;
    std::size_t most = 0;
    for (std::size_t i = 0; i < order.size();) {
      std::size_t j = i;
      while (j < order.size() && x[order[j]] == x[order[i]]) ++j;
      if (j == i) ++j;  // NaN
      if (j - i > most) {
        most = j - i;
        best = order[j - 1];
      }
      i = j;
    }
    return best;
  })(call);
}

void add_sums(Kernels& k) {
  k.add({"sum", "sum.dim_IntList", "prims::sum"},
        reduced([]<class T>(const Group<T>& x) { return sum_of(x); }));
  k.add({"nansum"}, reduced([]<class T>(const Group<T>& x) {
          Group<T> kept;
          std::copy_if(x.begin(), x.end(), std::back_inserter(kept),
                       [](const T& v) { return v == v; });
          return sum_of(kept);
        }));
  k.add({"prod", "prod.dim_int", "prims::prod"},
        reduced([]<class T>(const Group<T>& x) {
          T product{1};
          for (const T& v : x) {
            if constexpr (std::is_same_v<T, std::int64_t>) {
              product = wrap_multiply(product, v);
            } else {
              product *= v;
            }
          }
          return product;
        }));
  k.add({"mean", "mean.dim"}, reduced([]<class T>(const Group<T>& x) -> T {
          if constexpr (std::is_same_v<T, std::int64_t>) {
            throw NoKernel{"means of integers"};
          } else {
            return sum_of(x) / static_cast<double>(x.size());
          }
        }));
  k.add({"count_nonzero", "count_nonzero.dim_IntList"}, [](const Call& call) {
    const Groups groups = groups_of(call);
    return std::vector<Tensor>{call.made(groups.map<std::int64_t>(
        cast(call.first_value(), DType::kBool),
        [](const Group<std::int64_t>& x) { return sum_of(x); }))};
  });
  const auto truths = [](bool every) {
    return [every](const Call& call) {
      const Groups groups = groups_of(call);
      return std::vector<Tensor>{call.made(groups.map<std::int64_t>(
          cast(call.first_value(), DType::kBool),
          [every](const Group<std::int64_t>& x) -> std::int64_t {
            const auto holds = [](std::int64_t v) { return v != 0; };
            return every ? std::all_of(x.begin(), x.end(), holds)
                         : std::any_of(x.begin(), x.end(), holds);
          }))};
    };
  };
  k.add({"any", "any.dim", "any.dims"}, truths(false));
  k.add({"all", "all.dim", "all.dims"}, truths(true));
}

}  // namespace

void add_reductions(Kernels& k) {
  add_sums(k);
  const Kernel largest =
      picked([](const Call&, const auto& x) { return place_of_largest(x); });
  const Kernel smallest =
      picked([](const Call&, const auto& x) { return place_of_smallest(x); });
  k.add({"amax", "prims::amax", "max", "max.dim", "argmax"}, largest);
  k.add({"amin", "prims::amin", "min", "min.dim", "argmin"}, smallest);
  k.add({"aminmax"}, [](const Call& call) {
    const Groups groups = groups_of(call);
    const Tensor& self = call.first_value();
    const auto run = [&]<class T>(T) {
      return std::vector<Tensor>{
          call.made(groups.map<T>(
              self, [](const Group<T>& x) { return x[place_of_smallest(x)]; })),
          call.made(groups.map<T>(self,
                                  [](const Group<T>& x) {
                                    return x[place_of_largest(x)];
                                  }),
                    1)};
    };
    return domain_of(self.dtype()) == Domain::kReal ? run(0.0)
                                                    : run(std::int64_t{0});
  });
  k.add({"median", "median.dim"}, median(false));
  k.add({"nanmedian", "nanmedian.dim"}, median(true));
  k.add({"kthvalue"}, picked([](const Call& call, const auto& x) {
          const std::int64_t nth = call.integer("k");
          require(nth >= 1 && static_cast<std::size_t>(nth) <= x.size(),
                  "k is out of range");
          return order_of(x)[index(nth) - 1];
        }));
  k.add({"mode"}, mode);
  k.add({"var", "var.correction", "var.dim", "prims::var", "var_mean",
         "var_mean.correction", "var_mean.dim"},
        spread(false));
  k.add({"std", "std.correction", "std.dim", "std_mean", "std_mean.correction",
         "std_mean.dim"},
        spread(true));
  k.add({"linalg_vector_norm", "norm.Scalar", "norm.ScalarOpt_dim",
         "norm.ScalarOpt_dim_dtype", "norm.ScalarOpt_dtype"},
        norm);
  k.add({"linalg_norm", "linalg_norm.ord_str", "linalg_matrix_norm",
         "linalg_matrix_norm.str_ord", "frobenius_norm.dim", "nuclear_norm",
         "nuclear_norm.dim"},
        norm_of_matrices);
  k.add({"logsumexp"}, [](const Call& call) {
    return std::vector<Tensor>{call.made(
        groups_of(call).map<double>(call.first_value(), log_sum_exp))};
  });
}

}  // namespace shardprop::reference
