#include "ops/shape_context.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace shardprop {
namespace {

Dims dims_of(const std::vector<std::int64_t>& sizes) {
  return Dims(sizes.begin(), sizes.end());
}

DType number_dtype(const ShapeContext& op, std::string_view arg) {
  const Argument& value = op.op().arg(arg);
  if (std::holds_alternative<bool>(value)) return DType::kBool;
  if (std::holds_alternative<std::int64_t>(value)) return DType::kI64;
  if (std::holds_alternative<std::complex<double>>(value)) return DType::kC64;
  return DType::kF32;
}

Results sized(const ShapeContext& op) {
  return one(make_meta(dims_of(op.integers("size")),
                       op.dtype_or("dtype", DType::kF32)));
}

Results full(const ShapeContext& op) {
  return one(make_meta(dims_of(op.integers("size")),
                       op.dtype_or("dtype", number_dtype(op, "fill_value"))));
}

Results scalar_tensor(const ShapeContext& op) {
  return one(make_meta(Dims{}, op.dtype_or("dtype", DType::kF32)));
}

Results like(const ShapeContext& op) {
  const TensorMeta& self = op.tensor("self");
  const DType dtype = op.dtype_or("dtype", self.dtype());
  const std::string_view format = op.memory_format();
  if (format == "contiguous_format") return one(make_meta(self.shape(), dtype));
  return one(dense_like(self, self.shape(), dtype));
}

Results new_sized(const ShapeContext& op) {
  return one(make_meta(dims_of(op.integers("size")),
                       op.dtype_or("dtype", op.tensor("self").dtype())));
}

Results integers(const ShapeContext& op) {
  return one(make_meta(dims_of(op.integers("size")),
                       op.dtype_or("dtype", DType::kI64)));
}

Results permutation(const ShapeContext& op) {
  return one(
      make_meta(Dims{op.integer("n")}, op.dtype_or("dtype", DType::kI64)));
}

Results empty_permuted(const ShapeContext& op) {
  const std::vector<std::int64_t> sizes = op.integers("size");
  const std::vector<std::int64_t> layout = op.integers("physical_layout");
  require(layout.size() == sizes.size(), "the layout names every dim");
  const DType dtype = op.dtype_or("dtype", DType::kF32);
  const TensorMeta checked = make_meta(dims_of(sizes), dtype);
  Dims strides(sizes.size(), -1);
  std::int64_t step = 1;
  for (std::size_t i = layout.size(); i-- > 0;) {
    const auto dim = static_cast<std::size_t>(
        wrap_dim(layout[i], static_cast<int>(sizes.size())));
    require(strides[dim] == -1, "a dim stands twice in the layout");
    strides[dim] = step;
    step *= std::max<std::int64_t>(sizes[dim], 1);
  }
  return one(make_meta(checked.shape(), std::move(strides), dtype));
}

Results empty_strided(const ShapeContext& op) {
  return one(make_meta(dims_of(op.integers("size")),
                       dims_of(op.integers("stride")),
                       op.dtype_or("dtype", DType::kF32)));
}

double number(const ShapeContext& op, std::string_view arg, double fallback) {
  return op.has(arg) ? op.op().float_arg(arg).value_or(fallback) : fallback;
}

Results arange(const ShapeContext& op) {
  bool whole = true;
  for (const char* arg : {"start", "end", "step"}) {
    if (op.has(arg)) whole = whole && op.op().int_arg(arg).has_value();
  }
  const double start = number(op, "start", 0);
  const double step = number(op, "step", 1);
  const double length = std::ceil((number(op, "end", 0) - start) / step);
  constexpr double kMost = 9e15;  // integers that a double holds exactly
  require(length >= 0 && length < kMost, "the range is empty or endless");
  return one(
      make_meta(Dims{static_cast<std::int64_t>(length)},
                op.dtype_or("dtype", whole ? DType::kI64 : DType::kF32)));
}

Results linspace(const ShapeContext& op) {
  return one(
      make_meta(Dims{op.integer("steps")}, op.dtype_or("dtype", DType::kF32)));
}

Results eye(const ShapeContext& op) {
  const std::int64_t n = op.integer("n");
  const std::int64_t m = op.has("m") ? op.integer("m") : n;
  return one(make_meta(Dims{n, m}, op.dtype_or("dtype", DType::kF32)));
}

}  // namespace

void add_creation_shapes(ShapeTable& table) {
  for (const char* name :
       {"aten.empty", "aten.zeros", "aten.ones", "aten.rand", "aten.randn"}) {
    table[name] = sized;
  }
  table["aten.full"] = full;
  table["aten.scalar_tensor"] = scalar_tensor;
  for (const char* name :
       {"aten.empty_like", "aten.zeros_like", "aten.ones_like",
        "aten.full_like", "aten.rand_like", "aten.randn_like"}) {
    table[name] = like;
  }
  table["aten.randint_like"] = like;
  for (const char* name :
       {"aten.new_empty", "aten.new_zeros", "aten.new_ones", "aten.new_full"}) {
    table[name] = new_sized;
  }
  table["aten.randint"] = integers;
  table["aten.randperm"] = permutation;
  table["aten.empty_permuted"] = empty_permuted;
  table["aten.empty_strided"] = empty_strided;
  table["aten.arange"] = arange;
  table["aten.linspace"] = linspace;
  table["aten.eye"] = eye;
}

}  // namespace shardprop
