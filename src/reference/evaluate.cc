#include <shardprop/base/error.h>
#include <shardprop/reference/evaluate.h>

#include "base/guard.h"
#include "base/index.h"
#include "base/try.h"
#include "ops/program/program_text.h"
#include "ops/program/trace.h"
#include "ops/schema/overload_form.h"
#include "ops/schema/overload_kind.h"
#include "ops/space/foreach.h"
#include "reference/kernels.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <variant>

namespace shardprop::reference {
namespace {

const Kernels& kernels() {
  static const Kernels table = [] {
    Kernels all;
    for (const auto add : {add_pointwise,       add_elementary_functions,
                           add_comparisons,     add_special_functions,
                           add_gradients,       add_copies,
                           add_reductions,      add_products,
                           add_scaled_products, add_views,
                           add_joins,           add_lookups,
                           add_indexing,        add_factories,
                           add_random,          add_scans,
                           add_convolutions,    add_pools,
                           add_norms,           add_losses,
                           add_attention,       add_linear_algebra}) {
      add(all);
    }
    return all;
  }();
  return table;
}

const ProgramText* program_of(const OpLibrary& library,
                              const FunctionSchema& function) {
  const OpRow* row = library.row(function);
  if (row == nullptr || row->definition.program_is_per_rank()) return nullptr;
  return row->definition.program();
}

tl::unexpected<Error> lacks(const OpSchema& op, const std::string& why = {}) {
  return fail(Error{ErrorCode::kNoReference,
                    "the reference does not evaluate `" + op.name() + "`" +
                        (why.empty() ? "" : ": " + why),
                    {},
                    {},
                    "run the plan under PyTorch: `shardprop emit` writes it"});
}

// Evaluates an operator by its program, on unsharded tensors.
Result<std::vector<Tensor>> run_program(const OpLibrary& library,
                                        const ProgramText& text,
                                        const OpSchema& op,
                                        std::span<const Tensor> inputs) {
  SP_ASSIGN(const std::shared_ptr<const Decomposition> program,
            trace_program(text, op, library, false));
  std::vector<std::vector<Tensor>> made;
  const auto value_of = [&](const LocalRef& ref) -> const Tensor& {
    const auto i = index(ref.index);
    return ref.step < 0 ? inputs[i] : made[index(ref.step)][i];
  };
  for (const DecompositionStep& step : program->steps) {
    std::vector<Tensor> operands;
    for (const LocalRef& ref : step.operands) operands.push_back(value_of(ref));
    SP_ASSIGN(std::vector<Tensor> results,
              evaluate(library, step.schema, operands));
    made.push_back(std::move(results));
  }
  std::vector<Tensor> outputs;
  for (const LocalRef& ref : program->outputs) outputs.push_back(value_of(ref));
  // The program may return an operand unchanged, or in the dtype of its
  // computation.
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    if (outputs[o].dtype() != op.outputs[o].dtype()) {
      outputs[o] = cast(outputs[o], op.outputs[o].dtype());
    }
  }
  return outputs;
}

// A factory has no operand but its `out`, whose dtype is that of the
// computation.
void make_in_dtype_of_out(OpSchema& functional, const OpSchema& op) {
  const auto at = functional.function->argument_index("dtype");
  if (!at || op.has_arg("dtype") || op.inputs.empty()) return;
  functional.args[*at] = op.inputs.front().dtype();
}

// Runs an in-place or out= overload: evaluates the functional overload and
// writes the results.
Result<std::vector<Tensor>> run_mutating(const OpLibrary& library,
                                         const OverloadForm& form,
                                         const OpSchema& op,
                                         std::span<const Tensor> inputs) {
  std::vector<std::size_t> kept;
  SP_ASSIGN(OpSchema functional, rebind(op, form.functional, kept));
  if (kept.empty()) make_in_dtype_of_out(functional, op);
  SP_ASSIGN(auto results, library.infer_results(functional));
  set_results(functional, std::move(results));
  std::vector<Tensor> operands;
  for (const std::size_t i : kept) operands.push_back(inputs[i]);
  SP_ASSIGN(const std::vector<Tensor> made,
            evaluate(library, functional, operands));
  const auto result = [&](std::size_t r) -> const Tensor& {
    return made[index(functional.output_slots[r])];
  };
  const std::vector<TensorWrite> writes = tensor_writes(form, op);
  for (const TensorWrite& write : writes) {
    // A gradient that is not requested, for example.
    if (functional.output_slots[write.result] < 0) {
      return lacks(op, "what becomes of an out= for a result that is not made");
    }
  }
  std::vector<std::optional<Tensor>> ends(inputs.size());
  for (const TensorWrite& write : writes) {
    const std::size_t i = write.operand;
    const Tensor& value = result(write.result);
    // An `out` of another shape is allocated again, as PyTorch resizes it.
    if (inputs[i].shape() == value.shape()) {
      copy_into(inputs[i], value);
      ends[i] = inputs[i];
    } else {
      ends[i] = cast(value, inputs[i].dtype());
    }
  }
  std::vector<Tensor> outputs;
  std::size_t next = 0;
  for (const auto& from : form.results) {
    if (from) {
      outputs.push_back(result(*from));
      continue;
    }
    // Returns the written arguments in their order.
    if (next < writes.size()) outputs.push_back(*ends[writes[next++].operand]);
  }
  if (outputs.size() != op.outputs.size()) return lacks(op, "its results");
  return outputs;
}

Result<std::vector<Tensor>> run_kernel(const Kernel& kernel, const Call& call) {
  std::vector<Tensor> outputs = kernel(call);
  const OpSchema& op = call.op();
  if (outputs.size() != op.outputs.size()) {
    throw InternalError("the reference's `" + op.name() + "` returns " +
                        std::to_string(outputs.size()) + " results");
  }
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    if (outputs[o].shape() != op.outputs[o].shape() ||
        outputs[o].dtype() != op.outputs[o].dtype()) {
      throw InternalError("the reference's `" + op.name() + "` makes " +
                          to_string(outputs[o].meta()) + ", not " +
                          to_string(op.outputs[o]));
    }
  }
  return outputs;
}

// Passes the number of element i, which its call omits.
void pass_number(ElementCall& call, std::size_t i, const ForeachForm& form,
                 const OpSchema& op, std::span<const Tensor> inputs) {
  if (!form.numbers) return;
  const std::string& name = op.function->arguments()[*form.numbers].name;
  const Tensor& numbers = inputs[op.tensor_arg(name).value()];
  Argument& number = call.op.args[form.arguments[*form.numbers]];
  if (is_complex(numbers.dtype())) {
    number = values<Complex>(numbers)[i];
  } else {
    number = values<double>(numbers)[i];
  }
}

// Evaluates the plain overload on each element of the lists.
Result<std::vector<Tensor>> run_each(const OpLibrary& library,
                                     const OpSchema& op,
                                     std::span<const Tensor> inputs) {
  const auto form = foreach_form(*op.function, library);
  SP_ASSIGN(std::vector<ElementCall> calls, element_calls(*form, op, library));
  std::vector<Tensor> outputs;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    ElementCall& call = calls[i];
    pass_number(call, i, *form, op, inputs);
    std::vector<Tensor> operands;
    for (const std::size_t o : call.operands) operands.push_back(inputs[o]);
    SP_ASSIGN(std::vector<Tensor> results,
              evaluate(library, call.op, operands));
    std::move(results.begin(), results.end(), std::back_inserter(outputs));
  }
  // An in-place overload returns nothing.
  if (op.outputs.empty()) outputs.clear();
  return outputs;
}

Result<std::vector<Tensor>> run_plain(const OpLibrary& library,
                                      const OpSchema& op,
                                      std::span<const Tensor> inputs) {
  const FunctionSchema& function = *op.function;
  if (function.is_mutating()) return lacks(op);
  if (const Kernel* kernel = kernels().find(function)) {
    return run_kernel(*kernel, Call(library, op, inputs));
  }
  if (const ProgramText* program = program_of(library, function)) {
    return run_program(library, *program, op, inputs);
  }
  return lacks(op);
}

// Returns whether the overload has a kernel or a program, so that it is not
// evaluated by the overload from which it derives.
bool is_own(const OpLibrary& library, const FunctionSchema& function) {
  return kernels().find(function) != nullptr ||
         program_of(library, function) != nullptr;
}

// Evaluates the view with the arguments of its copy, and copies the results.
Result<std::vector<Tensor>> run_view_copy(
    const OpLibrary& library, const std::shared_ptr<const FunctionSchema>& view,
    const OpSchema& op, std::span<const Tensor> inputs) {
  OpSchema call = op;
  if (kernels().find(*view) != nullptr || !is_own(library, *op.function)) {
    call.function = view;
  }
  SP_ASSIGN(std::vector<Tensor> results, run_plain(library, call, inputs));
  for (Tensor& result : results) result = cast(result, result.dtype());
  return results;
}

Result<std::vector<Tensor>> run(const OpLibrary& library, const OpSchema& op,
                                std::span<const Tensor> inputs) {
  try {
    const OverloadOrigin origin = origin_of(*op.function, library);
    switch (origin.kind) {
      case OverloadKind::kInPlace:
      case OverloadKind::kOut:
        return run_mutating(library, *library.form(*op.function), op, inputs);
      case OverloadKind::kForeach:
        return run_each(library, op, inputs);
      case OverloadKind::kViewCopy:
        return run_view_copy(library, origin.from, op, inputs);
      case OverloadKind::kPlain:
        break;
    }
    return run_plain(library, op, inputs);
  } catch (const CallError& error) {
    return fail(
        Error{ErrorCode::kReferenceCall,
              "`" + op.name() + "` cannot be evaluated: " + error.message,
              {},
              {},
              "give it values that it takes; another seed draws others"});
  } catch (const NoKernel& missing) {
    return lacks(op, missing.what);
  }
}

}  // namespace

bool evaluates(const OpLibrary& library, const FunctionSchema& function) {
  if (is_own(library, function)) return true;
  const OverloadOrigin origin = origin_of(function, library);
  return origin.from != nullptr && evaluates(library, *origin.from);
}

Result<std::vector<Tensor>> evaluate(const OpLibrary& library,
                                     const OpSchema& op,
                                     std::span<const Tensor> inputs) {
  return guarded([&] { return run(library, op, inputs); });
}

}  // namespace shardprop::reference
