// This file defines scans, sorts, and other operators that run over one dim.

#include "ops/definitions/dtypes.h"
#include "ops/definitions/families.h"
#include "ops/definitions/words.h"
#include "ops/forms/mapped.h"

#include <algorithm>

namespace shardprop {
namespace {

// The prefix sums of a sum are the sums of prefix sums.
void linear(const OpCall& call, IndexSpace& space) {
  for (const ReduceOp kind : {ReduceOp::kSum, ReduceOp::kAvg}) {
    add_single_linearity(call, space, 0, kind, kind);
  }
}

// A rank adds the totals of the ranks before it. Totals are gathered, and those
// at smaller offsets are summed.
constexpr std::string_view kCumsum = R"(
total = sum(self, dim, True, dtype=dtype(out))
totals = all_gather_unordered(unsqueeze(total, 0))
starts = all_gather_unordered(full([1], offset(self, dim)))
behind = trailing(starts, rank(self)) >= offset(self, dim)
before = sum(masked_fill(totals, behind, 0), 0, dtype=dtype(out))
return cumsum(self, dim, dtype=dtype(out)) + before)";

constexpr std::string_view kCumprod = R"(
total = prod(self, dim, True, dtype=dtype(out))
totals = all_gather_unordered(unsqueeze(total, 0))
starts = all_gather_unordered(full([1], offset(self, dim)))
behind = trailing(starts, rank(self)) >= offset(self, dim)
before = prod(masked_fill(totals, behind, 1), 0, dtype=dtype(out))
return cumprod(self, dim, dtype=dtype(out)) * before)";

// Unsorted results have the order of one search over the full dim.
void in_order_only(const OpCall& call, IndexSpace& space) {
  if (call.boolean("sorted")) return;
  for (Factor& factor : space.factors) factor.program = ProgramUse::kNever;
}

// The result is the best k among every rank's best k.
constexpr std::string_view kTopk = R"(
v, i = topk(self, k, dim, largest)
values = transpose(all_gather(transpose(v, 0, dim)), 0, dim)
places = transpose(all_gather(transpose(i + offset(self, dim), 0, dim)), 0, dim)
best, at = topk(values, k, dim, largest, sorted)
return best, gather(places, dim, at))";

// Binds the k largest elements of a dim.
BoundForm bind_topk(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  const int dim = call.dim("dim", self.rank());
  const std::int64_t k = call.integer("k");
  SpaceBuilder b;
  Operand whole = b.per_dim(self.shape());
  b.input(whole);
  if (self.rank() > 0) {
    require(k >= 0 && k <= size_of(self, dim), "k is out of range");
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

// Returns the named dims, or all.
std::vector<int> dims_or_all(const OpCall& call) {
  const int rank = call.first().rank();
  return rank == 0 ? std::vector<int>{} : call.dims("dim", rank);
}

OpDefinition flip_form(int dim) {
  return move_form(
      "moved(" + std::to_string(dim) + ")", [dim](const OpCall& call) {
        require(call.first().rank() > dim, "the tensor has too few dims");
        return std::vector<int>{dim};
      });
}

OpDefinition flipped(int dim) {
  return form("moved(" + std::to_string(dim) + ")").passes().like({"self"});
}

// `Turn` is a rotation by quarter turns in the plane of two dims. Odd numbers
// of turns swap the two dims.
struct Turn {
  std::int64_t quarters;
  std::vector<int> plane;
};
Turn turn_of(const OpCall& call) {
  const int rank = call.first().rank();
  require(rank >= 2 && call.integers("dims").size() == 2,
          "a plane has two dims");
  const std::vector<int> plane = call.dims("dims", rank);
  return {(call.integer("k") % 4 + 4) % 4, plane};
}

// Returns the dims that are reversed in the result.
std::vector<int> turned_back(const Turn& turn) {
  switch (turn.quarters) {
    case 0:
      return {};
    case 1:
      return {turn.plane[1]};
    case 2:
      return turn.plane;
    default:
      return {turn.plane[0]};
  }
}

Notation turn_notation(const OpCall& call) {
  const Turn turn = turn_of(call);
  const std::vector<int> back = turned_back(turn);
  const Term self = term_of_dims(call.first().rank(), back);
  Term result = self;
  if (turn.quarters % 2 == 1) {
    std::swap(result.dims[index(turn.plane[0])],
              result.dims[index(turn.plane[1])]);
  }
  return {{self}, {result}, {}, {}};
}

Dims turned_strides(const OpCall& call, const Dims& shape, DType dtype) {
  const Turn turn = turn_of(call);
  if (turn.quarters == 0) return make_meta(shape, dtype).strides();
  const TensorMeta& self = call.first();
  Dims strides = dense_like(self, self.shape(), dtype).strides();
  if (turn.quarters % 2 == 1) {
    std::swap(strides[index(turn.plane[0])], strides[index(turn.plane[1])]);
  }
  return strides;
}

Notation first_dim_notation(const OpCall& call) {
  const Term dims = term_of_dims(call.first().rank(), {0});
  return {{dims}, {dims}, {}, {}};
}

}  // namespace

void words_of_scan(RuleWords& words) {
  words.form(move_form("moved(dim)", dims_or_all));
  words.form(flip_form(0));
  words.form(flip_form(1));
  words.modifier("linear()", linear);
  words.form(custom("topk(dim)", bind_topk));
  words.modifier("in_order_only()", in_order_only);
  words.form(mapped("turned(dims)", turn_notation));
  words.form(mapped("along_first()", first_dim_notation));
  words.strides("turned", turned_strides);
}

void define_scan(Family f) {
  const auto scan = [](int results) {
    return along("dim", results, FactorKind::kScanned);
  };
  f.add("cumsum", scan(1)
                      .typed("given(dtype,sum(first))")
                      .refine("linear()")
                      .per_rank(kCumsum, FactorKind::kScanned));
  f.add("cumprod", scan(1)
                       .typed("given(dtype,sum(first))")
                       .per_rank(kCumprod, FactorKind::kScanned));
  f.add({"cummax", "cummin"}, scan(2).typed("first,i64"));
  f.add("logcumsumexp", scan(1));
  f.add("sort", along("dim", 2).typed("first,i64").like({"self"}).selects());
  f.add("argsort", along("dim").typed(DType::kI64).like({"self"}));
  f.add("topk", form("topk(dim)")
                    .typed("first,i64")
                    .selects()
                    .per_rank(kTopk, FactorKind::kBlocked)
                    .refine("in_order_only()"));
  f.add("flip", form("moved(dims)").passes().like({"self"}));
  f.add("roll", form("rolled(dims)").passes());
  f.add("flipud", flipped(0));
  f.add("fliplr", flipped(1));
  f.add({"fft_fftshift", "fft_ifftshift"}, form("moved(dim)").passes());
  f.add("rot90", form("turned(dims)").strided("turned").passes());
  f.add("msort", form("along_first()").like({"self"}));
  f.add({"tril", "triu"}, of_matrices().refine("linear()").selects());
}

}  // namespace shardprop
