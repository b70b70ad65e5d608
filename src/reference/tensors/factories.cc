// Evaluates factories of tensors, and random operators in modes that need no
// random numbers.

#include "reference/kernels.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/index.h"

namespace shardprop::reference {
namespace {

Tensor blank(const Call& call) {
  return Tensor::zeros(call.out().shape(), call.out().dtype());
}

std::vector<Tensor> filled(const Call& call, const Argument& value) {
  const auto points = static_cast<std::size_t>(call.out().numel());
  if (const auto* c = std::get_if<Complex>(&value)) {
    return {call.made(std::vector<Complex>(points, *c))};
  }
  if (const auto* i = std::get_if<std::int64_t>(&value)) {
    return {call.made(std::vector<std::int64_t>(points, *i))};
  }
  if (const auto* b = std::get_if<bool>(&value)) {
    return {call.made(std::vector<std::int64_t>(points, *b ? 1 : 0))};
  }
  const auto* d = std::get_if<double>(&value);
  return {call.made(std::vector<double>(points, d == nullptr ? 0 : *d))};
}

// The elements are start + i * step.
std::vector<Tensor> arange(const Call& call) {
  const std::int64_t n = call.out().numel();
  const bool whole = domain_of(call.out().dtype()) == Domain::kInteger;
  std::vector<double> out;
  if (whole && (!call.has("start") || call.op().int_arg("start")) &&
      (!call.has("step") || call.op().int_arg("step"))) {
    const std::int64_t start = call.integer_or("start", 0);
    const std::int64_t step = call.integer_or("step", 1);
    std::vector<std::int64_t> integers;
    for (std::int64_t i = 0; i < n; ++i) integers.push_back(start + i * step);
    return {call.made(integers)};
  }
  double start = call.number("start", 0);
  double step = call.number("step", 1);
  if (whole) {
    start = std::trunc(start);
    step = std::trunc(step);
  }
  for (std::int64_t i = 0; i < n; ++i) {
    out.push_back(start + static_cast<double>(i) * step);
  }
  return {call.made(out)};
}

// Computes each element from the nearer end, as ATen does.
std::vector<double> even_steps(const Call& call) {
  double start = call.number("start");
  double end = call.number("end");
  if (domain_of(call.out().dtype()) == Domain::kInteger) {
    start = std::trunc(start);
    end = std::trunc(end);
  }
  const std::int64_t n = call.out().numel();
  std::vector<double> out;
  const double step = n > 1 ? (end - start) / static_cast<double>(n - 1) : 0;
  for (std::int64_t i = 0; i < n; ++i) {
    out.push_back(i < n / 2 || n == 1
                      ? start + step * static_cast<double>(i)
                      : end - step * static_cast<double>(n - 1 - i));
  }
  return out;
}

std::vector<Tensor> linspace(const Call& call) {
  return {call.made(even_steps(call))};
}

std::vector<Tensor> logspace(const Call& call) {
  std::vector<double> out = even_steps(call);
  for (double& x : out) x = std::pow(call.number("base", 10), x);
  return {call.made(out)};
}

std::vector<Tensor> eye(const Call& call) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(call.out().numel()));
  const std::int64_t columns = call.out().size(1);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    out[i] = at / columns == at % columns ? 1 : 0;
  }
  return {call.made(out)};
}

// Returns the indices of the lower or upper triangle: rows, then columns.
std::vector<Tensor> triangle_indices(const Call& call) {
  const bool is_lower = call.base_name() == "tril_indices";
  const std::int64_t offset = call.integer_or("offset", 0);
  const std::int64_t columns = call.integer("col");
  std::vector<std::int64_t> out;
  std::vector<std::int64_t> behind;
  for (std::int64_t r = 0; r < call.integer("row"); ++r) {
    const std::int64_t diagonal = r + offset;
    const std::int64_t begin =
        is_lower ? 0 : std::clamp<std::int64_t>(diagonal, 0, columns);
    const std::int64_t end =
        is_lower ? std::clamp<std::int64_t>(diagonal + 1, 0, columns) : columns;
    for (std::int64_t c = begin; c < end; ++c) {
      out.push_back(r);
      behind.push_back(c);
    }
  }
  out.insert(out.end(), behind.begin(), behind.end());
  return {call.made(out)};
}

bool draws(const Call& call) {
  const bool trains = call.boolean_or("train", true);
  return trains && call.number("p", 1) > 0;
}

std::vector<Tensor> dropout(const Call& call) {
  if (draws(call)) throw NoKernel{"it draws random numbers"};
  std::vector<Tensor> out = {cast(call.first_value(), call.out().dtype())};
  if (call.outputs() == 2) {
    const auto points = static_cast<std::size_t>(call.out().numel());
    out.push_back(call.made(std::vector<std::int64_t>(points, 1), 1));
  }
  return out;
}

}  // namespace

void add_factories(Kernels& k) {
  k.add({"empty.memory_format", "prims::empty", "zeros", "new_empty",
         "new_zeros", "empty_like", "zeros_like", "empty_permuted",
         "prims::empty_permuted", "empty_strided", "prims::empty_strided"},
        [](const Call& call) { return std::vector<Tensor>{blank(call)}; });
  k.add({"ones", "new_ones", "ones_like"}, [](const Call& call) {
    return filled(call, Argument(std::int64_t{1}));
  });
  k.add({"full", "prims::full", "new_full", "full_like", "prims::full_like"},
        [](const Call& call) {
          return filled(call, call.op().arg("fill_value"));
        });
  k.add({"scalar_tensor", "prims::scalar_tensor"},
        [](const Call& call) { return filled(call, call.op().arg("s")); });
  k.add({"arange", "arange.start", "arange.start_step"}, arange);
  k.add({"linspace"}, linspace);
  k.add({"logspace"}, logspace);
  k.add({"eye", "eye.m"}, eye);
  k.add({"tril_indices", "triu_indices"}, triangle_indices);
  k.add({"_assert_tensor_metadata"},
        [](const Call&) { return std::vector<Tensor>{}; });
}

void add_random(Kernels& k) {
  k.add({"dropout", "native_dropout", "feature_dropout", "alpha_dropout"},
        dropout);
}

}  // namespace shardprop::reference
