// `ElementOps` adds pointwise operators on values of one shape and layout, and
// samples random numbers for their elements.
//
//   rand f32[8] S(0):
//     %0 i64[8] S(0) = shardprop.random_bits(seed, node=3, word=0)
//     %1 i64[8] S(0) = aten.bitwise_right_shift.Tensor_Scalar(%0, 8)
//     %2 f32[8] S(0) = aten._to_copy.default(%1, dtype=f32)
//     rand = aten.mul.Scalar(%2, 2^-24)
#pragma once

#include "lower/program_builder.h"

#include <cstdint>
#include <string>

namespace shardprop::lowering {

// The random numbers of a node: the program's seed and the number of the node.
struct Draws {
  ProgramValueId seed;
  std::int64_t node = 0;
};

class ElementOps {
 public:
  using Id = ProgramValueId;

  // `name` is the name of the values that the operators produce.
  ElementOps(ProgramBuilder& build, std::string name, Dims shape, Layout layout)
      : build_(build),
        name_(std::move(name)),
        shape_(std::move(shape)),
        layout_(std::move(layout)) {}

  Id op(const char* name, DType dtype, ProgramArguments args);
  Id scalar_op(const char* name, Id self, double other);
  Id int_op(const char* name, Id self, std::int64_t other);
  Id cast(Id value, DType dtype);

  // Returns 32 random bits per element, as i64.
  Id bits(const Draws& draws, int word);
  // `uniform` samples from [0, 1), with all the bits that the dtype can hold.
  // `positive_uniform` samples from (0, 1].
  Id uniform(const Draws& draws, DType dtype, int word);
  Id positive_uniform(const Draws& draws, DType dtype, int word);

 private:
  ProgramBuilder& build_;
  std::string name_;
  Dims shape_;
  Layout layout_;
};

}  // namespace shardprop::lowering
