// ShardingRule: how an operator may be sharded, as data.
//
// A rule is one line in factor notation; strategies, argument checks, the
// catalogue and the numeric proof all come from it:
//
//   {"aten.mm.default",       einsum("mk,kn->mn")},
//   {"aten.add.Tensor",       pointwise().additive()},
//   {"aten.exp.default",      pointwise().nondecreasing()},
//   {"aten.sum.dim_IntList",  reduction(ReduceOp::kSum)},
//   {"aten._softmax.default", pointwise().blocked("dim")},
//
// Notation of einsum(): one term per tensor operand; a letter is a factor, a
// dim; letters in parentheses make one dim, major first; `...` stands for
// leading dims aligned on the right, as in broadcasting. A letter missing from
// an output is summed: that output is P(sum) when the letter is sharded.
// A term with + in front is added to the product: `+n,mk,kn->mn`. Letters in
// square brackets are blocked: `b[s]`. A term per tensor argument that the
// operator declares; absent optional ones are passed over.
//
// Rules of one's own are values of this same type, added to a RuleBook.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/ops/op_schema.h>
#include <shardprop/strategy/factor_map.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {

class ShardingRule {
 public:
  using Instantiate = std::function<Result<FactorMap>(const OpSchema&)>;
  using Refine = std::function<void(const OpSchema&, FactorMap&)>;

  ShardingRule(std::string text, Instantiate instantiate);

  // The rule worked out for one application. Errors: kNoStrategy.
  Result<FactorMap> instantiate(const OpSchema& op) const;
  // The line it was made from: "mk,kn->mn", "pointwise().additive()".
  const std::string& text() const { return text_; }

  // Linearity and monotony: which partials pass through.

  // A signed sum of the tensor arguments: sums of all of them at once,
  // averages of any, and P(max|min) + R; a constant term takes P(sum) away.
  ShardingRule additive(std::vector<int> signs = {}) &&;
  ShardingRule linear_in(std::string_view argument) &&;  // that one alone
  ShardingRule multilinear() &&;    // each tensor argument alone
  ShardingRule nondecreasing() &&;  // P(max), P(min) kept, first argument
  ShardingRule nonincreasing() &&;  // P(max), P(min) swapped
  // minimum and maximum: distribute over both, keep their own in all.
  ShardingRule lattice(ReduceOp own) &&;
  // Every element of the result is one element of these arguments, moved or
  // selected: every partial passes, in all of them at once. No names: all.
  ShardingRule passes(std::vector<std::string> arguments = {}) &&;
  // The result does not depend on the values of its tensors, only on their
  // shape: partials go in, replicated values come out.
  ShardingRule ignores_values() &&;

  // The dims named by an integer (or list) argument cannot be sharded.
  ShardingRule blocked(std::string_view dim_argument) &&;
  // Marks the operator as drawing random numbers.
  ShardingRule random() &&;
  // Costs nothing to run.
  ShardingRule free() &&;
  // `argument` is the shape of output `output`: each rank passes its own.
  ShardingRule local_shape(std::string_view argument, int output = 0) &&;

  // Anything else, written `.name` in the text.
  ShardingRule refine(std::string name, Refine refine) &&;

 private:
  std::string text_;
  Instantiate instantiate_;
  std::vector<Refine> refinements_;
};

// Factor notation, see above. Precondition: well-formed text.
ShardingRule einsum(std::string_view notation);
// Every tensor argument broadcast against the outputs, dim by dim.
ShardingRule pointwise();
// The dims in argument `dims` (all, when empty or absent) are combined by
// `op`; `keepdim` says whether they stay with size 1.
ShardingRule reduction(ReduceOp op, std::string_view dims = "dim",
                       std::string_view keepdim = "keepdim");
// Runs over the dim that argument names, which stays whole; the other dims of
// its tensors are alike. Results may lack the dim, or have another size of it.
ShardingRule along(std::string_view dim_argument = "dim");
// Same elements in the same order, other shape: flattens and splits. The
// argument, if any, is the new shape.
ShardingRule view(std::string_view shape_argument = {});
// Tensors made from no tensor; the shape is that argument.
ShardingRule factory(std::string_view shape_argument);
// The way out for what the algebra cannot say.
ShardingRule custom(std::string name, ShardingRule::Instantiate instantiate);

}  // namespace shardprop
