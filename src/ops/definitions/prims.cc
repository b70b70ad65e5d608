// prims: what PyTorch's own decompositions end in.

#include "ops/definitions/dtypes.h"
#include "ops/definitions/families.h"

namespace shardprop {
namespace {

// Over `dims`, all where it is None, which never stay.
BoundForm bind_reduction(const OpCall& call, ReduceOp reduce) {
  const TensorMeta& input = call.tensor("inp");
  SpaceBuilder b;
  const Operand whole = b.per_dim(input.shape());
  b.input(whole);
  std::vector<bool> gone(input.shape().size(), false);
  const auto dims = call.optional_integers("dims");
  for (std::size_t d = 0; d < gone.size(); ++d) gone[d] = !dims;
  if (dims) {
    for (const std::int64_t dim : *dims) {
      const int at = wrap_dim(dim, input.rank());
      if (input.rank() > 0) gone[index(at)] = true;
    }
  }
  Operand output;
  DimFactors reduced;
  for (std::size_t d = 0; d < gone.size(); ++d) {
    if (!gone[d]) {
      output.dims.push_back(whole.dims[d]);
      continue;
    }
    for (const FactorId id : whole.dims[d]) reduced.push_back(id);
  }
  b.output(std::move(output));
  b.without(0, reduced, Without::partial(reduce));
  return b.bound();
}

OpDefinition reduced(ReduceOp reduce) {
  return custom("reduction(" + std::string(to_string(reduce)) + ")",
                [reduce](const OpCall& call) {
                  return bind_reduction(call, reduce);
                })
      .typed([](const OpCall& call, std::size_t) {
        return call.dtype_or("output_dtype", call.first().dtype());
      });
}

}  // namespace

void define_prims(Family f) {
  f.add("prims.sum", reduced(ReduceOp::kSum).linear_in("inp"));
  f.add("prims.prod", reduced(ReduceOp::kProduct));
  f.add("prims.amax", reduced(ReduceOp::kMax).nonempty());
  f.add("prims.amin", reduced(ReduceOp::kMin).nonempty());
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
