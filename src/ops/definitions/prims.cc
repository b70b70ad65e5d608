// This file defines prims, the operators that PyTorch's own decompositions
// produce.

#include "ops/definitions/dtypes.h"
#include "ops/definitions/families.h"

namespace shardprop {
namespace {}  // namespace

void define_prims(Family f) {
  f.add("prims.sum",
        reduction(ReduceOp::kSum).typed("given(output_dtype,first)"));
  f.add("prims.prod",
        reduction(ReduceOp::kProduct).typed("given(output_dtype,first)"));
  f.add(
      "prims.amax",
      reduction(ReduceOp::kMax).typed("given(output_dtype,first)").nonempty());
  f.add(
      "prims.amin",
      reduction(ReduceOp::kMin).typed("given(output_dtype,first)").nonempty());
  f.add({"prims.bessel_i0e", "prims.bessel_i1", "prims.bessel_i1e",
         "prims.bessel_j0", "prims.bessel_j1", "prims.erfcx", "prims.ndtri",
         "prims.spherical_bessel_j0", "prims.zeta"},
        pointwise().floating());
  f.add({"prims.gcd", "prims.div"}, pointwise().promoted());
  f.add("prims.ne", pointwise().boolean());
  f.add("prims.frexp", pointwise(2).typed("first,i32"));
}

}  // namespace shardprop
