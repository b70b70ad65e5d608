// Evaluates scans and sorts along one dim.

#include "base/index.h"
#include "reference/groups.h"
#include "reference/kernels.h"
#include "reference/math/arithmetic.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace shardprop::reference {
namespace {

template <class T>
using Line = std::vector<T>;

// f(line, places) changes a line and sets the position from which each value
// came.
template <class F>
Kernel along_lines(F f) {
  return [f](const Call& call) -> std::vector<Tensor> {
    const Tensor& self = call.first_value();
    const int dim = call.dim("dim", self.rank());
    const Groups lines = lines_of(self.shape(), dim);
    const bool only_places = call.base_name() == "argsort";
    const DType dtype = only_places ? self.dtype() : call.out().dtype();
    const auto run = [&]<class T>(T) -> std::vector<Tensor> {
      std::vector<Line<T>> changed;
      std::vector<Line<std::int64_t>> places;
      lines.visit<T>(self, [&](const Line<T>& line) {
        changed.push_back(line);
        places.emplace_back(line.size());
        f(call, changed.back(), places.back());
      });
      std::vector<Tensor> out;
      if (!only_places) out.push_back(call.made(lines.scattered(changed)));
      if (only_places || call.outputs() == 2) {
        out.push_back(call.made(lines.scattered(places), out.size()));
      }
      return out;
    };
    if (domain_of(dtype) == Domain::kComplex) throw NoKernel{"complex numbers"};
    return domain_of(dtype) == Domain::kReal ? run(0.0) : run(std::int64_t{0});
  };
}

template <class T>
bool is_nan(T x) {
  return x != x;
}

// True if a comes before b; NaN is larger than anything.
template <class T>
bool comes_first(T a, T b, bool descending) {
  if (is_nan(a) || is_nan(b)) {
    return descending ? is_nan(a) && !is_nan(b) : !is_nan(a) && is_nan(b);
  }
  return descending ? a > b : a < b;
}

template <class T>
void sort_line(Line<T>& line, Line<std::int64_t>& places, bool descending) {
  std::iota(places.begin(), places.end(), std::int64_t{0});
  const Line<T> from = line;
  const auto at = [&](std::int64_t i) { return from[index(i)]; };
  std::stable_sort(places.begin(), places.end(),
                   [&](std::int64_t a, std::int64_t b) {
                     return comes_first(at(a), at(b), descending);
                   });
  std::transform(places.begin(), places.end(), line.begin(), at);
}

std::vector<Tensor> topk(const Call& call) {
  const Tensor& self = call.first_value();
  const int dim = call.dim("dim", self.rank());
  const auto count =
      self.rank() == 0 ? 1 : static_cast<std::size_t>(call.out().size(dim));
  const bool largest = call.boolean_or("largest", true);
  const Groups from = lines_of(self.shape(), dim);
  const Groups to = lines_of(call.out().shape(), dim);
  const auto run = [&]<class T>(T) -> std::vector<Tensor> {
    std::vector<Line<T>> found;
    std::vector<Line<std::int64_t>> places;
    from.visit<T>(self, [&](const Line<T>& line) {
      found.push_back(line);
      places.emplace_back(line.size());
      sort_line(found.back(), places.back(), largest);
      found.back().resize(count);
      places.back().resize(count);
    });
    return {call.made(to.scattered(found)), call.made(to.scattered(places), 1)};
  };
  return domain_of(self.dtype()) == Domain::kReal ? run(0.0)
                                                  : run(std::int64_t{0});
}

// Returns the last of the largest (smallest) elements so far.
template <class T>
void best_so_far(Line<T>& line, Line<std::int64_t>& places, bool largest) {
  std::size_t best = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const T x = line[i];
    const T b = line[best];
    if (is_nan(x) || (!is_nan(b) && (largest ? x >= b : x <= b))) best = i;
    // Later iterations do not read earlier elements, except `best`.
    if (i != best) line[i] = line[best];
    places[i] = static_cast<std::int64_t>(best);
  }
}

double log_add(double a, double b) {
  const double low = minimum(a, b);
  const double high = maximum(a, b);
  if (std::isinf(high) && low == high) return high;
  return std::isinf(low) && low < 0 ? high
                                    : high + std::log1p(std::exp(low - high));
}

}  // namespace

void add_scans(Kernels& k) {
  k.add({"cumsum"}, along_lines([](const Call&, auto& line, auto&) {
          for (std::size_t i = 1; i < line.size(); ++i) {
            if constexpr (std::is_same_v<decltype(line[0] + 0), std::int64_t>) {
              line[i] = wrap_add(line[i], line[i - 1]);
            } else {
              line[i] += line[i - 1];
            }
          }
        }));
  k.add({"cumprod"}, along_lines([](const Call&, auto& line, auto&) {
          for (std::size_t i = 1; i < line.size(); ++i) {
            if constexpr (std::is_same_v<decltype(line[0] + 0), std::int64_t>) {
              line[i] = wrap_multiply(line[i], line[i - 1]);
            } else {
              line[i] *= line[i - 1];
            }
          }
        }));
  k.add({"cummax"}, along_lines([](const Call&, auto& line, auto& places) {
          best_so_far(line, places, true);
        }));
  k.add({"cummin"}, along_lines([](const Call&, auto& line, auto& places) {
          best_so_far(line, places, false);
        }));
  k.add(
      {"logcumsumexp"}, along_lines([](const Call&, auto& line, auto&) {
        for (std::size_t i = 1; i < line.size(); ++i) {
          line[i] = static_cast<std::decay_t<decltype(line[0])>>(log_add(
              static_cast<double>(line[i - 1]), static_cast<double>(line[i])));
        }
      }));
  k.add({"sort", "sort.stable", "argsort", "argsort.stable"},
        along_lines([](const Call& call, auto& line, auto& places) {
          sort_line(line, places, call.boolean_or("descending", false));
        }));
  k.add({"topk"}, topk);
}

}  // namespace shardprop::reference
