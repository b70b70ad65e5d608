// This file defines prims, the operators that PyTorch's own decompositions
// produce.

#include "ops/definitions/dtypes.h"
#include "ops/definitions/families.h"

namespace shardprop {
namespace {

DType stated_dtype(const OpCall& call, std::size_t) {
  return call.dtype_or("output_dtype", call.first().dtype());
}

}  // namespace

void define_prims(Family f) {
  f.add("prims.sum", reduction(ReduceOp::kSum).typed(stated_dtype));
  f.add("prims.prod", reduction(ReduceOp::kProduct).typed(stated_dtype));
  f.add("prims.amax", reduction(ReduceOp::kMax).typed(stated_dtype).nonempty());
  f.add("prims.amin", reduction(ReduceOp::kMin).typed(stated_dtype).nonempty());
  f.add({"prims.bessel_i0e", "prims.bessel_i1", "prims.bessel_i1e",
         "prims.bessel_j0", "prims.bessel_j1", "prims.erfcx", "prims.ndtri",
         "prims.spherical_bessel_j0", "prims.zeta"},
        pointwise().floating());
  f.add({"prims.gcd", "prims.div"}, pointwise().promoted());
  f.add("prims.ne", pointwise().boolean());
  f.add("prims.frexp",
        pointwise(2).typed([](const OpCall& call, std::size_t result) {
          return result == 0 ? call.first().dtype() : DType::kI32;
        }));
}

}  // namespace shardprop
