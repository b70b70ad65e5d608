// Reductions over dims. Those without a reduce op of their own need all of
// the dim.

#include "ops/definitions/dtypes.h"
#include "ops/definitions/families.h"

namespace shardprop {
namespace {

DType of_mean(const OpCall& call, std::size_t) {
  const DType dtype = call.dtype_or("dtype", call.first().dtype());
  require(!counts(dtype), "a mean of integers needs a dtype");
  return dtype;
}

DType of_truth(const OpCall& call, std::size_t) {
  return call.first().dtype() == DType::kU8 ? DType::kU8 : DType::kBool;
}

DType of_floating(const OpCall& call, std::size_t) {
  return call.dtype_or("dtype", to_floating(call.first().dtype()));
}

// The dtype in which lengths of vectors are measured.
DType of_norm(const OpCall& call, std::size_t result) {
  return real_dtype(of_floating(call, result));
}

// A mean over unequal shards is a sum with the global divisor.
constexpr std::string_view kMean =
    "return sum(self, dim, keepdim, dtype=dtype) / (numel(self) / numel(out))";
constexpr std::string_view kMeanOfAll =
    "return sum(self, dtype=dtype) / (numel(self) / numel(out))";

void program_when_uneven(const OpCall&, IndexSpace& space) {
  for (std::size_t f = 0; f < space.factors.size(); ++f) {
    if (space.outputs_without[0][f].is_partial()) {
      space.factors[f].program = ProgramUse::kWhenUneven;
    }
  }
}

OpDefinition mean(std::string_view program) {
  return reduction(ReduceOp::kAvg)
      .typed(of_mean)
      .refine("", program_when_uneven)
      .decomposed(program);
}

}  // namespace

void define_reduction(Family f) {
  f.add("sum", reduction(ReduceOp::kSum).typed(of_sum));
  f.add("prod", reduction(ReduceOp::kProduct).typed(of_sum));
  f.add("nansum", reduction(std::nullopt).typed(of_sum));
  f.add("mean", mean(kMean));
  f.add("mean.default", mean(kMeanOfAll));
  f.add("amax", reduction(ReduceOp::kMax).nonempty());
  f.add("amin", reduction(ReduceOp::kMin).nonempty());
  f.add({"max.default", "max"}, reduction(ReduceOp::kMax).nonempty());
  f.add({"min.default", "min"}, reduction(ReduceOp::kMin).nonempty());
  f.add({"max.dim", "min.dim", "median.dim", "nanmedian.dim", "mode",
         "kthvalue"},
        reduction(std::nullopt, 2).typed(value_and_index).nonempty());
  f.add({"median", "nanmedian"}, reduction(std::nullopt).nonempty());
  f.add("any", reduction(ReduceOp::kBor).typed(of_truth));
  f.add("all", reduction(ReduceOp::kBand).typed(of_truth));
  f.add({"argmax", "argmin"},
        reduction(std::nullopt).typed(DType::kI64).nonempty());
  f.add({"var", "std", "prims.var"}, reduction(std::nullopt));
  f.add({"var_mean", "std_mean"}, reduction(std::nullopt, 2));
  f.add("aminmax", reduction(std::nullopt, 2).nonempty());
  f.add("logsumexp", reduction(std::nullopt).typed(of_floating));
  f.add({"linalg_vector_norm", "norm"}, reduction(std::nullopt).typed(of_norm));
  // Whether a sum is zero its terms do not tell.
  f.add("count_nonzero", reduction(ReduceOp::kSum)
                             .typed(DType::kI64)
                             .refine("", [](const OpCall&, IndexSpace& space) {
                               space.linearities.clear();
                             }));
}

}  // namespace shardprop
