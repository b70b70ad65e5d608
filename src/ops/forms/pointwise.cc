// This file has the forms of pointwise operators, and of the factories and
// reductions that resemble them.

#include "ops/forms/forms.h"
#include "ops/forms/shared_form.h"
#include "ops/rules/rule_words.h"

#include <algorithm>

namespace shardprop {
namespace {

BoundForm bind_pointwise(const OpCall& call, int results) {
  const std::vector<TensorMeta>& inputs = call.op().inputs;
  require(!inputs.empty(), "no operand is a tensor");
  const Dims shape = broadcast(inputs);
  SpaceBuilder b;
  const Operand whole = b.per_dim(shape);
  for (const TensorMeta& input : inputs) {
    b.input(b.aligned(whole, input.shape()));
  }
  for (int i = 0; i < results; ++i) b.output(whole);
  return b.bound();
}

BoundForm bind_into(const OpCall& call, const std::string& argument) {
  const TensorMeta& self = call.tensor(argument);
  SpaceBuilder b;
  const Operand whole = b.per_dim(self.shape());
  for (const TensorMeta& input : call.op().inputs) {
    require(broadcast(self.shape(), input.shape()) == self.shape(), [&] {
      return "an operand does not broadcast into `" + argument + "`";
    });
    b.input(b.aligned(whole, input.shape()));
  }
  b.output(whole, {.dtype = self.dtype()});
  return b.bound();
}

BoundForm bind_with_channels(const OpCall& call, const std::string& argument) {
  const TensorMeta& first = call.first();
  const TensorMeta& vector = call.tensor(argument);
  SpaceBuilder b;
  const Operand whole = b.per_dim(first.shape());
  const int channel = first.rank() > 1 ? 1 : 0;
  const bool is_one = vector.numel() == 1;
  require(vector.rank() <= 1 &&
              (is_one ||
               (first.rank() > 1 && vector.size(0) == first.size(channel))),
          [&] {
            return "`" + argument + "` does not have one element per channel";
          });
  b.input(whole);
  b.input(is_one ? SpaceBuilder::whole(vector.rank())
                 : Operand{{whole.dims[index(channel)]}});
  b.output(whole);
  return b.bound();
}

BoundForm bind_same_shape(const OpCall& call, int results) {
  const TensorMeta& first = call.first();
  SpaceBuilder b;
  const Operand whole = b.per_dim(first.shape());
  for (const TensorMeta& input : call.op().inputs) {
    b.input(input.shape() == first.shape() ? whole
                                           : SpaceBuilder::whole(input.rank()));
  }
  for (int i = 0; i < results; ++i) b.output(whole);
  return b.bound();
}

BoundForm bind_reduction(const OpCall& call, std::optional<ReduceOp> reduce,
                         int results) {
  const TensorMeta& self = call.first();
  const std::string_view named = call.has("dims") ? "dims" : "dim";
  std::vector<int> dims = call.dims(named, self.rank());
  // An empty list of dims reduces no dim in any.dims, all.dims and the
  // operators of prims.
  if (call.overload() == "dims" || named == "dims") {
    const auto given = call.op().ints_arg(named);
    if (given && given->empty()) dims.clear();
  }
  const bool keepdim = call.boolean_or("keepdim", false);
  SpaceBuilder b;
  const Operand whole = b.per_dim(self.shape());
  for (const TensorMeta& input : call.op().inputs) {
    b.input(b.aligned(whole, input.shape()));
  }
  std::vector<bool> gone(self.shape().size(), false);
  for (const int dim : dims) gone[index(dim)] = true;
  Operand output;
  DimFactors reduced;
  for (std::size_t i = 0; i < gone.size(); ++i) {
    if (!gone[i]) {
      output.dims.push_back(whole.dims[i]);
      continue;
    }
    if (keepdim) output.dims.emplace_back();
    for (const FactorId id : whole.dims[i]) reduced.push_back(id);
  }
  for (int i = 0; i < results; ++i) b.output(output);
  if (!reduce) {
    b.block(reduced, "`dim` of " + call.op().name() + " runs over it");
  }
  for (int i = 0; reduce && i < results; ++i) {
    b.without(i, reduced, Without::partial(*reduce));
  }
  return b.bound();
}

// Sums and averages are linear; each other reduction commutes with itself.
void reduction_linearities(const OpCall& call, IndexSpace& space,
                           ReduceOp reduce) {
  const bool linear = reduce == ReduceOp::kSum || reduce == ReduceOp::kAvg;
  for (const ReduceOp kind : kAllReduceOps) {
    const bool passes = linear
                            ? kind == ReduceOp::kSum || kind == ReduceOp::kAvg
                            : kind == reduce;
    if (passes) add_single_linearity(call, space, 0, kind, kind);
  }
}

// A tensor that gives only the dtype is never read. Its dims share the factors
// of result dims of the same size; other dims have factors of their own.
BoundForm bind_factory(const OpCall& call, const std::string& argument) {
  SpaceBuilder b;
  const std::vector<std::int64_t> sizes =
      argument.empty() ? std::vector<std::int64_t>{} : call.integers(argument);
  for (const std::int64_t size : sizes) {
    require(size >= 0, "a size is negative");
  }
  const Operand made = b.per_dim(dims_of(sizes));
  std::vector<DimFactors> own;
  for (const TensorMeta& input : call.op().inputs) {
    Operand read;
    for (int d = 0; d < input.rank(); ++d) {
      const bool alike = index(input.rank()) == sizes.size() &&
                         input.size(d) == sizes[index(d)];
      read.dims.push_back(alike ? made.dims[index(d)] : b.dim(input.size(d)));
      if (!alike) own.push_back(read.dims.back());
    }
    b.input(std::move(read));
  }
  b.output(made);
  for (const DimFactors& dim : own) b.without(0, dim, Without::same());
  return b.bound();
}

BoundForm bind_made(const OpCall& call, const Dims& shape) {
  SpaceBuilder b;
  // Bounds may be tensors of one number.
  for (const TensorMeta& meta : call.op().inputs) {
    require(meta.rank() == 0, "a bound is not a number");
    b.input({});
  }
  for (const std::int64_t size : shape) {
    require(size >= 0, "a size is negative");
  }
  b.output(b.per_dim(shape));
  return b.bound();
}

// If not all elements are needed, all operands are sharded in the same way.
BoundForm bind_number(const OpCall& call, bool needs_all) {
  SpaceBuilder b;
  for (const TensorMeta& meta : call.op().inputs) {
    if (!needs_all && !b.space.inputs.empty()) {
      b.input(b.space.inputs.front());
      continue;
    }
    const Operand own = b.per_dim(meta.shape());
    for (const DimFactors& dim : own.dims) {
      if (needs_all) b.block(dim, "the result is a number, not a tensor");
    }
    b.input(own);
  }
  return b.bound();
}

}  // namespace

OpDefinition number(std::string name, std::function<void(const OpCall&)> check,
                    std::function<bool(const OpCall&)> needs_all) {
  return shared_form(std::move(name),
                     [check = std::move(check),
                      needs_all = std::move(needs_all)](const OpCall& call) {
                       if (check) check(call);
                       return bind_number(call, !needs_all || needs_all(call));
                     });
}

Dims dims_of(std::span<const std::int64_t> sizes) {
  return Dims(sizes.begin(), sizes.end());
}

OpDefinition pointwise(int results) {
  return with_implied_strides(
      shared_form("pointwise" + results_text({}, results),
                  [results](const OpCall& call) {
                    return bind_pointwise(call, results);
                  }),
      [](const OpCall& call, const Dims&, DType dtype) {
        return elementwise(call.op().inputs, dtype).strides();
      });
}

OpDefinition pointwise_into(std::string_view argument) {
  return with_implied_strides(
      shared_form("pointwise_into(" + std::string(argument) + ")",
                  [name = std::string(argument)](const OpCall& call) {
                    return bind_into(call, name);
                  }),
      [name = std::string(argument)](const OpCall& call, const Dims&, DType) {
        return call.tensor(name).strides();
      });
}

OpDefinition with_channels(std::string_view argument) {
  return with_implied_strides(
      shared_form("with_channels(" + std::string(argument) + ")",
                  [name = std::string(argument)](const OpCall& call) {
                    return bind_with_channels(call, name);
                  }),
      [](const OpCall& call, const Dims& shape, DType dtype) {
        return dense_like(call.first(), shape, dtype).strides();
      });
}

OpDefinition contiguous(OpDefinition row) {
  return std::move(row).contiguous();
}

OpDefinition same_shape(int results) {
  return shared_form(
      "same_shape" + results_text({}, results),
      [results](const OpCall& call) { return bind_same_shape(call, results); });
}

OpDefinition reduction(std::optional<ReduceOp> op, int results) {
  OpDefinition form =
      shared_form("reduction" + results_text(op ? to_string(*op) : "", results),
                  [op, results](const OpCall& call) {
                    return bind_reduction(call, op, results);
                  });
  if (!op) return form;
  return with_implied(std::move(form),
                      [reduce = *op](const OpCall& call, IndexSpace& space) {
                        reduction_linearities(call, space, reduce);
                      });
}

OpDefinition factory(std::string_view shape_argument) {
  OpDefinition made = form("factory(" + std::string(shape_argument) + ")");
  if (shape_argument.empty()) return made;
  return std::move(made).local_shape(shape_argument);
}

OpDefinition vector_form(std::string text, LengthOf length) {
  return made_form(std::move(text),
                   [length = std::move(length)](const OpCall& call) {
                     return Dims{length(call)};
                   });
}

OpDefinition made_form(std::string text, ShapeOf shape) {
  return shared_form(std::move(text),
                     [shape = std::move(shape)](const OpCall& call) {
                       return bind_made(call, shape(call));
                     });
}

OpDefinition made_of_numbers(std::string_view word, std::string_view program) {
  return form(word).refine("made_in_parts()").per_rank(program);
}

void words_of_pointwise_forms(RuleWords& words) {
  for (const char* argument : {"", "size"}) {
    words.form(shared_form("factory(" + std::string(argument) + ")",
                           [name = std::string(argument)](const OpCall& call) {
                             return bind_factory(call, name);
                           }));
  }
  words.form(pointwise_into("self"));
  words.form(with_channels("weight"));
  words.modifier("made_in_parts()", [](const OpCall&, IndexSpace& space) {
    for (Factor& factor : space.factors) {
      factor.program = ProgramUse::kWhenSharded;
    }
  });
}

}  // namespace shardprop
