// Operators that run over one dim and treat all others in the same way, and
// operators that split one dim.

#include "ops/forms/forms.h"
#include "ops/forms/segment_dims.h"
#include "ops/forms/shared_form.h"

#include <utility>

namespace shardprop {
namespace {

BoundForm bind_along(const OpCall& call, const std::string& argument,
                     int results, FactorKind kind) {
  const TensorMeta& first = call.first();
  SpaceBuilder b;
  const Operand whole = b.per_dim(first.shape());
  const int dim = call.dim(argument, first.rank());
  if (first.rank() > 0) {
    b.block(whole.dims[index(dim)],
            "`" + argument + "` of " + call.op().name() + " runs over it",
            kind);
  }
  for (const TensorMeta& input : call.op().inputs) {
    require(input.shape() == first.shape(), "the operands differ in shape");
    b.input(whole);
  }
  for (int i = 0; i < results; ++i) b.output(whole);
  return b.bound();
}

BoundForm bind_cut(const OpCall& call, const DimOf& along, const SizesOf& sizes,
                   bool copies) {
  const TensorMeta& self = call.tensor("self");
  require(self.rank() > 0, "a scalar cannot be cut");
  const int dim = along(call, self.rank());
  const std::vector<std::int64_t> pieces = sizes(call, self.size(dim));
  require(std::cmp_less_equal(pieces.size(), kMostResults), "too many pieces");
  std::int64_t sum = 0;
  for (const std::int64_t size : pieces) {
    require(size >= 0, "a piece has a negative size");
    sum = add_sizes(sum, size);
  }
  require(sum == self.size(dim), "the pieces do not add up to the dim");
  SpaceBuilder b;
  Operand whole = b.per_dim(self.shape());
  for (const TensorMeta& meta : call.op().inputs) {
    // A tensor may hold the positions of the splits.
    b.input(&meta == &self ? whole : SpaceBuilder::whole(meta.rank()));
  }
  b.block(whole.dims[index(dim)], "it is cut up", FactorKind::kSegmented);
  SegmentDims segments(b, "it is cut up");
  for (const std::int64_t size : pieces) {
    whole.dims[index(dim)] = segments.of(size);
    BoundResult result;
    if (!copies) result.strides = self.strides();
    b.output(whole, std::move(result));
  }
  return b.bound();
}

// Every element of the result is one element of the input, moved along those
// dims.
BoundForm bind_moved(const OpCall& call, const std::vector<int>& dims) {
  SpaceBuilder b;
  const Operand whole = b.per_dim(call.tensor("self").shape());
  for (const int dim : dims) {
    b.block(whole.dims[index(dim)], "elements move along it",
            FactorKind::kWindowed);
  }
  b.input(whole);
  b.output(whole);
  return b.bound();
}

// Returns the dims of a list. An empty list means all dims for a roll, which
// flattens.
std::vector<int> dims_listed(const OpCall& call, const std::string& argument) {
  const bool none = call.op()
                        .ints_arg(argument)
                        .value_or(std::vector<std::int64_t>{})
                        .empty();
  if (none && call.base_name() != "roll") return {};
  return call.dims(argument, call.tensor("self").rank());
}

// The last two dims are those of matrices.
BoundForm bind_matrices(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  require(self.rank() >= 2, "the operand holds no matrices");
  SpaceBuilder b;
  const Operand whole = b.per_dim(self.shape());
  for (int dim = self.rank() - 2; dim < self.rank(); ++dim) {
    b.block(whole.dims[index(dim)],
            "which elements stay depends on their place");
  }
  b.input(whole);
  b.output(whole);
  return b.bound();
}

}  // namespace

OpDefinition along(std::string_view dim_argument, int results,
                   FactorKind kind) {
  return shared_form(
                     (kind == FactorKind::kScanned ? "scanned" : "along") +
                         results_text(dim_argument, results),
                     [argument = std::string(dim_argument), results,
                      kind](const OpCall& call) {
                       return bind_along(call, argument, results, kind);
                     });
}

OpDefinition moved(std::string_view dims_argument) {
  return moved("moved(" + std::string(dims_argument) + ")",
               [argument = std::string(dims_argument)](const OpCall& call) {
                 return dims_listed(call, argument);
               });
}

OpDefinition moved(std::string name, DimsOf dims) {
  return shared_form(std::move(name),
                     [dims = std::move(dims)](const OpCall& call) {
                       return bind_moved(call, dims(call));
                     })
      .passes();
}

OpDefinition of_matrices() { return shared_form("matrices()", bind_matrices); }

OpDefinition cut_up(std::string name, SizesOf sizes, bool copies) {
  return shared_form(std::move(name),
                     [sizes = std::move(sizes), copies](const OpCall& call) {
                       const auto named = [](const OpCall& c, int rank) {
                         return c.dim("dim", rank);
                       };
                       return bind_cut(call, named, sizes, copies);
                     })
      .passes({"self"});
}

OpDefinition cut_up(std::string name, DimOf along, SizesOf sizes) {
  return shared_form(std::move(name),
                     [along = std::move(along),
                      sizes = std::move(sizes)](const OpCall& call) {
                       return bind_cut(call, along, sizes, false);
                     })
      .passes({"self"});
}

}  // namespace shardprop
