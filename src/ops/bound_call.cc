// The results and the index space of a call, from its operator definition.

#include "ops/bound_call.h"

#include "base/quantities.h"
#include "base/try.h"
#include "ops/argument_reads.h"
#include "ops/op_call.h"
#include "ops/program/held_factors.h"
#include "ops/program/program_shards.h"
#include "ops/program/trace.h"
#include "ops/schema/operand_name.h"
#include "ops/schema/overload_form.h"
#include "ops/space/foreach.h"

#include <algorithm>
#include <utility>

namespace shardprop {
namespace {

// Returns the argument that the result of a mutating overload aliases, by its
// alias set.
std::optional<std::size_t> written_argument(const FunctionSchema& function,
                                            const ArgumentSchema& result) {
  if (!result.alias || !result.alias->writes) return std::nullopt;
  for (std::size_t i = 0; i < function.arguments().size(); ++i) {
    const auto& alias = function.arguments()[i].alias;
    if (alias && alias->set == result.alias->set) return i;
  }
  return std::nullopt;
}

// Returns whether an in-place or out= overload returns only arguments that it
// writes. An in-place view (unsqueeze_) is excluded, because it changes the
// shape of its argument.
bool returns_what_it_writes(const OpLibrary& library,
                            const FunctionSchema& function) {
  const bool views =
      function.has_tag("inplace_view") && library.row(function) != nullptr;
  return function.is_mutating() && !views &&
         std::all_of(function.returns().begin(), function.returns().end(),
                     [&](const ArgumentSchema& result) {
                       return written_argument(function, result).has_value();
                     });
}

Results written_results(const OpSchema& op) {
  Results results;
  for (const ArgumentSchema& result : op.function->returns()) {
    const std::string& name =
        op.function->arguments()[*written_argument(*op.function, result)].name;
    if (result.is_list) {
      for (const std::size_t operand : op.tensor_list_arg(name)) {
        results.emplace_back(op.inputs[operand]);
      }
    } else if (const auto operand = op.tensor_arg(name)) {
      results.emplace_back(op.inputs[*operand]);
    } else {
      results.emplace_back(std::nullopt);
    }
  }
  return results;
}

Error mismatch(const OpSchema& op, CallError refused) {
  const bool is_taken = refused.code != ErrorCode::kShapeMismatch;
  // The message blames the rule, because PyTorch may accept more than the rule.
  Error error{
      refused.code,
      is_taken
          ? "`" + op.name() + "` of these operands is not known: " +
                std::move(refused.message)
          : "the rule of `" + op.name() +
                "` does not take these operands: " + std::move(refused.message),
      refused.operand ? operand_name(op, *refused.operand) : "",
      {},
      is_taken ? "state its results, which cannot be inferred"
               : "give tensors that fit `" + to_string(*op.function) + "`"};
  for (std::size_t i = 0; i < op.inputs.size() && i < 8; ++i) {
    error.notes.push_back("operand " + std::to_string(i) + ": " +
                          to_string(op.inputs[i]));
  }
  return error;
}

// Returns the results of a form, completed by the operator definition. May
// throw CallError.
Results complete(const OpDefinition& row, const OpCall& call,
                 const BoundForm& bound) {
  Results results;
  std::size_t output = 0;
  for (std::size_t k = 0; k < bound.results.size(); ++k) {
    const std::optional<BoundResult>& given = bound.results[k];
    if (!given) {
      results.emplace_back(std::nullopt);
      continue;
    }
    const Operand& operand = bound.space.outputs[output++];
    Dims shape;
    if (given->shape) {
      shape = *given->shape;
    } else {
      for (const DimFactors& dim : operand.dims) {
        std::int64_t size = 1;
        for (const FactorId id : dim) {
          size = multiply_sizes(size, bound.space.factor(id).size);
        }
        shape.push_back(size);
      }
    }
    DType dtype = DType::kF32;
    if (given->dtype) {
      dtype = *given->dtype;
    } else if (row.type_of()) {
      dtype = row.type_of()(call, k);
    } else if (!call.op().inputs.empty()) {
      dtype = call.first().dtype();
    }
    const TensorMeta dense = make_meta(shape, dtype);
    if (given->strides) {
      results.emplace_back(make_meta(shape, *given->strides, dtype));
    } else if (const auto* strides = row.strides_of(k)) {
      results.emplace_back(
          make_meta(shape, (*strides)(call, dense.shape(), dtype), dtype));
    } else {
      results.emplace_back(dense);
    }
  }
  return results;
}

// Drops the results that a mutating overload does not return. Its functional
// form, which has the operator definition, may return more.
Results declared(Results results, const FunctionSchema& function) {
  const auto& returns = function.returns();
  const bool lists =
      std::any_of(returns.begin(), returns.end(),
                  [](const ArgumentSchema& result) { return result.is_list; });
  if (!lists && function.is_mutating() && results.size() > returns.size()) {
    results.resize(returns.size());
  }
  return results;
}

std::vector<TensorMeta> produced(const Results& results) {
  std::vector<TensorMeta> out;
  for (const auto& result : results) {
    if (result) out.push_back(*result);
  }
  return out;
}

bool uses_program(const IndexSpace& space) {
  return std::any_of(space.factors.begin(), space.factors.end(),
                     [](const Factor& factor) {
                       return factor.program != ProgramUse::kNever;
                     });
}

}  // namespace

bool infers(const OpLibrary& library, const FunctionSchema& function) {
  if (returns_what_it_writes(library, function)) return true;
  const OpRow* row = library.row(function);
  return row != nullptr && !row->name.empty();
}

namespace {

// Rejects a call that the functional form of a mutating overload rejects. Calls
// with sizes that depend on data are accepted.
Result<void> check_functional(const OpLibrary& library, const OpSchema& op) {
  const auto form = library.form(*op.function);
  if (form == nullptr) return {};
  std::vector<std::size_t> kept;
  SP_ASSIGN(const OpSchema functional, rebind(op, form->functional, kept));
  const auto results = infer(library, functional);
  if (!results && results.error().code == ErrorCode::kShapeMismatch) {
    return fail(Error(results.error()));
  }
  return {};
}

}  // namespace

Result<Results> infer(const OpLibrary& library, const OpSchema& op) {
  if (const auto foreach = foreach_form(*op.function, library)) {
    return foreach_results(*foreach, op, library);
  }
  if (returns_what_it_writes(library, *op.function)) {
    SP_CHECK(check_functional(library, op));
    return written_results(op);
  }
  const OpRow* row = library.row(*op.function);
  // An operator that is known by its pointwise tag alone has no known result
  // dtype.
  if (row == nullptr || row->name.empty()) {
    return fail(ErrorCode::kNoShapeInference,
                "the result shape of `" + op.name() + "` is not known",
                "give its outputs, as an exported graph does");
  }
  try {
    const OpCall call(op);
    return declared(complete(row->definition, call, row->definition.bind(call)),
                    *op.function);
  } catch (CallError& error) {
    return fail(mismatch(op, std::move(error)));
  } catch (const UndeclaredArgument& error) {
    return fail(mismatch(op, CallError{error.what()}));
  }
}

Result<void> check_stated(const OpLibrary& library, const OpSchema& op) {
  const OpRow* row = library.row(*op.function);
  if (returns_what_it_writes(library, *op.function) || row == nullptr ||
      row->name.empty() || foreach_form(*op.function, library)) {
    return {};
  }
  BoundForm bound;
  Results expected;
  try {
    const OpCall call(op);
    bound = row->definition.bind(call);
    expected = declared(complete(row->definition, call, bound), *op.function);
  } catch (CallError& error) {
    return fail(mismatch(op, std::move(error)));
  } catch (const UndeclaredArgument& error) {
    return fail(mismatch(op, CallError{error.what()}));
  }
  bool fits = op.output_slots.size() == expected.size();
  for (std::size_t i = 0; fits && i < expected.size(); ++i) {
    const std::int32_t output = op.output_slots[i];
    // A kernel may omit a result that the declaration promises, and produce one
    // that it does not promise.
    if (output == OpSchema::kNotProduced || !expected[i]) continue;
    const TensorMeta& stated = op.outputs[index(output)];
    fits = stated.shape() == expected[i]->shape() &&
           (stated.dtype() == expected[i]->dtype() ||
            stated.dtype() == bound.results[i]->or_dtype);
  }
  if (fits) return {};
  Error error{ErrorCode::kShapeMismatch,
              "`" + op.name() + "` returns something else than is written",
              {},
              {},
              "the file was changed by hand, or comes from another release"};
  for (std::size_t i = 0; i < op.outputs.size() && i < 8; ++i) {
    error.notes.push_back("written:  " + to_string(op.outputs[i]));
  }
  for (std::size_t i = 0; i < expected.size() && i < 8; ++i) {
    if (expected[i]) {
      error.notes.push_back("expected: " + to_string(*expected[i]));
    }
  }
  return fail(std::move(error));
}

// Blocks the factors that a form leaves to a program if the definition has no
// program.
void hold_whole_what_needs_a_program(IndexSpace& space) {
  for (Factor& factor : space.factors) {
    if (factor.program != ProgramUse::kWhenSharded) continue;
    factor.program = ProgramUse::kNever;
    if (factor.kind == FactorKind::kParallel)
      factor.kind = FactorKind::kBlocked;
    if (factor.reason.empty()) factor.reason = "no program runs on parts of it";
  }
}

// The form of a user's rule may give an operand, which the form does not expect, the
// dims of another.
void check_ranks(const std::vector<Operand>& operands,
                 const std::vector<TensorMeta>& metas) {
  for (std::size_t i = 0; i < operands.size(); ++i) {
    require(operands[i].dims.size() == metas[i].shape().size(),
            "the rule has another rank for a tensor than the call");
  }
}

Result<IndexSpace> bound_space(const OpLibrary& library, const OpRow& row,
                               const OpSchema& op) {
  IndexSpace space;
  try {
    const OpCall call(op);
    BoundForm bound = row.definition.bind(call);
    const std::vector<TensorMeta> expected =
        produced(complete(row.definition, call, bound));
    space = std::move(bound.space);
    // A kernel may omit a result that the declaration promises.
    require(op.outputs.size() <= expected.size(), [&] {
      return "the rule has " + counted(expected.size(), "result") +
             ", the call " + std::to_string(op.outputs.size());
    });
    bool fits = true;
    for (std::size_t o = 0; fits && o < op.outputs.size(); ++o) {
      fits = op.outputs[o].shape() == expected[o].shape();
    }
    require(fits, "its results are not of the stated shapes");
    space.outputs.resize(op.outputs.size());
    space.outputs_without.resize(op.outputs.size());
    require(space.inputs.size() == op.inputs.size(),
            "a tensor stands where its row has none");
    check_ranks(space.inputs, op.inputs);
    check_ranks(space.outputs, op.outputs);
    space.seal();
    for (const OpDefinition::Refine& refine : row.definition.refinements()) {
      refine(call, space);
    }
  } catch (CallError& error) {
    return fail(mismatch(op, std::move(error)));
  } catch (const UndeclaredArgument& error) {
    return fail(mismatch(op, CallError{error.what()}));
  }
  if (!row.definition.has_program()) {
    hold_whole_what_needs_a_program(space);
  } else if (uses_program(space)) {
    SP_ASSIGN(const auto program,
              trace_program(*row.definition.program(), op, library,
                            row.definition.program_is_per_rank(), &space));
    if (program->per_rank) {
      note_factors(*program, space, library);
    } else {
      shard_by_steps(*program, op, space);
    }
    if (uses_program(space)) space.program = program;
  }
  return space;
}

}  // namespace shardprop
