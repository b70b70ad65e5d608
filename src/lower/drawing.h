// `Drawing` lowers a random operator to operators on single elements:
// shardprop.random_bits and operators on integers and floats (element_ops.h).
#pragma once

#include <shardprop/ops/row_traits.h>
#include "lower/element_ops.h"
#include "lower/program_builder.h"

#include <shardprop/base/result.h>
#include <shardprop/graph/node.h>
#include <shardprop/plan/plan.h>

#include <cstdint>
#include <string>
#include <vector>

namespace shardprop::lowering {

class Drawing {
 public:
  Drawing(ProgramBuilder& build, const Node& node, const PlannedNode& planned,
          const std::vector<ProgramValueId>& inputs, ProgramValueId seed);

  // Returns the node's outputs, sampled from `distribution`. Error:
  // kNotLowered.
  Result<std::vector<ProgramValueId>> run(Distribution distribution);

 private:
  using Id = ProgramValueId;

  Id normal(DType dtype);
  Id exponential(DType dtype);
  Id cauchy(DType dtype);
  Id geometric(DType dtype);
  Id integers(std::int64_t low, std::int64_t high);

  // Returns the dtype in which floats are sampled for an output of `dtype`.
  static DType drawn_in(DType dtype);
  Id operand(std::size_t i) const { return inputs_[i]; }
  double number(const char* name, double fallback) const;
  // `dtype` is the dtype of the first output; `finish` casts a value to it and
  // gives it the name of the output.
  DType dtype() const { return node_.op.outputs[0].dtype(); }
  Id finish(Id value);

  Result<std::vector<Id>> dropout();
  Result<std::vector<Id>> special_dropout(bool by_feature, bool alpha);
  ElementOps by_channel() const;
  std::vector<Id> untouched(bool has_mask);
  Id uniform(DType dtype);
  Id bernoulli(DType dtype);
  Result<std::vector<Id>> whole_numbers();
  Result<std::vector<Id>> refuse(const std::string& why) const;
  Id shifted(Id normal);  // by mean and std, tensors or numbers, if given
  Result<std::vector<Id>> permutation();

  ProgramBuilder& build_;
  const Node& node_;
  const PlannedNode& planned_;
  const std::vector<ProgramValueId>& inputs_;
  Draws draws_;
  ElementOps ops_;  // like the first output
};

}  // namespace shardprop::lowering
