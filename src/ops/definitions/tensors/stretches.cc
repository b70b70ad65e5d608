// This file defines operators on ranges of one dim: differences of neighbours,
// halves, runs, repeats, and norms of slices.

#include "ops/definitions/dtypes.h"
#include "ops/definitions/families.h"
#include "ops/definitions/words.h"
#include "ops/forms/indices.h"
#include "ops/forms/mapped.h"

#include <algorithm>
#include <string>
#include <string_view>

namespace shardprop {
namespace {

// segment_reduce reduces the rows of dim `axis` in runs of given lengths, or
// between given offsets. The dims before it have runs of their own.
Notation segments_notation(const OpCall& call) {
  const TensorMeta& data = call.tensor("data");
  require(data.rank() > 0, "the data has no dim for segments");
  require(is_floating(data.dtype()), "the data is not of floats");
  require(!call.has("indices") || call.optional_tensor("indices") == nullptr,
          "segments by indices are not supported");
  const TensorMeta* lengths = call.optional_tensor("lengths");
  const TensorMeta* offsets = call.optional_tensor("offsets");
  const TensorMeta* by = offsets != nullptr ? offsets : lengths;
  require(by != nullptr, "neither lengths nor offsets are given");
  const int axis = call.dim("axis", data.rank());
  for (const TensorMeta* one : {lengths, offsets}) {
    require(one == nullptr ||
                (one->rank() == axis + 1 &&
                 (one->dtype() == DType::kI32 || one->dtype() == DType::kI64)),
            "lengths and offsets are integers whose last dim is the axis");
  }
  Term before;
  Term after;
  for (int d = 0; d < data.rank(); ++d) {
    if (d != axis) (d < axis ? before : after).add(FactorName::of_dim(d));
  }
  // The dims before the axis, then `name`, then the dims after it.
  const auto beside = [&](FactorName name) {
    return Term(before).add(name, DimUse::kFull);
  };
  const auto around = [&](FactorName name) {
    Term term = beside(name);
    term.dims.insert(term.dims.end(), after.dims.begin(), after.dims.end());
    return term;
  };
  const Term rows = around('X');
  const Term runs = around('Y');
  if (call.has("grad")) {
    return {{runs, runs, rows, beside('V'), beside('W')}, {rows}, {}, {}};
  }
  return {{rows, beside('V'), Term().full({'U'}), beside('W')}, {runs}, {}, {}};
}

std::int64_t segments_size(const OpCall& call, const FactorName&) {
  const TensorMeta* offsets = call.optional_tensor("offsets");
  if (offsets != nullptr) {
    return std::max<std::int64_t>(size_of(*offsets, offsets->rank() - 1) - 1,
                                  0);
  }
  const TensorMeta& lengths = call.tensor("lengths");
  return size_of(lengths, lengths.rank() - 1);
}

// diff subtracts neighbours n times, after `prepend` and `append` are
// concatenated.
Notation diff_notation(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  require(self.rank() > 0, "a scalar has no differences");
  const int dim = call.dim("dim", self.rank());
  const auto term = [&](FactorName name) {
    return term_with(self.rank(), dim, Term().full({name}));
  };
  return {{term('X'), term('Y'), term('Z')}, {term('W')}, {}, {}};
}

// `prepend` and `append` are concatenated in a new tensor, which is contiguous.
Dims diff_strides(const OpCall& call, const Dims& shape, DType dtype) {
  return call.optional_tensor("prepend") != nullptr ||
                 call.optional_tensor("append") != nullptr
             ? make_meta(shape, dtype).strides()
             : dense_like(call.tensor("self"), shape, dtype).strides();
}

std::int64_t diff_size(const OpCall& call, const FactorName&) {
  const TensorMeta& self = call.tensor("self");
  const int dim = call.dim("dim", self.rank());
  std::int64_t size = size_of(self, dim);
  for (const char* more : {"prepend", "append"}) {
    if (const TensorMeta* meta = call.optional_tensor(more)) {
      size = add_sizes(size, size_of(*meta, dim));
    }
  }
  return std::max<std::int64_t>(subtract_sizes(size, call.integer("n")), 0);
}

// glu multiplies the first half of a dim by the sigmoid of the second.
Notation glu_notation(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  require(self.rank() > 0, "a scalar has no halves");
  const int dim = call.dim("dim", self.rank());
  const Term all = term_with(self.rank(), dim, Term().full({'X'}));
  const Term half = term_with(self.rank(), dim, Term().full({'Y'}));
  if (call.has("grad_output")) return {{half, all}, {all}, {}, {}};
  return {{all}, {half}, {}, {}};
}

std::int64_t half_size(const OpCall& call, const FactorName&) {
  const TensorMeta& self = call.tensor("self");
  const std::int64_t size = size_of(self, call.dim("dim", self.rank()));
  require(size % 2 == 0, "the dim has no halves");
  return size / 2;
}

// The strides are those of a product of the two halves, which are views of the
// operand.
Dims glu_strides(const OpCall& call, const Dims& shape, DType dtype) {
  const TensorMeta half =
      make_meta(shape, call.tensor("self").strides(), dtype);
  return elementwise({&half, 1}, dtype).strides();
}

// renorm normalizes each slice of `dim` on its own.
Notation renorm_notation(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  const int dim = call.dim("dim", self.rank());
  Term term;
  for (int d = 0; d < self.rank(); ++d) {
    term.add(FactorName::of_dim(d),
             d == dim ? DimUse::kSharded : DimUse::kFull);
  }
  return {{term}, {term}, {}, {}};
}

// Every element is repeated `repeats` times in a row, so the dim consists of
// two factors.
BoundForm bind_repeated(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  const std::int64_t repeats = call.integer("repeats");
  require(repeats >= 0, "a negative count");
  SpaceBuilder b;
  Operand whole = b.per_dim(self.shape());
  b.input(whole);
  if (!call.op().int_arg("dim")) {
    Operand flat = SpaceBuilder::whole(1);
    for (const DimFactors& dim : whole.dims) {
      for (const FactorId id : dim) flat.dims[0].push_back(id);
    }
    for (const FactorId id : b.blocked(repeats, "it is repeated")) {
      flat.dims[0].push_back(id);
    }
    if (repeats == 0 || call.op().int_arg("output_size")) {
      b.block(flat.dims[0], "nothing is left of it, or how much is said");
    }
    b.output(std::move(flat),
             {.shape = Dims{multiply_sizes(self.numel(), repeats)}});
    return b.bound();
  }
  const int dim = call.dim("dim", self.rank());
  require(self.rank() > 0, "a scalar has no dim to repeat");
  for (const FactorId id : b.blocked(repeats, "it is repeated")) {
    whole.dims[index(dim)].push_back(id);
  }
  if (repeats == 0) b.block(whole.dims[index(dim)], "nothing is left of it");
  if (call.op().int_arg("output_size")) {
    b.block(whole.dims[index(dim)], "`output_size` is that of the whole");
  }
  Dims shape = self.shape();
  shape[index(dim)] = multiply_sizes(shape[index(dim)], repeats);
  b.output(std::move(whole), {.shape = std::move(shape)});
  return b.bound();
}

}  // namespace

void words_of_stretches(RuleWords& words) {
  words.form(custom("repeat_interleave()", bind_repeated));
  words.form(mapped("segments(axis)", segments_notation, segments_size));
  words.form(mapped("diff(dim)", diff_notation, diff_size));
  words.form(mapped("glu(dim)", glu_notation, half_size));
  words.form(mapped("glu_backward(dim)", glu_notation, half_size));
  words.form(mapped("renorm(dim)", renorm_notation));
  words.strides("diff", diff_strides);
  words.strides("glu", glu_strides);
}

void define_stretches(Family f) {
  // The kernel rejects lengths without any segment.
  f.add({"segment_reduce", "_segment_reduce_backward"},
        form("segments(axis)").nonempty());
  f.add("diff", form("diff(dim)").strided("diff"));
  f.add("glu", form("glu(dim)").strided("glu"));
  f.add("glu_backward", form("glu_backward(dim)").linear_in("grad_output"));
  f.add("renorm", form("renorm(dim)"));
  f.add("repeat_interleave.self_int",
        form("repeat_interleave()").passes({"self"}));
}

}  // namespace shardprop
