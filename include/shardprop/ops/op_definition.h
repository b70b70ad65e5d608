// OpDefinition: what one operator computes, as data: a form (its index space),
// the dtype and strides of its results, its arithmetic, and a program for what
// the form alone cannot shard. Argument checks, output shapes, shardings, local
// programs, costs and the catalogue follow from it.
//
//   {"aten.mm",        einsum("mk,kn->mn")},
//   {"aten.add",       pointwise().promoted().additive()},
//   {"aten.erf",       pointwise().floating().nondecreasing()},
//   {"aten.amax",      reduction(ReduceOp::kMax)},
//   {"aten._softmax",  along("dim").decomposed(
//        "e = exp(self); return e / sum(e, [dim], True)")},
//
// A row named like an operator ("aten.add") serves its functional overloads;
// one named like an overload ("aten.sum.dim_IntList") that overload alone.
// In-place, out= and foreach overloads need no row: they follow from the
// declaration.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/ops/index_space.h>
#include <shardprop/ops/op_schema.h>

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {

class OpCall;
struct ProgramText;

// One result as a form sees it; what is left out follows from the index space
// and from the row.
struct BoundResult {
  std::optional<Dims> shape;
  std::optional<Dims> strides;
  std::optional<DType> dtype;
  // Another dtype that kernels of some devices return.
  std::optional<DType> or_dtype;
};

// A form applied to one call: its index space (whose outputs are the results
// that are produced) and, for each result that the operator declares, what is
// known of it; nullopt where it is not produced (an output mask).
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
  // Adds to the index space; the call has its outputs.
  using Refine = std::function<void(const OpCall&, IndexSpace&)>;

  // Refuses calls that the form takes and the operator does not.
  using Check = std::function<void(const OpCall&, const IndexSpace&)>;

  const std::string& text() const { return text_; }
  BoundForm bind(const OpCall& call) const { return bind_(call); }
  const TypeOf& type_of() const { return type_; }
  const StridesOf& strides_of() const { return strides_; }
  std::span<const Refine> refinements() const { return refinements_; }
  // Null when there is none.
  const std::shared_ptr<const ProgramText>& program() const { return program_; }
  bool program_is_per_rank() const { return per_rank_; }
  // Whether its form is a function of its own (custom) and not one of those
  // below.
  bool is_custom() const { return custom_; }
  // Whether complex elements of the result are the conjugates of those given.
  bool is_conjugating() const { return conjugates_; }

  // --- dtype of the results; the default is the first operand's ---
  OpDefinition promoted() &&;  // PyTorch's promotion of its operands
  OpDefinition floating() &&;  // the same, integers become f32
  OpDefinition boolean() &&;   // bool
  OpDefinition of(std::string_view argument) &&;  // that argument's
  OpDefinition typed(TypeOf type) &&;
  OpDefinition typed(DType dtype) &&;

  // --- strides of the results; the default is contiguous ---
  OpDefinition elementwise() &&;  // as TensorIterator lays them out
  // The same, of these arguments in this order, which is the kernel's.
  OpDefinition elementwise(std::vector<std::string> arguments) &&;
  OpDefinition like(std::string_view argument) &&;  // dense, in its dim order
  OpDefinition strided(StridesOf strides) &&;

  // --- arithmetic: which partials pass through ---
  // A signed sum of self and other: sums of all tensor arguments at once,
  // averages of any, and P(max|min) with the others whole.
  OpDefinition additive(std::vector<int> signs = {}) &&;
  OpDefinition linear_in(std::string_view argument) &&;  // that one alone
  OpDefinition multilinear() &&;    // each tensor argument alone
  OpDefinition nondecreasing() &&;  // P(max), P(min) kept, first argument
  OpDefinition nonincreasing() &&;  // P(max), P(min) swapped
  // minimum and maximum: distribute over both, keep their own in all.
  OpDefinition lattice(ReduceOp own) &&;
  // Every element of the result is one element of these arguments, moved or
  // selected: every partial passes, in all of them at once. No names: all.
  OpDefinition passes(std::vector<std::string> arguments = {}) &&;
  // The result depends on the shapes of these arguments alone. No names: all.
  OpDefinition ignores_values(std::vector<std::string> arguments = {}) &&;

  // --- what else there is to say ---
  OpDefinition random() &&;
  OpDefinition free() &&;  // costs nothing to run
  // Free where the result can be the first operand, seen in another shape: by
  // its dtype and strides, and unless `copy` is given. A copy elsewhere.
  OpDefinition free_where_viewed() &&;
  // The result has the conjugates of its complex elements.
  OpDefinition conjugated() &&;
  // The row of a view as that of an operator that fills memory of its own,
  // dense and in the order of its dims.
  OpDefinition filling() &&;
  OpDefinition flops(double per_point) &&;
  OpDefinition multiplies(ProductKind kind) &&;
  OpDefinition normalises() &&;
  // Its result is the elements of its one tensor (IndexSpace::carries).
  OpDefinition carries() &&;
  // The result is that argument with some elements overwritten
  // (IndexSpace::writes_into).
  OpDefinition writes_into(std::string_view argument) &&;
  // `argument` is the shape of output `output`: each rank passes its own.
  OpDefinition local_shape(std::string_view argument, int output = 0) &&;
  // The factors of the dims named by that argument are blocked.
  OpDefinition blocked(std::string_view dims) &&;
  // Ranks need at least one element of every factor.
  OpDefinition nonempty() &&;
  // The operator in terms of others. Factors that the form blocks may be
  // sharded then, a rank needs one element of each: what the ranks run and
  // exchange is derived from the text. src/ops/program_text.h has the language.
  OpDefinition decomposed(std::string_view text) &&;
  // What each rank runs on its local tensors, collectives included, where a
  // factor of that kind is sharded; without a kind, the form says which.
  OpDefinition per_rank(std::string_view text,
                        std::optional<FactorKind> kind = std::nullopt) &&;
  // A condition on operands and arguments. Inference and index spaces test it
  // alike, before the call has outputs; refine() is for index spaces alone and
  // refuses nothing.
  OpDefinition checked(Check check) &&;
  // Anything else, written `.name` in the text.
  OpDefinition refine(std::string name, Refine refine) &&;

 private:
  // `text` is the line that the catalogue shows: "mk,kn->mn".
  OpDefinition(std::string text, Bind bind);
  OpDefinition say(std::string_view text) &&;
  OpDefinition opened(std::vector<FactorKind> kinds) &&;
  // A function becomes a row as one of the forms that rows share
  // (src/ops/forms/shared_form.h), or is listed as custom.
  friend OpDefinition shared_form(std::string text, Bind bind);
  friend OpDefinition custom(std::string name, Bind bind);

  std::string text_;
  Bind bind_;
  TypeOf type_;
  StridesOf strides_;
  std::vector<Refine> refinements_;
  std::shared_ptr<const ProgramText> program_;
  bool per_rank_ = false;
  bool custom_ = false;
  bool conjugates_ = false;
};

// --- Forms ---

// Factor notation: one term per tensor argument that the operator declares
// (absent optional ones are passed over); a letter is a factor, a dim; letters
// in parentheses make one dim, major first; `...` stands for leading dims
// aligned on the right, as in broadcasting. A letter missing from an output is
// summed. A term with + in front is added to the product and broadcasts:
// `+mn,mk,kn->mn`. Letters in square brackets are blocked: `b[s]`.
// Precondition: well-formed text.
OpDefinition einsum(std::string_view notation);
// The notation chosen by the call, where ranks decide it.
OpDefinition einsum(std::string name,
                    std::function<std::string(const OpCall&)> notation);
// Every tensor argument broadcast against the others; `results` alike.
OpDefinition pointwise(int results = 1);
// The dims in argument `dims` (all, when empty or absent) are combined by
// `op`, or blocked when there is none; `keepdim` says whether they stay.
OpDefinition reduction(std::optional<ReduceOp> op, int results = 1);
// Runs over the dim that argument names, which stays whole; the other dims of
// its tensors are alike. Results are of the shape of the first operand.
OpDefinition along(std::string_view dim_argument = "dim", int results = 1,
                   FactorKind kind = FactorKind::kBlocked);
// Tensors made from no tensor; the shape is that argument.
OpDefinition factory(std::string_view shape_argument);
// The way out for what no form can say.
OpDefinition custom(std::string name, OpDefinition::Bind bind);

}  // namespace shardprop
