// `DrawnAttention` lowers attention with dropout and computes the weights
// explicitly. Fused kernels sample in an order of their own, which ranks with a
// shard cannot reproduce. The gradient samples the same numbers again, so the
// forward stores no mask.
//
//   scores = scale * query key^T + bias, -inf where the mask is causal
//   out    = (softmax(scores) * kept / (1 - p)) value
#pragma once

#include "lower/element_ops.h"
#include "lower/program_builder.h"

#include <shardprop/base/result.h>
#include <shardprop/graph/node.h>
#include <shardprop/plan/plan.h>

#include <string>
#include <string_view>
#include <vector>

namespace shardprop::lowering {

class DrawnAttention {
 public:
  // `draws` are the random numbers of the forward. `inputs` has the order of
  // the node's operands.
  DrawnAttention(ProgramBuilder& build, const Node& node,
                 const PlannedNode& planned,
                 const std::vector<ProgramValueId>& inputs, Draws draws);

  // Returns the node's outputs, of a forward or a gradient. Errors: kNotLowered
  // if heads share keys, or if the operands have layouts that no strategy of
  // the fused kernels has.
  Result<std::vector<ProgramValueId>> run(bool is_backward);

 private:
  using Id = ProgramValueId;
  // The shape [batch, heads, rows, columns] and the layout of a value.
  struct Like {
    Dims shape;
    Layout layout;
  };

  Result<void> check() const;
  std::vector<Id> forward();
  std::vector<Id> backward();

  Id operand(std::string_view name) const;  // invalid: not given
  Id in_full(std::string_view name);        // as wide as what is computed in
  Like like(Id value) const;
  Like points() const;  // of the scores
  Id op(const char* name, const Like& like, ProgramArguments args);
  Id transposed(Id value);
  Id product(Id a, Id b, const Layout& layout);
  Id summed(Id value, const Like& like);

  Id scores();
  Id weights(Id scores, Id logs);
  Id log_sums(Id scores);
  Id kept();  // 1 / (1 - p) or 0
  // The bias may be broadcast; its gradient sums over the broadcast dims.
  Id summed_to_bias(Id gradient, std::size_t output);

  // Casts a value to an output of the node and gives it the output's name.
  Id finish(Id value, std::size_t output);
  Id log_output(Id logs, std::size_t output);
  Id zeros(std::size_t output);  // of a generator's state, which nobody reads

  ProgramBuilder& build_;
  const Node& node_;
  const PlannedNode& planned_;
  const std::vector<ProgramValueId>& inputs_;
  Draws draws_;
  DType dtype_;
  double drop_ = 0;
  double scale_ = 1;
};

}  // namespace shardprop::lowering
