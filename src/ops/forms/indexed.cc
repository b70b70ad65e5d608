// Lookups and writes along one dim, by an index.

#include "ops/forms/forms.h"
#include "ops/forms/indices.h"
#include "ops/forms/shared_form.h"

#include <algorithm>

namespace shardprop {
namespace {

constexpr Without kSum = Without::partial(ReduceOp::kSum);

// --- gather and scatter: dims other than `dim` are alike where sizes agree ---

struct Dimwise {
  int dim = 0;
  Operand self;   // with `dim`
  Operand index;  // without it
};

Dimwise dimwise(SpaceBuilder& b, const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  const TensorMeta& looked = call.tensor("index");
  // Of an index without elements PyTorch asks no dtype.
  require(is_index(looked.dtype()) || looked.numel() == 0,
          "the index is not of integers");
  require(std::max(self.rank(), 1) == std::max(looked.rank(), 1) ||
              looked.numel() == 0,
          "the index has another rank");
  Dimwise out;
  out.dim = call.dim("dim", self.rank());
  out.self = SpaceBuilder::whole(self.rank());
  out.index = SpaceBuilder::whole(looked.rank());
  if (looked.rank() != self.rank()) {
    for (int d = 0; d < self.rank(); ++d) {
      out.self.dims[index(d)] =
          b.blocked(self.size(d), "the index has no such dim");
    }
    return out;
  }
  for (int d = 0; d < self.rank(); ++d) {
    if (d == out.dim) {
      out.self.dims[index(d)] = b.dim(self.size(d));
    } else if (self.size(d) == looked.size(d)) {
      out.self.dims[index(d)] = b.dim(self.size(d));
      out.index.dims[index(d)] = out.self.dims[index(d)];
    } else {
      require(looked.size(d) <= self.size(d), "the index is larger than self");
      out.self.dims[index(d)] =
          b.blocked(self.size(d), "the index covers a part of it");
    }
  }
  return out;
}

BoundForm bind_gather(const OpCall& call) {
  const TensorMeta& looked = call.tensor("index");
  require(call.overload() != "dimname", "named dims are not supported");
  SpaceBuilder b;
  Dimwise shared = dimwise(b, call);
  const bool scalar = shared.self.dims.empty();
  if (!scalar && looked.rank() > 0 &&
      looked.rank() == call.tensor("self").rank()) {
    shared.index.dims[index(shared.dim)] = b.dim(looked.size(shared.dim));
  }
  b.input(shared.self);
  b.input(shared.index);
  b.output(shared.index, {.shape = looked.shape()});
  if (!scalar) {
    const DimFactors& over = shared.self.dims[index(shared.dim)];
    if (is_index(looked.dtype())) look_up_by_program(b.space, over);
    b.without(0, over, kSum);
  }
  return b.bound();
}

// The words of a reduction, where there is one, and one dtype.
void check_scatter(const OpCall& call) {
  if (const TensorMeta* src =
          call.has("src") ? call.optional_tensor("src") : nullptr) {
    require(src->dtype() == call.tensor("self").dtype(),
            "self and the source are of two dtypes");
  }
  if (!call.has("reduce")) return;
  const std::string_view word = call.op().string_arg("reduce").value_or("");
  const bool scatters = call.base_name() == "scatter";
  const bool known = scatters
                         ? word == "add" || word == "multiply"
                         : word == "sum" || word == "prod" || word == "mean" ||
                               word == "amax" || word == "amin";
  require(known, scatters ? "`reduce` is not add or multiply"
                          : "`reduce` is not sum, prod, mean, amax or amin");
}

// Over a sharded dim, each row may name one element: then a comparison finds
// it without a scatter that would write out of bounds.
BoundForm bind_scatter(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  const TensorMeta& looked = call.tensor("index");
  check_scatter(call);
  SpaceBuilder b;
  const Dimwise shared = dimwise(b, call);
  const TensorMeta* src =
      call.has("src") ? call.optional_tensor("src") : nullptr;
  bool single = is_index(looked.dtype()) && looked.rank() == self.rank() &&
                self.rank() > 0 && looked.size(shared.dim) == 1 &&
                !call.op().function->argument_index("reduce");
  for (int d = 0; d < self.rank() && single; ++d) {
    // Every row must be named: a shorter index leaves rows untouched.
    single = d == shared.dim || looked.size(d) == self.size(d);
  }
  Operand source = shared.index;
  if (src != nullptr) {
    require(src->rank() == looked.rank() || looked.numel() == 0,
            "the source has another rank");
    source.dims.resize(index(src->rank()));
    for (int d = 0; d < src->rank() && src->rank() == looked.rank(); ++d) {
      require(src->size(d) >= looked.size(d),
              "the source is smaller than the index");
      if (src->size(d) == looked.size(d)) continue;
      // Of a longer source the first elements are taken: chunks would not
      // line up with those of the index.
      b.block(shared.index.dims[index(d)],
              "the source is longer than the index");
      source.dims[index(d)].clear();
      single = false;
    }
  }
  const auto arguments = call.op().function->arguments();
  for (const ArgumentSchema& argument : arguments) {
    if (!argument.is_tensor() || !call.has(argument.name)) continue;
    if (!call.op().tensor_arg(argument.name)) continue;
    b.input(argument.name == "self"    ? shared.self
            : argument.name == "index" ? shared.index
                                       : source);
  }
  b.output(shared.self, {.shape = self.shape()});
  if (self.rank() > 0 && looked.rank() == self.rank()) {
    const DimFactors& over = shared.self.dims[index(shared.dim)];
    if (single) {
      look_up_by_program(b.space, over);
    } else {
      b.block(over, "its rows are scattered to by several indices",
              FactorKind::kIndexed);
    }
  }
  return b.bound();
}

// --- One dim by a vector of indices ---

BoundForm bind_index_select(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  const TensorMeta& chosen = call.tensor("index");
  require(call.overload() == "default" && chosen.rank() <= 1 &&
              is_index(chosen.dtype()),
          "the index is not a vector of integers");
  SpaceBuilder b;
  Operand whole = b.per_dim(self.shape());
  const int dim = call.dim("dim", self.rank());
  b.input(whole);
  b.input(b.per_dim(chosen.shape()));
  if (self.rank() == 0) {
    b.output(std::move(whole));
    return b.bound();
  }
  const DimFactors over = whole.dims[index(dim)];
  look_up_by_program(b.space, over);
  whole.dims[index(dim)] =
      chosen.rank() == 1 ? b.space.inputs[1].dims[0] : DimFactors{};
  b.output(std::move(whole));
  b.without(0, over, kSum);
  return b.bound();
}

// self changed along `dim` where a vector of indices says.
BoundForm bind_index_written(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  const TensorMeta& chosen = call.tensor("index");
  require(chosen.rank() <= 1 && is_index(chosen.dtype()),
          "the index is not a vector of integers");
  if (const TensorMeta* value =
          call.has("value") ? call.optional_tensor("value") : nullptr) {
    require(value->rank() == 0, "`value` is not a scalar");
  }
  if (const TensorMeta* source =
          call.has("source") ? call.optional_tensor("source") : nullptr) {
    require(source->dtype() == self.dtype(),
            "self and the source are of two dtypes");
    const int dim = call.dim("dim", self.rank());
    const bool scalar = source->rank() == 0;
    require(scalar ? self.rank() <= 1 : source->rank() == self.rank(),
            "the source has another rank");
    for (int d = 0; d < source->rank(); ++d) {
      require(source->size(d) == (d == dim ? chosen.numel() : self.size(d)),
              "the source does not have the shape of what is written");
    }
    require(!scalar || chosen.numel() == 1, "there is one row to write");
  }
  SpaceBuilder b;
  const Operand whole = b.per_dim(self.shape());
  const int dim = call.dim("dim", self.rank());
  Operand source = whole;
  if (self.rank() > 0) {
    b.block(whole.dims[index(dim)], "it is written where indices say",
            FactorKind::kIndexed);
    source.dims[index(dim)].clear();
  }
  for (std::size_t i = 0; i < call.op().inputs.size(); ++i) {
    const TensorMeta& meta = call.op().inputs[i];
    const bool is_index_vector = i == call.operand("index");
    bool alike = !is_index_vector && meta.rank() == self.rank() && i > 0;
    for (int d = 0; d < self.rank() && alike; ++d) {
      alike = d == dim || meta.size(d) == self.size(d);
    }
    b.input(i == 0 ? whole : alike ? source : SpaceBuilder::whole(meta.rank()));
    const bool is_scalar = call.has("value") && meta.rank() == 0;
    if (i > 0 && !is_index_vector && !alike && !is_scalar) {
      for (const DimFactors& factors : whole.dims) {
        b.block(factors, "the source is of another shape");
      }
    }
  }
  b.output(whole);
  return b.bound();
}

}  // namespace

OpDefinition gathered() {
  return shared_form("gather(dim)", bind_gather)
      .passes({"self"})
      .refine("", below("index", size_along_dim));
}
OpDefinition scattered() {
  return shared_form("scatter(dim)", bind_scatter)
      .refine("", below("index", size_along_dim));
}
OpDefinition selected_along() {
  return shared_form("index_select(dim)", bind_index_select)
      .passes({"self"})
      .refine("", below("index", size_along_dim));
}
OpDefinition written_along() {
  return shared_form("index_written(dim)", bind_index_written)
      .refine("", below("index", size_along_dim));
}

}  // namespace shardprop
