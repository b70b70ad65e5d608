// Operators that run over one dim and treat all others in the same way, and
// operators that split one dim.

#include "ops/forms/forms.h"
#include "ops/forms/segment_dims.h"
#include "ops/forms/shared_form.h"
#include "ops/rules/rule_words.h"

#include <algorithm>
#include <cstddef>
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

// Adds the argument that states the sizes of the pieces, which ranks replace by
// those of their shards. Numbers of pieces are the same on all ranks.
void add_local_sizes(const OpCall& call, int dim, std::size_t pieces,
                     DimFactors piece, IndexSpace& space) {
  for (const char* name : {"split_sizes", "split_size", "indices"}) {
    if (!call.has(name)) continue;
    const bool is_scalar =
        name == std::string_view("split_size") && call.overload() != "sizes";
    LocalArgument local{name, !is_scalar, {}};
    const bool are_positions = name == std::string_view("indices");
    const std::size_t numbers =
        is_scalar ? 1 : pieces - (are_positions ? 1 : 0);
    for (std::size_t i = 0; i < numbers; ++i) {
      RankScalar number = RankScalar::output_size(0, dim);
      if (are_positions) number.scale = static_cast<std::int64_t>(i) + 1;
      local.values.push_back(number);
    }
    space.local_arguments.push_back(std::move(local));
    // A dim without elements has one piece of size 0, not several.
    if (is_scalar) {
      for (const FactorId factor : piece) space.factor(factor).least = 1;
    }
  }
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
  // The positions of the splits may be those in a tensor.
  const bool has_positions = call.op().inputs.size() > 1;
  const bool are_equal = !has_positions && are_shardable_pieces(pieces);
  Operand whole;
  DimFactors piece;
  for (int d = 0; d < self.rank(); ++d) {
    if (d != dim || !are_equal) {
      whole.dims.push_back(b.dim(self.size(d)));
      continue;
    }
    DimFactors both = b.blocked(static_cast<std::int64_t>(pieces.size()),
                                "it is cut up", FactorKind::kSegmented);
    piece = b.dim(pieces.front());
    for (const FactorId factor : piece) both.push_back(factor);
    whole.dims.push_back(std::move(both));
  }
  for (const TensorMeta& meta : call.op().inputs) {
    b.input(&meta == &self ? whole : SpaceBuilder::whole(meta.rank()));
  }
  if (are_equal) {
    add_local_sizes(call, dim, pieces.size(), piece, b.space);
    whole.dims[index(dim)] = piece;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      BoundResult result;
      if (!copies) result.strides = self.strides();
      b.output(whole, std::move(result));
    }
    return b.bound();
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

// Returns the dims of a list; none if it is empty.
std::vector<int> dims_listed(const OpCall& call, const std::string& argument) {
  const bool none = call.op()
                        .ints_arg(argument)
                        .value_or(std::vector<std::int64_t>{})
                        .empty();
  if (none) return {};
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
  return shared_form((kind == FactorKind::kScanned ? "scanned" : "along") +
                         results_text(dim_argument, results),
                     [argument = std::string(dim_argument), results,
                      kind](const OpCall& call) {
                       return bind_along(call, argument, results, kind);
                     });
}

OpDefinition move_form(std::string text, DimsOf dims) {
  return shared_form(std::move(text),
                     [dims = std::move(dims)](const OpCall& call) {
                       return bind_moved(call, dims(call));
                     });
}

OpDefinition of_matrices() { return form("matrices()"); }

OpDefinition split_form(std::string text, SizesOf sizes, bool copies) {
  return shared_form(std::move(text),
                     [sizes = std::move(sizes), copies](const OpCall& call) {
                       const auto named = [](const OpCall& c, int rank) {
                         return c.dim("dim", rank);
                       };
                       return bind_cut(call, named, sizes, copies);
                     });
}

OpDefinition split_form(std::string text, DimOf along, SizesOf sizes) {
  return shared_form(
      std::move(text),
      [along = std::move(along), sizes = std::move(sizes)](const OpCall& call) {
        return bind_cut(call, along, sizes, false);
      });
}

OpDefinition cut_up(std::string_view word) {
  return form(word).passes({"self"});
}

void words_of_along(RuleWords& words) {
  words.form(move_form("moved(dims)", [](const OpCall& call) {
    return dims_listed(call, "dims");
  }));
  // An empty list means that the elements move as one vector.
  words.form(move_form("rolled(dims)", [](const OpCall& call) {
    return call.dims("dims", call.tensor("self").rank());
  }));
  words.form(shared_form("matrices()", bind_matrices));
}

}  // namespace shardprop
