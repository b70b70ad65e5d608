#include "verify/check_program.h"

#include "base/saturating.h"
#include "base/try.h"
#include "ops/schema/foreign_operator.h"
#include "program/torch_collectives.h"

#include <shardprop/execute/program_run.h>
#include <shardprop/reference/evaluate.h>

#include <string>
#include <variant>

namespace shardprop::verification {
namespace {

// Refuses views of the bits of a value that runs in a wider dtype, because its
// bits differ.
Result<void> check_bits(const SpmdProgram& program, const ProgramStep& step) {
  const auto* op = std::get_if<ProgramOp>(&step.action);
  if (op == nullptr || op->op != "aten.view.dtype") return {};
  for (const auto& [name, value] : op->args) {
    const auto* from = std::get_if<ProgramValueId>(&value);
    if (from == nullptr || program.value(*from).meta.dtype() ==
                               program.value(op->outputs[0]).meta.dtype()) {
      continue;
    }
    return fail(Error{ErrorCode::kNoReference,
                      "`" + op->op +
                          "` sees the bits of its elements, which are others "
                          "in f64",
                      program.nodes[step.node].name,
                      {},
                      "--dtype own runs every operator in its own dtypes"});
  }
  return {};
}

// True if the reference evaluates the operator: it is an operator of PyTorch,
// or it has a program.
bool is_evaluated(const std::string& op, const OpLibrary& library) {
  const auto function = library.find(op);
  return function != nullptr &&
         (!is_foreign(op) || reference::evaluates(library, *function));
}

// Returns whether `emit` writes programs with the operator, which is foreign.
bool is_emitted(const std::string& op, const OpLibrary& library) {
  const auto function = library.find(op);
  return function != nullptr && !function->is_mutating() &&
         !is_higher_order(op);
}

}  // namespace

Result<void> check_taken(const Graph& graph, const OpLibrary& library) {
  for (const Node& node : graph.nodes()) {
    if (!library.infers(*node.op.function)) continue;
    const auto inferred = library.infer_results(node.op);
    if (inferred || inferred.error().code != ErrorCode::kShapeMismatch) {
      continue;
    }
    return fail(
        Error{ErrorCode::kNoReference,
              "the reference does not evaluate this call: " +
                  inferred.error().message,
              node.name, inferred.error().notes,
              "run the plan under PyTorch: `shardprop emit` writes it"});
  }
  return {};
}

namespace {

// Refuses dtypes of which the reference has no values: floats of 8 bits and complex
// numbers of two f16.
Result<void> check_dtypes(const SpmdProgram& program) {
  for (const ProgramValue& value : program.values) {
    if (value.is_local() || reference::has_values(value.meta.dtype())) continue;
    return fail(Error{ErrorCode::kNoReference,
                      "the reference does not compute in " +
                          std::string(to_string(value.meta.dtype())),
                      value.name,
                      {},
                      "--dtype f64 runs all floats in f64"});
  }
  return {};
}

}  // namespace

Result<void> check_declared(const SpmdProgram& program,
                            const OpLibrary& library, bool own_dtypes,
                            CollectiveCalls collectives) {
  if (own_dtypes) SP_CHECK(check_dtypes(program));
  for (const ProgramStep& step : program.steps) {
    const auto* op = std::get_if<ProgramOp>(&step.action);
    if (!own_dtypes) SP_CHECK(check_bits(program, step));
    if (op == nullptr || op->op == "shardprop.random_bits" ||
        is_evaluated(op->op, library) ||
        (collectives == CollectiveCalls::kAllowed && is_collective(op->op))) {
      continue;
    }
    return fail(
        Error{ErrorCode::kNoReference,
              what_is_foreign(op->op) + "; the reference does not evaluate it",
              program.nodes[step.node].name,
              {},
              is_emitted(op->op, library)
                  ? "give its rule a program (`.decomposed(...)`), or run the "
                    "programs that `shardprop emit` writes by "
                    "shardprop.torch.verify_programs()"
                  : help_without_foreign(op->op)});
  }
  return {};
}

std::int64_t bytes_of(const SpmdProgram& program, bool own_dtypes) {
  std::int64_t bytes = 0;
  for (const ProgramValue& value : program.values) {
    if (value.is_local()) continue;
    const DType dtype = run_dtype(value.meta.dtype(), !own_dtypes);
    bytes = sat_add(bytes, sat_mul(value.meta.numel(), item_size(dtype)));
  }
  return bytes;
}

}  // namespace shardprop::verification
