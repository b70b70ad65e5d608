// Evaluates lookups and writes along one dim, at the positions in another
// tensor.

#include "reference/kernels.h"
#include "reference/tensors/indexing.h"

#include <cmath>
#include <limits>
#include <variant>

namespace shardprop::reference {
namespace {

// --- Rows of a table ---

std::vector<Tensor> embedding(const Call& call) {
  const Tensor& weight = call.value("weight");
  const auto indices = values<std::int64_t>(call.value("indices"));
  return in_domain(weight.dtype(), [&]<class T>(T) -> std::vector<Tensor> {
    const std::vector<T> table = values<T>(weight);
    const std::int64_t width = weight.size(1);
    std::vector<T> out;
    for (const std::int64_t i : indices) {
      const auto row = table.begin() + checked_index(i, weight.size(0)) * width;
      out.insert(out.end(), row, row + width);
    }
    return {call.made(out)};
  });
}

std::vector<Tensor> embedding_backward(const Call& call) {
  const std::vector<double> grad = values<double>(call.value("grad_output"));
  const auto indices = values<std::int64_t>(call.value("indices"));
  const std::int64_t rows = call.integer("num_weights");
  const std::int64_t padding = call.integer_or("padding_idx", -1);
  const std::int64_t width = call.out().size(1);
  std::vector<std::int64_t> counts(index(rows));
  for (const std::int64_t i : indices) ++counts[index(checked_index(i, rows))];
  const bool whole = domain_of(call.out().dtype()) == Domain::kInteger;
  const bool by_count = call.boolean_or("scale_grad_by_freq", false);
  std::vector<double> out(index(rows * width));
  for (std::size_t n = 0; n < indices.size(); ++n) {
    const std::int64_t row = indices[n];
    if (row == padding) continue;
    double scale =
        by_count ? 1.0 / static_cast<double>(counts[index(row)]) : 1.0;
    if (whole) scale = std::trunc(scale);
    for (std::int64_t c = 0; c < width; ++c) {
      out[index(row * width + c)] += scale * grad[n * index(width) + index(c)];
    }
  }
  return {call.made(out)};
}

std::vector<Tensor> one_hot(const Call& call) {
  const std::int64_t classes = call.out().shape().back();
  std::vector<std::int64_t> out(index(call.out().numel()));
  std::size_t n = 0;
  for (const std::int64_t i : values<std::int64_t>(call.value("self"))) {
    out[n + index(checked_index(i, classes))] = 1;
    n += index(classes);
  }
  return {call.made(out)};
}

// --- gather and scatter: an index per element, along one dim ---

// Calls f(offset in self, position in the index) for every element of the
// index. Offsets are row-major. A scalar counts as a vector of one element.
template <class F>
void along_index(const Dims& self, const Tensor& at, int dim, F&& f,
                 bool from_end = false) {
  const std::vector<std::int64_t> chosen = values<std::int64_t>(at);
  const Dims shape = self.empty() ? Dims{1} : self;
  Dims looked = at.shape();
  if (looked.empty()) looked = Dims{1};
  if (chosen.empty()) return;
  const Dims steps = contiguous_strides(shape);
  std::size_t place = 0;
  Dims strides = steps;
  strides[index(dim)] = 0;
  for_each_offset(looked, strides, [&](std::int64_t offset) {
    const std::int64_t i =
        checked_index(chosen[place], shape[index(dim)], from_end);
    f(index(offset + i * steps[index(dim)]), place);
    ++place;
  });
}

std::vector<Tensor> gather(const Call& call) {
  const Tensor& self = call.value("self");
  const Tensor& at = call.value("index");
  const int dim = call.dim("dim", self.rank());
  return in_domain(self.dtype(), [&]<class T>(T) -> std::vector<Tensor> {
    const std::vector<T> from = values<T>(self);
    std::vector<T> out(index(call.out().numel()));
    along_index(self.shape(), at, dim, [&](std::size_t offset, std::size_t n) {
      out[n] = from[offset];
    });
    return {call.made(out)};
  });
}

Combine combine_of(const Call& call) {
  if (call.base_name() == "scatter_add") return Combine::kAdd;
  const std::string_view reduce = call.text("reduce");
  if (reduce == "add" || reduce == "sum") return Combine::kAdd;
  if (reduce == "multiply" || reduce == "prod") return Combine::kMultiply;
  if (reduce == "mean") return Combine::kMean;
  if (reduce == "amax") return Combine::kMax;
  if (reduce == "amin") return Combine::kMin;
  return Combine::kReplace;
}

template <class T>
T start_of(Combine how) {
  if constexpr (!std::is_same_v<T, Complex>) {
    using Limits = std::numeric_limits<T>;
    if (how == Combine::kMax) {
      return std::is_same_v<T, double> ? -Limits::infinity() : Limits::min();
    }
    if (how == Combine::kMin) {
      return std::is_same_v<T, double> ? Limits::infinity() : Limits::max();
    }
  }
  return how == Combine::kMultiply ? T{1} : T{};
}

template <class T>
T number_of(const Call& call, std::string_view name) {
  if constexpr (std::is_same_v<T, std::int64_t>) {
    if (const auto i = call.op().int_arg(name)) return *i;
  }
  if constexpr (std::is_same_v<T, Complex>) {
    if (const auto* c = std::get_if<Complex>(&call.op().arg(name))) return *c;
  }
  return static_cast<T>(call.number(name));
}

std::vector<Tensor> scatter(const Call& call) {
  const Tensor& self = call.value("self");
  const Tensor& at = call.value("index");
  const Tensor* src = call.optional_value("src");
  const int dim = call.dim("dim", self.rank());
  const Combine how = combine_of(call);
  const bool includes_self = call.boolean_or("include_self", true);
  return in_domain(self.dtype(), [&]<class T>(T) -> std::vector<Tensor> {
    std::vector<T> out = values<T>(self);
    std::vector<std::int64_t> counts(out.size(), includes_self ? 1 : 0);
    // The element of the source for each position of the index, which may be
    // smaller.
    std::vector<T> written;
    if (src != nullptr && at.numel() > 0) {
      const Dims looked = at.shape().empty() ? Dims{} : at.shape();
      const bool scalar = looked.empty() || src->shape().empty();
      written = values<T>(scalar ? *src : src->seen_as(looked, src->strides()));
    }
    const T value = src == nullptr ? number_of<T>(call, "value") : T{};
    if (!includes_self) {
      along_index(self.shape(), at, dim, [&](std::size_t offset, std::size_t) {
        out[offset] = start_of<T>(how);
      });
    }
    along_index(self.shape(), at, dim, [&](std::size_t offset, std::size_t n) {
      out[offset] =
          combined(how, out[offset], src == nullptr ? value : written[n]);
      ++counts[offset];
    });
    if (how == Combine::kMean) {
      out = values<T>(call.made(out));  // sums wrap, before they are divided
      for (std::size_t i = 0; i < out.size(); ++i) {
        if (counts[i] <= 1) continue;
        if constexpr (std::is_same_v<T, std::int64_t>) {
          out[i] = floor_quotient(out[i], counts[i]);
        } else {
          out[i] /= static_cast<double>(counts[i]);
        }
      }
    }
    return {call.made(out)};
  });
}

// --- One dim by a vector of indices ---

struct Slabs {
  std::int64_t outer = 1;
  std::int64_t size = 1;
  std::int64_t inner = 1;
};

Slabs slabs_of(const Dims& shape, int dim) {
  Slabs s;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    (static_cast<int>(d) < dim   ? s.outer
     : static_cast<int>(d) > dim ? s.inner
                                 : s.size) *= shape[d];
  }
  return s;
}

std::vector<Tensor> index_select(const Call& call) {
  const Tensor& self = call.value("self");
  const auto chosen = values<std::int64_t>(call.value("index"));
  const Slabs s = slabs_of(self.shape(), call.dim("dim", self.rank()));
  return in_domain(self.dtype(), [&]<class T>(T) -> std::vector<Tensor> {
    const std::vector<T> from = values<T>(self);
    std::vector<T> out;
    for (std::int64_t o = 0; o < s.outer; ++o) {
      for (const std::int64_t i : chosen) {
        const auto row =
            from.begin() + (o * s.size + checked_index(i, s.size)) * s.inner;
        out.insert(out.end(), row, row + s.inner);
      }
    }
    return {call.made(out)};
  });
}

// index_add, index_copy, index_fill.
std::vector<Tensor> index_written(const Call& call) {
  const Tensor& self = call.value("self");
  const auto chosen = values<std::int64_t>(call.value("index"));
  const Slabs s = slabs_of(self.shape(), call.dim("dim", self.rank()));
  const Tensor* source = call.optional_value("source");
  const Tensor* lone = call.optional_value("value");
  const bool adds = call.base_name() == "index_add";
  return in_domain(self.dtype(), [&]<class T>(T) -> std::vector<Tensor> {
    std::vector<T> out = values<T>(self);
    std::vector<T> from;
    if (source != nullptr) from = values<T>(*source);
    T filled{};
    if (source == nullptr) {
      filled = lone != nullptr ? values<T>(*lone).at(0)
                               : number_of<T>(call, "value");
    }
    const T alpha = call.has("alpha") ? number_of<T>(call, "alpha") : T{1};
    const auto count = static_cast<std::int64_t>(chosen.size());
    for (std::int64_t o = 0; o < s.outer; ++o) {
      for (std::int64_t n = 0; n < count; ++n) {
        const std::int64_t row =
            (o * s.size + checked_index(chosen[index(n)], s.size,
                                        lone != nullptr || source == nullptr)) *
            s.inner;
        for (std::int64_t i = 0; i < s.inner; ++i) {
          T& to = out[index(row + i)];
          const T value = source == nullptr
                              ? filled
                              : from[index((o * count + n) * s.inner + i)];
          to = adds ? combined<T>(Combine::kAdd, to,
                                  combined<T>(Combine::kMultiply, alpha, value))
                    : value;
        }
      }
    }
    return {call.made(out)};
  });
}

// --- Where values belong in rows that are sorted ---

// Returns the first position whose element is at least `value`. With
// `from_right`, returns the first position whose element is greater. For a NaN
// `value` it is the end of the row.
template <class T>
std::int64_t place_in(const std::vector<T>& row, T value, bool from_right) {
  std::size_t begin = 0;
  std::size_t end = row.size();
  while (begin < end) {
    const std::size_t middle = begin + (end - begin) / 2;
    const bool is_there =
        from_right ? row[middle] > value : row[middle] >= value;
    if (is_there) {
      end = middle;
    } else {
      begin = middle + 1;
    }
  }
  return static_cast<std::int64_t>(begin);
}

std::vector<Tensor> searchsorted(const Call& call) {
  const Tensor& sequence = call.value("sorted_sequence");
  const Tensor& self = call.value("self");
  const Tensor* sorter = call.optional_value("sorter");
  const bool from_right =
      call.boolean_or("right", false) || call.text("side") == "right";
  if (domain_of(sequence.dtype()) == Domain::kComplex) {
    throw NoKernel{"complex numbers"};
  }
  const std::int64_t width = sequence.size(sequence.rank() - 1);
  // There is one row for all values, or one row per row of values.
  const bool is_shared = sequence.rank() == 1;
  const std::int64_t in_a_row =
      is_shared || self.rank() == 0 ? 0 : self.size(self.rank() - 1);
  const auto run = [&]<class T>(T) -> std::vector<Tensor> {
    const std::vector<T> sorted = values<T>(sequence);
    const std::vector<T> wanted = values<T>(self);
    std::vector<std::int64_t> order;
    if (sorter != nullptr) order = values<std::int64_t>(*sorter);
    std::vector<T> row(index(width));
    std::vector<std::int64_t> out;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const auto n = static_cast<std::int64_t>(i);
      const std::int64_t start = is_shared ? 0 : n / in_a_row * width;
      for (std::int64_t j = 0; j < width; ++j) {
        const std::int64_t at =
            sorter == nullptr ? j
                              : checked_index(order[index(start + j)], width);
        row[index(j)] = sorted[index(start + at)];
      }
      out.push_back(place_in(row, wanted[i], from_right));
    }
    return {call.made(out)};
  };
  return domain_of(sequence.dtype()) == Domain::kReal ? run(0.0)
                                                      : run(std::int64_t{0});
}

}  // namespace

void add_lookups(Kernels& k) {
  k.add({"embedding"}, embedding);
  k.add({"embedding_dense_backward"}, embedding_backward);
  k.add({"one_hot"}, one_hot);
  k.add({"gather"}, gather);
  k.add({"scatter.reduce", "scatter.src", "scatter.value",
         "scatter.value_reduce", "scatter_add", "scatter_reduce.two"},
        scatter);
  k.add({"index_select"}, index_select);
  k.add({"searchsorted.Tensor"}, searchsorted);
  k.add({"index_add", "index_copy", "index_fill.int_Scalar",
         "index_fill.int_Tensor"},
        index_written);
}

}  // namespace shardprop::reference
