// Attention that drops weights, with the weights at hand: kernels draw inside
// by an order of their own, which ranks that hold a part cannot follow. The
// gradient draws again what the forward drew: nothing is kept.
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
  // `draws`: of the forward. Operands in the order of the node's.
  DrawnAttention(ProgramBuilder& build, const Node& node,
                 const PlannedNode& planned,
                 const std::vector<ProgramValueId>& inputs, Draws draws);

  // The node's outputs, of a forward or a gradient. Error: kNotLowered, where
  // heads share keys, or operands are laid out as the kernels' strategies do not.
  Result<std::vector<ProgramValueId>> run(bool is_backward);

 private:
  using Id = ProgramValueId;
  // Of a value: [batch, heads, rows, columns].
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
  // The bias has fewer elements: where it is repeated, gradients add up.
  Id summed_to_bias(Id gradient, std::size_t output);

  // An output of the node: cast, under its own name.
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
