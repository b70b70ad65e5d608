// Operators that PyTorch writes in terms of others, and that a program exported
// as it is leaves standing.

#include "ops/definitions/dtypes.h"
#include "ops/definitions/families.h"
#include "ops/forms/mapped.h"

#include <algorithm>
#include <string>

namespace shardprop {
namespace {

// --- Sequences of different lengths, side by side ---

std::string pad_sequence_notation(const OpCall& call) {
  const auto sequences = call.tensors("sequences");
  require(!sequences.empty() && sequences[0].rank() > 0,
          "no sequences are given");
  for (const TensorMeta& sequence : sequences) {
    require(sequence.rank() == sequences[0].rank(),
            "the sequences are of several ranks");
  }
  const std::string rest = dims_notation(sequences[0].rank(), {0}).substr(3);
  return "_" + rest + (call.boolean("batch_first") ? "->[Z][T]" : "->[T][Z]") +
         rest;
}

std::int64_t pad_sequence_size(const OpCall& call, char letter) {
  const auto sequences = call.tensors("sequences");
  if (letter == 'Z') return static_cast<std::int64_t>(sequences.size());
  std::int64_t longest = 0;
  for (const TensorMeta& sequence : sequences) {
    longest = std::max(longest, sequence.size(0));
  }
  return longest;
}

// --- A sum to a shape that broadcasts to that of the operand ---

std::string summed_notation(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  const Dims shape = dims_of(call.integers("size"));
  require(shape.size() <= self.shape().size(),
          "the size has more dims than the tensor");
  const std::string own = dims_notation(self.rank(), {});
  const std::size_t added = self.shape().size() - shape.size();
  std::string out;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const std::int64_t size = self.shape()[added + d];
    require(shape[d] == size || shape[d] == 1,
            "the size does not broadcast to that of the tensor");
    out += shape[d] == size ? own[added + d] : '_';
  }
  return own + "->" + out;
}

std::int64_t one(const OpCall&, char) { return 1; }

// To no dims it is summed, even if there are none.
bool is_summed(const OpCall& call) {
  const Dims shape = dims_of(call.integers("size"));
  return shape.empty() || shape != call.tensor("self").shape();
}

DType of_summed(const OpCall& call, std::size_t) {
  const DType own = call.first().dtype();
  return is_summed(call) && counts(own) ? DType::kI64 : own;
}

void summed_dims(const OpCall& call, IndexSpace& space) {
  space.is_free = !is_summed(call);
  for (std::size_t f = 0; f < space.factors.size(); ++f) {
    if (space.outputs[0].holds(static_cast<int>(f))) continue;
    space.outputs_without[0][f] = Without::partial(ReduceOp::kSum);
    // What is of the size already is not summed, and stays as narrow.
    if (counts(call.first().dtype())) {
      space.factors[f].kind = FactorKind::kBlocked;
      space.factors[f].reason = "sums of integers are wider";
    }
  }
}

// --- Differences between neighbours, a result for each dim ---

BoundForm bind_gradient(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  const std::vector<int> dims = call.dims("dim", self.rank());
  SpaceBuilder b;
  const Operand whole = b.per_dim(self.shape());
  for (const int dim : dims) {
    b.block(whole.dims[index(dim)], "differences run over it",
            FactorKind::kWindowed);
  }
  for (const TensorMeta& meta : call.op().inputs) {
    b.input(&meta == &self ? whole : SpaceBuilder::whole(meta.rank()));
  }
  for (std::size_t i = 0; i < dims.size(); ++i) b.output(whole);
  return b.bound();
}

// --- A slice that begins where a tensor says ---

std::string narrowed_notation(const OpCall& call) {
  const int rank = call.tensor("self").rank();
  require(rank > 0, "a scalar has no part");
  const int dim = call.dim("dim", rank);
  const std::string dims = dims_notation(rank, {dim});
  std::string out = dims;
  out[out.find('[') + 1] = 'Z';
  return dims + ",*->" + out;
}

std::int64_t narrowed_size(const OpCall& call, char) {
  return call.integer("length");
}

Dims narrowed_strides(const OpCall& call, const Dims&, DType) {
  return call.tensor("self").strides();
}

}  // namespace

void define_composites(Family f) {
  f.add("pad_sequence",
        mapped("pad_sequence()", pad_sequence_notation, pad_sequence_size));
  f.add("sum_to_size",
        mapped("sum_to_size()", summed_notation, one)
            .typed(of_summed)
            .strided([](const OpCall& call, const Dims& shape, DType dtype) {
              return is_summed(call) ? make_meta(shape, dtype).strides()
                                     : call.first().strides();
            })
            .refine("", summed_dims)
            .linear_in("self")
            .local_shape("size"));
  f.add("gradient",
        custom("gradient(dim)", bind_gradient).floating().linear_in("self"));
  f.add("narrow.Tensor", mapped("narrow(dim)", narrowed_notation, narrowed_size)
                             .strided(narrowed_strides)
                             .passes({"self"})
                             .free());
  f.add({"fake_quantize_per_tensor_affine_cachemask_backward",
         "fake_quantize_per_channel_affine_cachemask_backward"},
        pointwise()
            .typed([](const OpCall& call, std::size_t) {
              require(
                  call.tensor("grad").shape() == call.tensor("mask").shape(),
                  "the mask does not have the shape of the gradient");
              return call.tensor("grad").dtype();
            })
            .linear_in("grad"));
}

}  // namespace shardprop
