#include <shardprop/plan/local_run.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <type_traits>

#include "base/index.h"

namespace shardprop {
namespace {

using Rows = std::vector<std::vector<std::int64_t>>;

// Returns whether rows over `sizes` are equal along one of the dims.
bool uniform_along(const Rows& rows, const InlineVector<std::int64_t, 5>& sizes,
                   std::size_t dim) {
  std::size_t stride = 1;
  for (std::size_t d = dim + 1; d < sizes.size(); ++d) {
    stride *= static_cast<std::size_t>(sizes[d]);
  }
  const auto size = index(sizes[dim]);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t at = i / stride % size;
    if (at > 0 && rows[i] != rows[i - stride]) return false;
  }
  return true;
}

// Returns the rows at coordinate 0 of one dim.
Rows without_dim(Rows rows, const InlineVector<std::int64_t, 5>& sizes,
                 std::size_t dim) {
  std::size_t stride = 1;
  for (std::size_t d = dim + 1; d < sizes.size(); ++d) {
    stride *= static_cast<std::size_t>(sizes[d]);
  }
  const auto size = index(sizes[dim]);
  Rows kept;
  kept.reserve(rows.size() / size);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i / stride % size == 0) kept.push_back(std::move(rows[i]));
  }
  return kept;
}

template <class Vector>
Vector without_entry(const Vector& from, std::size_t index) {
  Vector out;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (i != index) out.push_back(from[i]);
  }
  return out;
}

// Adds the mesh dims that a scalar may depend on.
void add_mesh_dims(const RankScalar& scalar, const LocalContext& context,
                   std::set<std::int32_t>& dims) {
  switch (scalar.kind) {
    case RankScalar::Kind::kConstant:
      return;
    case RankScalar::Kind::kFactorSize:
      for (const std::int32_t dim : context.mesh_dims(scalar.operand)) {
        dims.insert(dim);
      }
      return;
    case RankScalar::Kind::kLocalSize:
    case RankScalar::Kind::kOffset:
      const Layout& layout = scalar.of_output ? context.output(scalar.operand)
                                              : context.input(scalar.operand);
      for (const std::int32_t dim : layout.cuts(scalar.dim)) dims.insert(dim);
      return;
  }
}

RankValues values_of(const std::vector<RankScalar>& scalars, bool is_list,
                     const LocalContext& context) {
  std::set<std::int32_t> found;
  for (const RankScalar& scalar : scalars) {
    add_mesh_dims(scalar, context, found);
  }
  const DimIndices dims(found.begin(), found.end());
  Coordinate at(static_cast<std::size_t>(context.mesh.ndim()));
  Rows rows;
  while (true) {
    auto& row = rows.emplace_back();
    row.reserve(scalars.size());
    for (const RankScalar& scalar : scalars) {
      row.push_back(evaluate(scalar, context, at));
    }
    // Moves to the next coordinate on the dims. The last dim varies fastest.
    std::size_t d = dims.size();
    while (d > 0) {
      const auto dim = index(dims[d - 1]);
      if (++at[dim] < context.mesh.size(dims[d - 1])) break;
      at[dim] = 0;
      --d;
    }
    if (d == 0) break;
  }
  return RankValues(context.mesh, dims, is_list, std::move(rows));
}

LocalScalar number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

template <class List, class Function>
std::vector<LocalScalar> list_of(const List& list, Function&& scalar) {
  std::vector<LocalScalar> out;
  for (const auto& element : list) out.push_back(scalar(element));
  return out;
}

// In a program, tensors are LocalRefs. So an argument that still names a tensor
// is absent.
LocalRunValue written(const Argument& argument) {
  return std::visit(
      [](const auto& value) -> LocalRunValue {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, NoneArg> ||
                      std::is_same_v<T, TensorArg> ||
                      std::is_same_v<T, std::vector<TensorArg>>) {
          return LocalScalar{};
        } else if constexpr (std::is_same_v<T, DType>) {
          return LocalScalar(std::string(to_string(value)));
        } else if constexpr (std::is_same_v<T, NamedArg>) {
          return LocalScalar(value.name);
        } else if constexpr (std::is_same_v<T, std::complex<double>>) {
          return LocalScalar(std::pair(value.real(), value.imag()));
        } else if constexpr (std::is_same_v<T, double>) {
          return number(value);
        } else if constexpr (std::is_same_v<T, std::vector<double>>) {
          return list_of(value, number);
        } else if constexpr (std::is_same_v<T, std::vector<bool>> ||
                             std::is_same_v<T, std::vector<std::int64_t>> ||
                             std::is_same_v<T, std::vector<std::string>>) {
          return list_of(value, [](const auto& element) {
            return LocalScalar(typename T::value_type(element));
          });
        } else {
          return LocalScalar(value);
        }
      },
      argument);
}

bool is_none(const LocalRef& ref) {
  return ref.step < 0 && ref.index == TensorArg::kNone;
}

LocalRunValue written(const LocalOp::Value& value,
                      const LocalContext& context) {
  return std::visit(
      [&](const auto& cached) -> LocalRunValue {
        using T = std::decay_t<decltype(cached)>;
        if constexpr (std::is_same_v<T, Argument>) {
          return written(cached);
        } else if constexpr (std::is_same_v<T, LocalRef>) {
          if (is_none(cached)) return LocalScalar{};
          return cached;
        } else if constexpr (std::is_same_v<T, std::vector<LocalRef>>) {
          // A list without tensors is written as a list of empty scalars.
          if (std::all_of(cached.begin(), cached.end(), is_none)) {
            return std::vector<LocalScalar>(cached.size());
          }
          return cached;
        } else if constexpr (std::is_same_v<T, RankScalar>) {
          return values_of({cached}, false, context);
        } else {
          return values_of(cached, true, context);
        }
      },
      value);
}

LocalRunProgram written(const LocalProgram& program,
                        const LocalContext& context) {
  LocalRunProgram out;
  for (const LocalStep& step : program.steps) {
    if (const auto* op = std::get_if<LocalOp>(&step)) {
      LocalRunOp produced{op->name, {}};
      for (const auto& [name, value] : op->args) {
        produced.args.emplace_back(name, written(value, context));
      }
      out.steps.push_back(std::move(produced));
    } else {
      const auto& collective = std::get<LocalCollective>(step);
      out.steps.push_back(LocalRunCollective{collective.kind, collective.op,
                                             collective.mesh_dims,
                                             collective.value});
    }
  }
  out.outputs = program.outputs;
  return out;
}

// Returns the value of the scalar in the unsharded operator.
std::int64_t unsharded(const RankScalar& scalar, const LocalContext& context) {
  const auto operand = index(scalar.operand);
  std::int64_t x = 0;
  if (scalar.kind == RankScalar::Kind::kLocalSize) {
    x = (scalar.of_output ? context.op.outputs : context.op.inputs)[operand]
            .size(scalar.dim);
  } else if (scalar.kind == RankScalar::Kind::kFactorSize) {
    x = context.space.factors[operand].size;
  }
  return scalar.of(x);
}

}  // namespace

RankValues::RankValues(const DeviceMesh& mesh, DimIndices mesh_dims,
                       bool is_list,
                       std::vector<std::vector<std::int64_t>> rows)
    : is_list_(is_list),
      mesh_dims_(std::move(mesh_dims)),
      rows_(std::move(rows)) {
  for (const std::int32_t dim : mesh_dims_) sizes_.push_back(mesh.size(dim));
  for (std::size_t d = mesh_dims_.size(); d-- > 0;) {
    if (!uniform_along(rows_, sizes_, d)) continue;
    rows_ = without_dim(std::move(rows_), sizes_, d);
    sizes_ = without_entry(sizes_, d);
    mesh_dims_ = without_entry(mesh_dims_, d);
  }
}

const std::vector<std::int64_t>& RankValues::at(const Coordinate& rank) const {
  std::size_t row = 0;
  for (std::size_t d = 0; d < mesh_dims_.size(); ++d) {
    row = row * static_cast<std::size_t>(sizes_[d]) +
          static_cast<std::size_t>(rank[index(mesh_dims_[d])]);
  }
  return rows_[row];
}

LocalRun local_run(const LocalContext& context, const LocalProgram& program) {
  return {{}, written(program, context)};
}

LocalRun local_run(const LocalContext& context) {
  if (needs_program(context)) {
    return local_run(context, local_program(context));
  }
  LocalRun out;
  for (const LocalArgument& local : context.space.local_arguments) {
    std::vector<std::int64_t> whole;
    for (const RankScalar& scalar : local.values) {
      whole.push_back(unsharded(scalar, context));
    }
    RankValues values = values_of(local.values, local.is_list, context);
    const bool differs =
        !values.mesh_dims().empty() ||
        values.at(Coordinate(static_cast<std::size_t>(context.mesh.ndim()))) !=
            whole;
    if (differs) out.arguments.push_back({local.name, std::move(values)});
  }
  return out;
}

}  // namespace shardprop
