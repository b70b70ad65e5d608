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

// A rank adds what the ranks before it hold: totals are gathered, those at
// smaller offsets count.
constexpr std::string_view kCumsum = R"(
total = sum(self, dim, True, dtype=dtype(out))
totals = all_gather(unsqueeze(total, 0))
starts = all_gather(full([1], offset(self, dim)))
behind = trailing(starts, rank(self)) >= offset(self, dim)
before = sum(masked_fill(totals, behind, 0), 0, dtype=dtype(out))
return cumsum(self, dim, dtype=dtype(out)) + before)";

constexpr std::string_view kCumprod = R"(
total = prod(self, dim, True, dtype=dtype(out))
totals = all_gather(unsqueeze(total, 0))
starts = all_gather(full([1], offset(self, dim)))
behind = trailing(starts, rank(self)) >= offset(self, dim)
before = prod(masked_fill(totals, behind, 1), 0, dtype=dtype(out))
return cumprod(self, dim, dtype=dtype(out)) * before)";

// Unsorted, the order is that of one search over all of the dim.
void in_order_only(const OpCall& call, IndexSpace& space) {
  if (call.boolean("sorted")) return;
  for (Factor& factor : space.factors) factor.program = ProgramUse::kNever;
}

// The best k of every rank's best k.
constexpr std::string_view kTopk = R"(
v, i = topk(self, k, dim, largest)
values = transpose(all_gather(transpose(v, 0, dim)), 0, dim)
places = transpose(all_gather(transpose(i + offset(self, dim), 0, dim)), 0, dim)
best, at = topk(values, k, dim, largest, sorted)
return best, gather(places, dim, at))";

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
    for (const FactorId id : whole.dims[index(dim)])
      b.space.factor(id).least = k;
    whole.dims[index(dim)] =
        b.blocked(k, "it holds the k largest", FactorKind::kSegmented);
  }
  b.output(whole);
  b.output(whole);
  return b.bound();
}

}  // namespace

void define_scan(Family f) {
  const auto scan = [](int results) {
    return along("dim", results, FactorKind::kScanned);
  };
  f.add("cumsum", scan(1)
                      .typed(of_sum)
                      .refine("linear()", linear)
                      .per_rank(kCumsum, FactorKind::kScanned));
  f.add("cumprod",
        scan(1).typed(of_sum).per_rank(kCumprod, FactorKind::kScanned));
  f.add({"cummax", "cummin"}, scan(2).typed(value_and_index));
  f.add("logcumsumexp", scan(1));
  f.add("sort", along("dim", 2).typed(value_and_index).like("self"));
  f.add("argsort", along("dim").typed(DType::kI64).like("self"));
  f.add("topk", custom("topk(dim)", bind_topk)
                    .typed(value_and_index)
                    .per_rank(kTopk, FactorKind::kBlocked)
                    .refine("", in_order_only));
  f.add("flip", moved("dims").like("self"));
  f.add("roll", moved("dims"));
  f.add({"tril", "triu"}, of_matrices().refine("linear()", linear));
}

}  // namespace shardprop
