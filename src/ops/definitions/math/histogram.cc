// Histograms: values counted in bins between edges.

#include "ops/definitions/families.h"
#include "ops/definitions/words.h"

#include <limits>
#include <string_view>
#include <utility>

namespace shardprop {
namespace {

// Counts between two given bounds are terms of a sum. Without bounds they
// depend on all values.
BoundForm bind_histogram(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  const std::int64_t bins = call.integer("bins");
  require(bins > 0, "the number of bins is not positive");
  const double low = call.op().float_arg("min").value_or(0);
  const double high = call.op().float_arg("max").value_or(0);
  SpaceBuilder b;
  const Operand whole = b.per_dim(self.shape());
  b.input(whole);
  b.output(SpaceBuilder::whole(1), {.shape = Dims{bins}});
  for (const DimFactors& dim : whole.dims) {
    if (low < high) {
      b.without(0, dim, Without::partial(ReduceOp::kSum));
    } else {
      b.block(dim, "the bounds are those of all values");
    }
  }
  return b.bound();
}

// The edges are one more than the bins.
void require_bins(std::int64_t count) {
  require(count > 0, "the number of bins is not positive");
  require(count < std::numeric_limits<std::int64_t>::max(),
          "the number of bins is too large");
}

// A histogram has n bins, given by n + 1 edges or by a count and a range. The
// weights (or ones) in a bin are terms of a sum, but the edges are not. A
// density divides by the sum of all bins.
BoundForm bind_weighted_histogram(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  const TensorMeta* weight = call.optional_tensor("weight");
  require(is_floating(self.dtype()), "the values are not floats");
  require(weight == nullptr || (weight->shape() == self.shape() &&
                                weight->dtype() == self.dtype()),
          "the weights are not one per value");
  const bool has_edges = declared(call, "bins").is_tensor();
  const auto* range =
      has_edges ? nullptr
                : std::get_if<std::vector<double>>(&call.op().arg("range"));
  std::int64_t bins = 0;
  if (has_edges) {
    const TensorMeta& edges = call.tensor("bins");
    require(
        edges.rank() == 1 && edges.numel() > 0 && edges.dtype() == self.dtype(),
        "the edges are not a vector of the values' dtype");
    bins = edges.numel() - 1;
  } else {
    bins = call.integer("bins");
    require_bins(bins);
    require(range == nullptr || range->size() == 2,
            "a range is a lower and an upper bound");
  }
  SpaceBuilder b;
  const Operand whole = b.per_dim(self.shape());
  b.input(whole);
  if (has_edges) b.input(SpaceBuilder::whole(1));
  if (weight != nullptr) b.input(whole);
  b.output(SpaceBuilder::whole(1), {.shape = Dims{bins}});
  b.output(SpaceBuilder::whole(1), {.shape = Dims{bins + 1}});
  for (const DimFactors& dim : whole.dims) {
    if (call.boolean("density")) {
      b.block(dim, "each count is divided by the sum of all");
    } else if (!has_edges && (range == nullptr || (*range)[0] == (*range)[1])) {
      b.block(dim, "the bounds are those of all values");
    } else {
      b.without(0, dim, Without::partial(ReduceOp::kSum));
      b.without(1, dim, Without::same());
    }
  }
  return b.bound();
}

// A point has one coordinate for each dim of the histogram; the rest is as in
// bind_weighted_histogram().
BoundForm bind_histogram_of_points(const OpCall& call, bool counts,
                                   bool edges) {
  const TensorMeta& self = call.tensor("self");
  const TensorMeta* weight = call.optional_tensor("weight");
  require(is_floating(self.dtype()) && self.rank() >= 2,
          "the points are not floats, or not rows");
  Dims points = self.shape();
  const std::int64_t coordinates = points.back();
  points.pop_back();
  // A histogram has a dim for each coordinate, and the edges of each dim are a
  // result.
  require(coordinates <= kMostResults, "too many coordinates");
  require(weight == nullptr ||
              (weight->shape() == points && weight->dtype() == self.dtype()),
          "the weights are not one per point");
  const ArgumentSchema& bins_argument = declared(call, "bins");
  const bool has_edges = bins_argument.is_tensor_list();
  Dims bins;
  bool bounded = true;
  if (has_edges) {
    for (const TensorMeta& ends : call.tensors("bins")) {
      require(
          ends.rank() == 1 && ends.numel() > 0 && ends.dtype() == self.dtype(),
          "the edges are not vectors of the points' dtype");
      bins.push_back(ends.numel() - 1);
    }
  } else {
    bins = bins_argument.is_list
               ? dims_of(call.integers("bins"))
               : Dims(index(coordinates), call.integer("bins"));
    for (const std::int64_t count : bins) require_bins(count);
    const auto* range =
        std::get_if<std::vector<double>>(&call.op().arg("range"));
    require(range == nullptr ||
                range->size() == 2 * static_cast<std::size_t>(coordinates),
            "a range is a lower and an upper bound for each coordinate");
    bounded = range != nullptr;
  }
  require(static_cast<std::int64_t>(bins.size()) == coordinates,
          "the numbers of bins are not one per coordinate");
  SpaceBuilder b;
  const Operand whole = b.per_dim(self.shape());
  Operand by_point = whole;
  by_point.dims.pop_back();
  b.input(whole);
  if (has_edges) {
    for (std::size_t i = 0; i < bins.size(); ++i) {
      b.input(SpaceBuilder::whole(1));
    }
  }
  if (weight != nullptr) b.input(by_point);
  if (counts) b.output(SpaceBuilder::whole(bins.size()), {.shape = bins});
  for (std::size_t i = 0; edges && i < bins.size(); ++i) {
    b.output(SpaceBuilder::whole(1), {.shape = Dims{bins[i] + 1}});
  }
  b.block(whole.dims.back(), "a point is one of the histogram's places");
  for (const DimFactors& dim : by_point.dims) {
    if (!bounded) {
      b.block(dim, "the bounds are those of all points");
    } else if (counts && call.boolean("density")) {
      b.block(dim, "each count is divided by the sum of all");
    } else {
      for (std::size_t o = 0; o < b.space.outputs.size(); ++o) {
        const bool adds_up = counts && o == 0;
        b.without(static_cast<int>(o), dim,
                  adds_up ? Without::partial(ReduceOp::kSum) : Without::same());
      }
    }
  }
  return b.bound();
}

// The counts, or weights, of bincount are terms of a sum. Each rank returns all
// bins.
BoundForm bind_bincount(const OpCall& call) {
  const OpSchema& op = call.op();
  const TensorMeta& self = call.tensor("self");
  if (op.outputs.empty()) {
    call_not_stated("the size of the result depends on the data");
  }
  SpaceBuilder b;
  const Operand values = b.per_dim(self.shape());
  for (const TensorMeta& meta : op.inputs) {
    require(
        meta.rank() == 1 && meta.shape() == self.shape(),
        "the values are not a vector, or the weights are not one per value");
    b.input(values);
  }
  const TensorMeta& counts = op.outputs[0];
  b.output(SpaceBuilder::whole(1),
           {.shape = counts.shape(), .dtype = counts.dtype()});
  b.without(0, values.dims[0], Without::partial(ReduceOp::kSum));
  for (const FactorId id : values.dims[0]) {
    b.space.factor(id).program = ProgramUse::kWhenSharded;
  }
  return b.bound();
}

constexpr std::string_view kBincount = R"(
w = ones_like(self, dtype=dtype(out))
w = cast(weights, dtype(out)) if weights
at = cast(self, dtype(arange(1)))
return index_add(full([numel(out)], 0, dtype=dtype(out)), 0, at, w))";
}  // namespace

void words_of_histogram(RuleWords& words) {
  words.form(custom("histogram()", bind_histogram));
  words.form(custom("weighted_histogram()", bind_weighted_histogram));
  words.form(custom("histogram_of_points(counts)", [](const OpCall& call) {
    return bind_histogram_of_points(call, true, false);
  }));
  words.form(custom("histogram_of_points(edges)", [](const OpCall& call) {
    return bind_histogram_of_points(call, false, true);
  }));
  words.form(
      custom("histogram_of_points(counts,edges)", [](const OpCall& call) {
        return bind_histogram_of_points(call, true, true);
      }));
  words.form(custom("bincount()", bind_bincount));
}

void define_histogram(Family f) {
  f.add("histc", form("histogram()"));
  f.add("histogram", form("weighted_histogram()"));
  f.add("_histogramdd_bin_edges", form("histogram_of_points(edges)"));
  f.add({"_histogramdd_from_bin_cts", "_histogramdd_from_bin_tensors"},
        form("histogram_of_points(counts)"));
  f.add("histogramdd", form("histogram_of_points(counts,edges)"));
  f.add("bincount", form("bincount()").per_rank(kBincount));
}

}  // namespace shardprop
