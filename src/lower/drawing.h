// What a random operator draws, element by element: shardprop.random_bits and
// operators on integers and floats.
//
//   rand f32[8] S(0):
//     %0 i64[8] S(0) = shardprop.random_bits(seed, node=3, word=0)
//     %1 i64[8] S(0) = aten.bitwise_right_shift.Tensor_Scalar(%0, 8)
//     %2 f32[8] S(0) = aten._to_copy.default(%1, dtype=f32)
//     rand = aten.mul.Scalar(%2, 2^-24)
#pragma once

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

  // The node's outputs. Error: kNotLowered.
  Result<std::vector<ProgramValueId>> run();

 private:
  using Id = ProgramValueId;

  // A pointwise operator on values of the first output's shape and layout.
  Id op(const char* name, DType dtype, ProgramArguments args);
  Id scalar_op(const char* name, Id self, double other);
  Id int_op(const char* name, Id self, std::int64_t other);
  Id cast(Id value, DType dtype);
  Id bits(int word);
  // In [0, 1), with as many bits as the dtype holds; in (0, 1].
  Id uniform(DType dtype, int word);
  Id positive_uniform(DType dtype, int word);
  Id normal(DType dtype);
  Id exponential(DType dtype);
  Id integers(std::int64_t low, std::int64_t high);

  // In the dtype in which floats are drawn for an output of this one.
  static DType drawn_in(DType dtype);
  Id operand(std::size_t i) const { return inputs_[i]; }
  double number(const char* name, double fallback) const;
  // Of the first output: dtype and, at the end, its own name.
  DType dtype() const { return node_.op.outputs[0].dtype(); }
  Id finish(Id value);

  Result<std::vector<Id>> dropout();
  Result<std::vector<Id>> by_name(std::string_view name);
  Result<std::vector<Id>> refuse(const std::string& why) const;
  Id shifted(Id normal);  // normal.*: mean and std, tensors or numbers
  Result<std::vector<Id>> permutation();

  ProgramBuilder& build_;
  const Node& node_;
  const PlannedNode& planned_;
  const std::vector<ProgramValueId>& inputs_;
  ProgramValueId seed_;
};

}  // namespace shardprop::lowering
