// Counts the floating point operations of matrices. The counts follow Golub and
// Van Loan, Matrix Computations; iterative methods have a typical number of
// iterations.

#include <shardprop/ops/op_definition.h>

#include "base/parse_int.h"
#include "ops/op_call.h"
#include "ops/rules/rule_arguments.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>

namespace shardprop {
namespace {

// Returns the value of "2/3" or "21"; nullopt for other texts.
std::optional<double> fraction_of(std::string_view text) {
  const std::size_t slash = std::min(text.find('/'), text.size());
  const auto over = parse_int(text.substr(0, slash));
  const auto under = slash == text.size() ? std::optional<std::int64_t>(1)
                                          : parse_int(text.substr(slash + 1));
  if (!over || !under || *over < 0 || *under <= 0) return std::nullopt;
  return static_cast<double>(*over) / static_cast<double>(*under);
}

// A power takes a product for each bit of the exponent.
double work_of_powers(std::int64_t exponent) {
  const auto n = static_cast<double>(exponent);
  return n < 0 ? 2 + 2 * std::log2(1 - n) : 2 * std::log2(1 + n);
}

// Returns the matrices; if there are right sides, the square ones.
const TensorMeta& matrices_of(const OpCall& call) {
  for (const char* name : {"A", "LU", "LD", "input2", "LU_data"}) {
    if (!call.has(name)) continue;
    if (const TensorMeta* meta = call.optional_tensor(name)) return *meta;
  }
  return call.first();
}

// Returns the number of columns of right sides that are not a factor.
double columns_of(const OpCall& call, const TensorMeta& matrices) {
  for (const char* name : {"B", "b"}) {
    const TensorMeta* right =
        call.has(name) ? call.optional_tensor(name) : nullptr;
    if (right == nullptr || right->rank() < matrices.rank()) continue;
    const bool left = call.boolean_or("left", true);
    return static_cast<double>(size_of(*right, right->rank() - (left ? 1 : 2)));
  }
  // The right sides are the first operand of older operators.
  const TensorMeta& first = call.first();
  if (&first == &matrices || first.rank() < 2) return 1;
  return static_cast<double>(size_of(first, first.rank() - 1));
}

}  // namespace

bool is_linalg_work(std::string_view text) {
  return fraction_of(text).has_value();
}

OpDefinition OpDefinition::linalg_work(std::string_view cubes,
                                       std::string_view columns) && {
  std::string text = "linalg_work(" + std::string(cubes);
  if (!columns.empty()) text += ',' + std::string(columns);
  return std::move(*this).refine(
      text + ')', [of_cubes = fraction_of(cubes), exponent = std::string(cubes),
                   of_columns = fraction_of(columns).value_or(0)](
                      const OpCall& call, IndexSpace& space) {
        const TensorMeta& matrices = matrices_of(call);
        if (matrices.rank() < 2) return;
        const auto rows =
            static_cast<double>(size_of(matrices, matrices.rank() - 2));
        const auto wide =
            static_cast<double>(size_of(matrices, matrices.rank() - 1));
        const double cube = rows * wide * std::min(rows, wide);
        if (!of_cubes) {
          space.flops_per_point = work_of_powers(call.integer(exponent)) * cube;
          return;
        }
        // Columns that are a factor have points of their own. The work on the
        // matrix is divided among these points.
        double own = 1;
        for (const Factor& factor : space.factors) {
          if (factor.letter == 'r') own = static_cast<double>(factor.size);
        }
        const double held = own > 1 ? 1 : columns_of(call, matrices);
        space.flops_per_point =
            *of_cubes * cube / own + of_columns * rows * wide * held;
      });
}

}  // namespace shardprop
