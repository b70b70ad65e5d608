// `OpDefinition` is the computation of one operator, as data. It has a form
// (its index space), the dtype and strides of the results, the arithmetic, and
// a program for shardings that the form does not allow. Argument checks, output
// shapes, shardings, local programs, costs and the catalogue follow from it.
//
//   {"aten.mm",        einsum("mk,kn->mn")},
//   {"aten.add",       pointwise().promoted().additive()},
//   {"aten.erf",       pointwise().floating().nondecreasing()},
//   {"aten.amax",      reduction(ReduceOp::kMax)},
//   {"aten._softmax",  along("dim").decomposed(
//        "e = exp(self); return e / sum(e, [dim], True)")},
//
// A definition named like an operator ("aten.add") applies to its functional
// overloads. One named like an overload ("aten.sum.dim_IntList") applies to
// that overload only. In-place, out= and foreach overloads are derived from
// their declarations and need no definition.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/ops/index_space.h>
#include <shardprop/ops/notation.h>
#include <shardprop/ops/op_schema.h>
#include <shardprop/ops/row_traits.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardprop {

class LazyProgram;
class OpCall;
struct ProgramText;

// `BoundResult` is one result as a form describes it; omitted fields follow
// from the index space and the definition.
struct BoundResult {
  std::optional<Dims> shape;
  std::optional<Dims> strides;
  std::optional<DType> dtype;
  // Another dtype that kernels of some devices return.
  std::optional<DType> or_dtype;
};

// `BoundForm` is a form applied to one call: its index space, whose outputs are
// the produced results, and the description of each declared result. A result
// is nullopt if it is not produced (an output mask).
struct BoundForm {
  IndexSpace space;
  std::vector<std::optional<BoundResult>> results;
};

class OpDefinition {
 public:
  using Bind = std::function<BoundForm(const OpCall&)>;
  using TypeOf = std::function<DType(const OpCall&, std::size_t result)>;
  using StridesOf =
      std::function<Dims(const OpCall&, const Dims& shape, DType dtype)>;
  // Adds to the index space; the call has its outputs at this point.
  using Refine = std::function<void(const OpCall&, IndexSpace&)>;

  // Rejects calls that the form accepts and the operator does not.
  using Check = std::function<void(const OpCall&, const IndexSpace&)>;

  // Returns the definition in the language of docs/row_language.md.
  std::string text() const;
  // Returns the text without programs: "along(dim).decomposed()".
  std::string summary() const;
  BoundForm bind(const OpCall& call) const { return bind_(call); }
  const TypeOf& type_of() const { return type_; }
  // Returns the strides of a result; null if they are contiguous.
  const StridesOf* strides_of(std::size_t result) const {
    if (strides_.empty()) return nullptr;
    return &strides_[std::min(result, strides_.size() - 1)];
  }
  std::span<const Refine> refinements() const { return refinements_; }
  bool has_program() const { return program_ != nullptr; }
  // Returns the program; null if the definition has none. It is parsed on first
  // use. Several threads may call this at once. Precondition: check_program()
  // has no error.
  const ProgramText* program() const;
  // Error: kProgramSyntax. OpLibrary::with() calls this.
  Result<void> check_program() const;
  bool program_is_per_rank() const { return per_rank_; }
  // Returns the parts of the definition that are functions and do not print:
  // "typed", "strided", "checked". Without any, the text is the definition.
  std::span<const std::string> unprinted() const { return unprinted_; }
  // Returns whether its form is a function of its own (custom) instead of one
  // of the forms below.
  bool is_custom() const { return custom_; }
  const RowTraits& traits() const { return traits_; }
  // Returns whether complex elements of the result are conjugates of the
  // argument's.
  bool is_conjugating() const { return conjugates_; }

  // --- dtype of the results; the default is the first operand's ---
  OpDefinition promoted() &&;  // PyTorch's promotion of its operands
  OpDefinition floating() &&;  // promoted; integers become f32
  OpDefinition boolean() &&;   // bool
  OpDefinition of(std::string_view argument) &&;  // dtype of that argument
  OpDefinition typed(TypeOf type) &&;
  OpDefinition typed(DType dtype) &&;
  // The dtype of each result as text, such as "given(dtype,sum(first))" or
  // "first,i64" (docs/row_language.md). Precondition: the text is well-formed.
  OpDefinition typed(std::string_view rule) &&;

  // --- strides of the results; the default is contiguous ---
  OpDefinition elementwise() &&;  // the order of TensorIterator
  // Applies TensorIterator's order to these arguments, in the order of the
  // kernel.
  OpDefinition elementwise(std::vector<std::string> arguments) &&;
  // Dense. Each result has the dim order of its argument in the list, which has no
  // surplus arguments; the last argument is that of all further results.
  OpDefinition like(std::vector<std::string> arguments) &&;
  // Contiguous, although the form has another order.
  OpDefinition contiguous() &&;
  OpDefinition strided(StridesOf strides) &&;
  // The strides of a word of the rule language. Precondition: it is a word.
  OpDefinition strided(std::string_view word) &&;

  // --- arithmetic: which partials pass through ---
  // Declares a signed sum of `self` and `other`. Sums of all tensor arguments
  // at once and averages of any pass through, and P(max|min) if the others are
  // replicated.
  OpDefinition additive(std::vector<int> signs = {}) &&;
  // In that argument only.
  OpDefinition linear_in(std::string_view argument) &&;
  OpDefinition multilinear() &&;    // in each tensor argument alone
  OpDefinition nondecreasing() &&;  // P(max), P(min) kept, first argument
  OpDefinition nonincreasing() &&;  // P(max), P(min) swapped
  // P(max), P(min) kept, in each argument alone.
  OpDefinition nondecreasing_in_each() &&;
  // Declares `own`, minimum or maximum, of all arguments. P(min) and P(max) of
  // a single argument pass through, and P(own) of all arguments at once.
  OpDefinition lattice(ReduceOp own) &&;
  // Every element of the result is one element of these arguments, moved or
  // selected. So every partial passes through if all of them have it. Without
  // names it applies to all arguments.
  OpDefinition passes(std::vector<std::string> arguments = {}) &&;
  // The result depends only on the shapes of these arguments. Without names it
  // applies to all.
  OpDefinition ignores_values(std::vector<std::string> arguments = {}) &&;

  // --- traits ---
  OpDefinition draws(Distribution distribution) &&;
  // The integers of the argument are indices below that bound.
  OpDefinition below(std::string_view argument, IndexBound bound) &&;
  // The bound is an integer argument.
  OpDefinition below(std::string_view argument,
                     std::string_view bound_argument) &&;
  OpDefinition positive(std::string_view argument) &&;
  OpDefinition nonzero(std::string_view argument) &&;
  // Every element of the first result is one element of these arguments, or of
  // any argument without names. passes() implies it.
  OpDefinition selects(std::vector<std::string> arguments = {}) &&;
  OpDefinition in_order() &&;       // OperandOrder::kAsWhole
  OpDefinition in_dense_rows() &&;  // OperandOrder::kDenseRows

  // --- other properties ---
  OpDefinition random() &&;
  OpDefinition free() &&;  // costs nothing to run
  // Free if the result can be a view of the first operand, given its dtype and
  // strides and no `copy` argument. Otherwise the operator copies.
  OpDefinition free_where_viewed() &&;
  // The complex elements of the result are conjugates.
  OpDefinition conjugated() &&;
  // Turns the definition of a view into that of an operator that fills its own
  // memory, dense and in the order of its dims.
  OpDefinition filling() &&;
  OpDefinition flops(double per_point) &&;
  OpDefinition multiplies(ProductKind kind) &&;
  // The operator works on matrices of m rows and n columns, with this many
  // floating point operations: `cubes` * m * n * min(m, n), and `columns` * m * n
  // per column of right sides. Both are numbers such as "2/3". If `cubes` is the
  // name of an integer argument, the matrix is raised to that power.
  OpDefinition linalg_work(std::string_view cubes,
                           std::string_view columns = {}) &&;
  OpDefinition normalises() &&;
  // The result has the elements of the only tensor (IndexSpace::carries).
  OpDefinition carries() &&;
  // The result is that argument with some elements overwritten
  // (IndexSpace::writes_into).
  OpDefinition writes_into(std::string_view argument) &&;
  // `argument` is the shape of output `output`; each rank passes its local
  // shape.
  OpDefinition local_shape(std::string_view argument, int output = 0) &&;
  // `argument` is the size of that dim of the first result; each rank passes its
  // local size.
  OpDefinition local_size(std::string_view argument, int dim) &&;
  // Blocks the factors of the dims that the argument `dims` names.
  OpDefinition blocked(std::string_view dims) &&;
  // Requires that each rank has at least one element of every factor.
  OpDefinition nonempty() &&;
  // Only the factor with this letter is meant.
  OpDefinition nonempty(std::string_view factor) &&;
  // Requires it of every reduced factor; a call that reduces a dim without elements
  // is rejected.
  OpDefinition nonempty_reduced() &&;
  // Requires it of every factor if the results are integers and one of these
  // arguments is a fraction: a scale acts differently on an empty product.
  OpDefinition scales(std::vector<std::string> arguments) &&;
  // Results are reduced by `op` over factors that they lack, if each rank has
  // an element of them.
  OpDefinition reduced_without(ReduceOp op) &&;
  // Results without the factor with this letter are the same on every rank.
  OpDefinition same_without(std::string_view factor) &&;
  // No partial passes through, even if the form is linear.
  OpDefinition nonlinear() &&;
  // Defines the operator by others (src/ops/program/program_text.h has the
  // language). The text is parsed on first use. Factors that the form blocks may
  // then be sharded if each rank has an element of each. The operators and
  // collectives of the ranks are derived from the text.
  OpDefinition decomposed(std::string_view text) &&;
  // Defines the program that each rank runs on its local tensors, including
  // collectives, if a factor of `kind` is sharded. Without `kind` the form
  // chooses the factors.
  OpDefinition per_rank(std::string_view text,
                        std::optional<FactorKind> kind = std::nullopt) &&;
  // At least one of these arguments is given.
  OpDefinition given_one(std::vector<std::string> arguments) &&;
  // The text argument is one of these words; its default counts as one.
  OpDefinition one_of(std::string_view argument,
                      std::vector<std::string> words) &&;
  // Adds a condition on operands and arguments. Inference and index spaces both
  // test it, before the call has outputs. refine() is only for index spaces and
  // rejects nothing.
  OpDefinition checked(Check check) &&;
  // Adds a check of src/ops/rules/rule_words.h. Precondition: it is a word.
  OpDefinition checked(std::string_view word) &&;
  // Adds any other change, written `.name` in the text. Precondition: `name` is
  // not empty.
  OpDefinition refine(std::string name, Refine refine) &&;
  // Adds a modifier of src/ops/rules/rule_words.h. Precondition: it is a word.
  OpDefinition refine(std::string_view word) &&;

 private:
  // `text` is the line that the catalogue shows, such as "mk,kn->mn".
  OpDefinition(std::string text, Bind bind);
  OpDefinition say(std::string_view text) &&;
  // Sets the program and begins the text of the modifier that has it.
  OpDefinition with_program(std::string_view modifier,
                            std::string_view text) &&;
  // Adds a change that the form or another modifier implies.
  OpDefinition refined(Refine refine) &&;
  // Like typed(), strided() and checked(), for what a form or modifier implies.
  OpDefinition with_type(TypeOf type) &&;
  OpDefinition with_strides(StridesOf strides) &&;
  OpDefinition with_check(Check check) &&;
  OpDefinition opened(std::vector<FactorKind> kinds) &&;
  OpDefinition with_domain(ArgumentDomain domain) &&;
  void add_selected(const std::vector<std::string>& arguments);
  // A function becomes a definition in two ways: it is a form that definitions
  // share (src/ops/forms/shared_form.h), or it is listed as custom.
  friend OpDefinition shared_form(std::string text, Bind bind);
  friend OpDefinition with_implied(OpDefinition form, Refine refine);
  friend OpDefinition with_implied_strides(OpDefinition form,
                                           StridesOf strides);
  friend OpDefinition custom(std::string name, Bind bind);

  std::string text_;  // without programs: along(dim).decomposed("")
  // The places in `text_` where programs belong.
  std::vector<std::pair<std::size_t, std::shared_ptr<const LazyProgram>>>
      printed_programs_;
  Bind bind_;
  TypeOf type_;
  std::vector<StridesOf>
      strides_;  // of each result; the last one of all others
  std::vector<Refine> refinements_;
  RowTraits traits_;
  std::vector<std::string> unprinted_;
  std::shared_ptr<const LazyProgram> program_;
  bool per_rank_ = false;
  bool custom_ = false;
  bool conjugates_ = false;
};

// --- Forms ---

// A product of the tensor arguments in factor notation (notation.h). A factor
// that a result lacks is summed, and the operator is linear in each operand.
// `+mn` is added to the product.
//
// Precondition: the text is well-formed.
OpDefinition einsum(std::string_view notation);
OpDefinition einsum(std::vector<Notation> alternatives);
// Chooses the notation by the call, if no text has all of its notations.
using NotationOf = std::function<Notation(const OpCall&)>;
OpDefinition einsum(std::string name, NotationOf notation);
// Broadcasts all tensor arguments; `results` have the broadcast shape.
OpDefinition pointwise(int results = 1);
// Reduces the dims in argument `dims` (all if empty or absent) by `op`; without
// `op` they are blocked. Argument `keepdim` says whether the dims remain.
OpDefinition reduction(std::optional<ReduceOp> op, int results = 1);
// Runs over the dim that the argument names, which is unsharded; the other dims
// of its tensors correspond. Results have the shape of the first operand.
OpDefinition along(std::string_view dim_argument = "dim", int results = 1,
                   FactorKind kind = FactorKind::kBlocked);
// Produces tensors without tensor inputs; the shape is that argument.
OpDefinition factory(std::string_view shape_argument);
// Makes a definition from a function, for operators that no form describes.
OpDefinition custom(std::string name, OpDefinition::Bind bind);

}  // namespace shardprop
