// Slices, selections, cats and stacks along one dim, and writes to a region of
// it.

#include "ops/forms/forms.h"
#include "ops/forms/indices.h"
#include "ops/forms/segment_dims.h"
#include "ops/forms/shared_form.h"
#include "ops/rules/rule_words.h"
#include "ops/space/view_strides.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace shardprop {
namespace {

// A number of pieces as an argument: the first element of a slice, its end, or
// its length.
using CountOfPieces = std::pair<const char*, std::int64_t>;

// A slice is one of several equal pieces of a dim. If ranks shard each piece, a
// rank slices its part of the dim at the same piece.
BoundForm bind_piece(const OpCall& call, int dim, std::int64_t length,
                     const std::array<CountOfPieces, 2>& arguments) {
  const TensorMeta& self = call.tensor("self");
  SpaceBuilder b;
  Operand whole;
  DimFactors own;
  for (int d = 0; d < self.rank(); ++d) {
    if (d != dim) {
      whole.dims.push_back(b.dim(self.size(d)));
      continue;
    }
    DimFactors both = b.blocked(self.size(d) / length, "it is sliced",
                                FactorKind::kSegmented);
    own = b.dim(length);
    for (const FactorId factor : own) both.push_back(factor);
    whole.dims.push_back(std::move(both));
  }
  b.input(whole);
  whole.dims[index(dim)] = own;
  b.output(std::move(whole), {.strides = self.strides()});
  for (const auto& [name, pieces] : arguments) {
    RankScalar place = RankScalar::output_size(0, dim);
    place.scale = pieces;
    b.space.local_arguments.push_back({name, false, {place}});
  }
  return b.bound();
}

BoundForm bind_slice(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  require(self.rank() > 0, "a scalar cannot be sliced");
  const int dim = call.dim("dim", self.rank());
  const std::int64_t step = call.integer("step");
  const std::optional<std::int64_t> start = call.op().int_arg("start");
  const std::int64_t length =
      slice_length(self.size(dim), start, call.op().int_arg("end"), step);
  if (const auto piece = piece_of_slice(self.size(dim), length, start, step)) {
    return bind_piece(call, dim, length,
                      {{{"start", *piece}, {"end", *piece + 1}}});
  }
  SpaceBuilder b;
  Operand whole = b.per_dim(self.shape());
  b.input(whole);
  // A slice of the full dim changes nothing.
  if (length != self.size(dim) || step != 1) {
    b.block(whole.dims[index(dim)], "it is sliced", FactorKind::kWindowed);
    whole.dims[index(dim)] =
        b.blocked(length, "it is sliced", FactorKind::kWindowed);
  }
  Dims strides = self.strides();
  strides[index(dim)] = multiply_sizes(strides[index(dim)], step);
  b.output(std::move(whole), {.strides = std::move(strides)});
  return b.bound();
}

BoundForm bind_narrow(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  require(call.overload() == "default" && self.rank() > 0, "nothing to narrow");
  const int dim = call.dim("dim", self.rank());
  const std::int64_t length = call.integer("length");
  require(length >= 0 && length <= self.size(dim), "a length is out of range");
  const std::int64_t start = call.integer("start");
  require(start >= -self.size(dim) &&
              (start < 0 ? start + self.size(dim) : start) <=
                  self.size(dim) - length,
          "it reaches beyond the dim");
  if (const auto piece = piece_of_slice(self.size(dim), length, start, 1)) {
    return bind_piece(call, dim, length, {{{"start", *piece}, {"length", 1}}});
  }
  SpaceBuilder b;
  Operand whole = b.per_dim(self.shape());
  b.input(whole);
  b.block(whole.dims[index(dim)], "it is sliced", FactorKind::kWindowed);
  whole.dims[index(dim)] =
      b.blocked(length, "it is sliced", FactorKind::kWindowed);
  b.output(std::move(whole), {.strides = self.strides()});
  return b.bound();
}

Dims strides_without(const TensorMeta& self, int dim) {
  Dims strides = self.strides();
  strides.erase(strides.begin() + dim);
  return strides;
}

BoundForm bind_select(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  require(call.overload() == "int" && self.rank() > 0,
          "nothing to select from");
  const int dim = call.dim("dim", self.rank());
  const std::int64_t at = call.integer("index");
  require(at >= -self.size(dim) && at < self.size(dim),
          "an index is out of range");
  SpaceBuilder b;
  Operand whole = b.per_dim(self.shape());
  b.block(whole.dims[index(dim)], "one place of it is selected",
          FactorKind::kWindowed);
  b.input(whole);
  whole.dims.erase(whole.dims.begin() + dim);
  b.output(std::move(whole), {.strides = strides_without(self, dim)});
  return b.bound();
}

BoundForm bind_unbind(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  require(call.overload() == "int" && self.rank() > 0, "nothing to unbind");
  const int dim = call.dim("dim", self.rank());
  require(self.size(dim) <= kMostResults, "too many pieces");
  SpaceBuilder b;
  Operand whole = b.per_dim(self.shape());
  b.block(whole.dims[index(dim)], "it is cut up", FactorKind::kSegmented);
  b.input(whole);
  whole.dims.erase(whole.dims.begin() + dim);
  for (std::int64_t i = 0; i < self.size(dim); ++i) {
    b.output(whole, {.strides = strides_without(self, dim)});
  }
  return b.bound();
}

// PyTorch accepts an empty vector in a cat with tensors of any shape, for
// backward compatibility.
bool is_skipped(const Dims& shape) {
  return shape.size() == 1 && shape[0] == 0;
}

// `Piece` is one tensor of a cat.
struct Piece {
  Dims shape;
  std::vector<int> own;  // the tensor's own dims; kNewDim: inserted
};

std::vector<Piece> pieces_of(const std::vector<TensorMeta>& tensors,
                             const LiftOf& lift) {
  std::vector<Piece> pieces;
  for (const TensorMeta& tensor : tensors) {
    Piece piece;
    piece.own = lift(tensor.rank());
    for (const int dim : piece.own) {
      piece.shape.push_back(dim == kNewDim ? 1 : tensor.size(dim));
    }
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

// Returns the factors of the tensor's own dims.
Operand own_dims(const Operand& lifted, const Piece& piece, int rank) {
  Operand own = SpaceBuilder::whole(rank);
  for (std::size_t d = 0; d < piece.own.size(); ++d) {
    if (piece.own[d] != kNewDim) {
      own.dims[index(piece.own[d])] = lifted.dims[d];
    }
  }
  return own;
}

BoundForm bind_cat(const OpCall& call, const LiftOf& lift, const DimOf& along) {
  const std::vector<TensorMeta> tensors = call.tensors("tensors");
  const std::vector<std::size_t> places = call.op().tensor_list_arg("tensors");
  require(!tensors.empty(), "nothing to join");
  const std::vector<Piece> pieces = pieces_of(tensors, lift);
  const auto first = std::find_if_not(
      pieces.begin(), pieces.end(),
      [](const Piece& each) { return is_skipped(each.shape); });
  SpaceBuilder b;
  if (first == pieces.end()) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      b.input(SpaceBuilder::whole(1));
    }
    b.output(SpaceBuilder::whole(1), {.shape = Dims{0}});
    return b.bound();
  }
  const Dims& like = first->shape;
  require(!like.empty(), "scalars cannot be joined");
  const int dim = along(call, static_cast<int>(like.size()));
  Dims rest = like;
  rest[index(dim)] = 1;
  const Operand whole = b.per_dim(rest);
  std::int64_t total = 0;
  // A tensor without elements along the dim adds no elements.
  const auto adds = [&](const Piece& piece) {
    return piece.shape.size() == like.size() && piece.shape[index(dim)] > 0;
  };
  const bool lone = tensors.size() == 1 ||
                    std::count_if(pieces.begin(), pieces.end(), adds) == 1;
  Operand joined = whole;
  SegmentDims segments(b, "it is joined");
  std::vector<std::int64_t> sizes;
  for (const Piece& piece : pieces) {
    sizes.push_back(piece.shape.size() == like.size() ? piece.shape[index(dim)]
                                                      : 0);
  }
  const bool are_equal = are_shardable_pieces(sizes);
  if (are_equal) {
    joined.dims[index(dim)] = b.blocked(static_cast<std::int64_t>(sizes.size()),
                                        "it is joined", FactorKind::kSegmented);
  }
  const DimFactors shared = are_equal ? b.dim(sizes.front()) : DimFactors{};
  if (are_equal) {
    for (const FactorId factor : shared) {
      joined.dims[index(dim)].push_back(factor);
    }
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Piece& piece = pieces[i];
    if (is_skipped(piece.shape) && like.size() != 1) {
      b.input(SpaceBuilder::whole(1));
      continue;
    }
    at_operand(places[i], [&] {
      require(piece.shape.size() == like.size(), "the ranks differ");
      for (std::size_t d = 0; d < like.size(); ++d) {
        require(static_cast<int>(d) == dim || piece.shape[d] == like[d],
                "sizes differ outside the dim that is joined");
      }
    });
    const std::int64_t size = piece.shape[index(dim)];
    total = add_sizes(total, size);
    Operand operand = whole;
    const bool is_all = lone && (adds(piece) || tensors.size() == 1);
    operand.dims[index(dim)] = are_equal ? shared
                               : is_all  ? b.dim(size)
                                         : segments.of(size);
    if (is_all) joined.dims[index(dim)] = operand.dims[index(dim)];
    b.input(own_dims(operand, piece, tensors[i].rank()));
  }
  if (!lone && !are_equal) {
    joined.dims[index(dim)] =
        b.blocked(total, "it is joined", FactorKind::kSegmented);
  }
  b.output(std::move(joined));
  return b.bound();
}

BoundForm bind_stack(const OpCall& call) {
  const std::vector<TensorMeta> tensors = call.tensors("tensors");
  require(!tensors.empty(), "nothing to stack");
  SpaceBuilder b;
  Operand whole = b.per_dim(tensors.front().shape());
  for (const TensorMeta& tensor : tensors) {
    require(tensor.shape() == tensors.front().shape(), "the shapes differ");
    b.input(whole);
  }
  const int dim = call.dim("dim", tensors.front().rank() + 1);
  whole.dims.insert(whole.dims.begin() + dim,
                    b.blocked(static_cast<std::int64_t>(tensors.size()),
                              "it is joined", FactorKind::kSegmented));
  b.output(std::move(whole));
  return b.bound();
}

// Binds self with a region overwritten. `region` is the required shape of src.
// It has dim `dim` with the written size, or lacks it. The region may be one of
// several equal pieces of the dim.
BoundForm bind_written(const OpCall& call, int dim, const Dims& region,
                       std::optional<std::int64_t> piece = {}) {
  const TensorMeta& self = call.tensor("self");
  const TensorMeta& src = call.tensor("src");
  require(src.shape() == region,
          "the source does not have the shape of what is written");
  SpaceBuilder b;
  Dims apart = self.shape();
  if (piece) apart[index(dim)] = 1;
  Operand whole = b.per_dim(apart);
  Operand source = whole;
  if (piece) {
    WrittenPiece written =
        written_piece(b, self.size(dim), src.size(dim), *piece,
                      RankScalar::input_size(1, dim));
    whole.dims[index(dim)] = std::move(written.whole);
    source.dims[index(dim)] = std::move(written.own);
  } else if (src.rank() == self.rank()) {
    if (src.size(dim) != self.size(dim)) {
      b.block(whole.dims[index(dim)], "a part of it is written",
              FactorKind::kWindowed);
      if (src.size(dim) > 0) {
        cut_by_program(b.space, whole.dims[index(dim)]);
      }
      source.dims[index(dim)] = b.blocked(
          src.size(dim), "it is written to a part", FactorKind::kWindowed);
    }
  } else {
    b.block(whole.dims[index(dim)], "one place of it is written",
            FactorKind::kWindowed);
    cut_by_program(b.space, whole.dims[index(dim)]);
    source.dims.erase(source.dims.begin() + dim);
  }
  b.input(whole);
  b.input(std::move(source));
  b.output(whole, {.strides = strides_to_write(self)});
  return b.bound();
}

BoundForm bind_slice_scatter(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  require(self.rank() > 0, "a scalar cannot be sliced");
  const int dim = call.dim("dim", self.rank());
  Dims region = self.shape();
  region[index(dim)] =
      slice_length(self.size(dim), call.op().int_arg("start"),
                   call.op().int_arg("end"), call.integer("step"));
  return bind_written(
      call, dim, region,
      piece_of_slice(self.size(dim), region[index(dim)],
                     call.op().int_arg("start"), call.integer("step")));
}

BoundForm bind_select_scatter(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  require(self.rank() > 0, "a scalar has nothing to select");
  const int dim = call.dim("dim", self.rank());
  const std::int64_t at = call.integer("index");
  require(at >= -self.size(dim) && at < self.size(dim),
          "an index is out of range");
  Dims region = self.shape();
  region.erase(region.begin() + dim);
  return bind_written(call, dim, region);
}

std::vector<int> as_it_is(int rank) {
  std::vector<int> dims(index(rank));
  std::iota(dims.begin(), dims.end(), 0);
  return dims;
}

}  // namespace

OpDefinition sliced() { return form("slice(dim)").passes().free(); }
OpDefinition narrowed() { return form("narrow(dim)").passes().free(); }
OpDefinition selected() { return form("select(dim)").passes().free(); }
OpDefinition unbound() { return form("unbind(dim)").passes().free(); }
OpDefinition joined(std::string_view word) {
  return form(word).passes({"tensors"});
}
OpDefinition cat_form(std::string text, LiftOf lift, DimOf along) {
  return shared_form(
      std::move(text),
      [lift = std::move(lift), along = std::move(along)](const OpCall& call) {
        return bind_cat(call, lift, along);
      });
}
OpDefinition stacked() { return form("stack(dim)").passes({"tensors"}); }
OpDefinition slice_written() {
  return form("slice_written(dim)").passes({"self", "src"});
}
OpDefinition selection_written() {
  return form("selection_written(dim)").passes({"self", "src"});
}

void words_of_segments(RuleWords& words) {
  words.form(shared_form("slice(dim)", bind_slice));
  words.form(shared_form("narrow(dim)", bind_narrow));
  words.form(shared_form("select(dim)", bind_select));
  words.form(shared_form("unbind(dim)", bind_unbind));
  words.form(cat_form("cat(dim)", as_it_is, [](const OpCall& call, int rank) {
    return call.dim("dim", rank);
  }));
  words.form(shared_form("stack(dim)", bind_stack));
  words.form(shared_form("slice_written(dim)", bind_slice_scatter));
  words.form(shared_form("selection_written(dim)", bind_select_scatter));
}

}  // namespace shardprop
