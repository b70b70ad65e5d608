// Scans, sorts, and others that run over one dim.

#include "ops/definitions/dtypes.h"
#include "ops/definitions/families.h"

namespace shardprop {
namespace {

// Sums of prefixes are prefixes of sums.
void linear(const OpCall& call, IndexSpace& space) {
  for (const ReduceOp kind : {ReduceOp::kSum, ReduceOp::kAvg}) {
    add_single_linearity(call, space, 0, kind, kind);
  }
}

// The k largest of a dim.
BoundForm bind_topk(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  const int dim = call.dim("dim", self.rank());
  const std::int64_t k = call.integer("k");
  SpaceBuilder b;
  Operand whole = b.per_dim(self.shape());
  b.input(whole);
  if (self.rank() > 0) {
    require(k >= 0 && k <= self.size(dim), "k is out of range");
    b.block(whole.dims[index(dim)], "`dim` of aten.topk.default runs over it");
    whole.dims[index(dim)] = b.blocked(k, "it holds the k largest");
  }
  b.output(whole);
  b.output(whole);
  return b.bound();
}

// Every element of the result is one of the input, along those dims.
BoundForm bind_moved(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  SpaceBuilder b;
  const Operand whole = b.per_dim(self.shape());
  const bool flattens = call.base_name() == "roll" &&
                        call.op().ints_arg("dims").value_or(std::vector<std::int64_t>{}).empty();
  std::vector<int> dims;
  if (flattens || !call.op().ints_arg("dims").value_or(std::vector<std::int64_t>{}).empty()) {
    dims = call.dims("dims", self.rank());
  }
  for (const int dim : dims) {
    b.block(whole.dims[index(dim)], "elements move along it",
            FactorKind::kWindowed);
  }
  b.input(whole);
  b.output(whole);
  return b.bound();
}

// The last two dims are matrices.
BoundForm bind_matrices(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  require(self.rank() >= 2, "the operand holds no matrices");
  SpaceBuilder b;
  const Operand whole = b.per_dim(self.shape());
  for (int dim = self.rank() - 2; dim < self.rank(); ++dim) {
    b.block(whole.dims[index(dim)], "which elements stay depends on their place");
  }
  b.input(whole);
  b.output(whole);
  return b.bound();
}

}  // namespace

void define_scan(Family f) {
  const auto scan = [](int results) {
    return along("dim", results, FactorKind::kScanned);
  };
  f.add("cumsum", scan(1).typed(of_sum).like("self").refine("linear()", linear));
  f.add("cumprod", scan(1).typed(of_sum).like("self"));
  f.add({"cummax", "cummin"}, scan(2).typed(value_and_index));
  f.add("logcumsumexp", scan(1).like("self"));
  f.add("sort", along("dim", 2).typed(value_and_index).like("self"));
  f.add("argsort", along("dim").typed(DType::kI64).like("self"));
  f.add("topk", custom("topk(dim)", bind_topk).typed(value_and_index));
  f.add({"flip", "roll"}, custom("moved(dims)", bind_moved).passes());
  f.add({"tril", "triu"}, custom("matrices()", bind_matrices).refine("linear()", linear));
}

}  // namespace shardprop
