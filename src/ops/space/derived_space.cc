// The index space of an in-place or out= overload is that of its functional
// overload. Each written tensor has the layout of the result that it becomes.

#include "base/index.h"
#include "base/try.h"
#include "ops/bound_call.h"
#include "ops/op_call.h"
#include "ops/schema/overload_form.h"
#include "ops/space/arithmetic.h"

#include <algorithm>
#include <utility>

namespace shardprop {
namespace {

// Returns whether PyTorch lets a result of dtype `from` be written to a tensor
// of dtype `to`.
bool can_write(DType from, DType to) {
  if (from == to) return true;
  if (is_complex(from)) return is_complex(to);
  if (is_floating(from)) return is_floating(to) || is_complex(to);
  return from == DType::kBool || to != DType::kBool;
}

struct WrittenOperand {
  std::size_t operand;
  std::size_t result;
  bool in_place;  // a positional argument, which is read too
};

std::vector<WrittenOperand> written_operands(const OverloadForm& form,
                                             const OpSchema& op) {
  std::vector<WrittenOperand> out;
  for (const TensorWrite& write : tensor_writes(form, op)) {
    const ArgumentSchema& argument = op.function->arguments()[write.argument];
    out.push_back({write.operand, write.result, !argument.keyword_only});
  }
  return out;
}

void check_writes(const OpSchema& op, const OpSchema& functional,
                  const std::vector<WrittenOperand>& writes) {
  if (op.function->has_tag("inplace_view")) return;
  for (const WrittenOperand& write : writes) {
    if (write.result >= functional.outputs.size()) continue;
    const TensorMeta& made = functional.outputs[write.result];
    const TensorMeta& written = op.inputs[write.operand];
    if (made.shape() != written.shape()) {
      call_error("a result of " + to_string(made) + " is written to " +
                 to_string(written));
    }
    if (!can_write(made.dtype(), written.dtype())) {
      call_error("a result of dtype " + std::string(to_string(made.dtype())) +
                 " cannot be written to " +
                 std::string(to_string(written.dtype())));
    }
  }
}

// Returns the functional space with its operands at their positions in the
// mutating call.
IndexSpace placed(const OpSchema& op, IndexSpace from,
                  const std::vector<std::size_t>& kept,
                  const std::vector<WrittenOperand>& writes) {
  IndexSpace space;
  space.factors = std::move(from.factors);
  space.outputs = from.outputs;
  space.outputs_without = from.outputs_without;
  space.local_arguments = std::move(from.local_arguments);
  space.program = std::move(from.program);
  space.flops_per_point = from.flops_per_point;
  space.product = from.product;
  space.normalises = from.normalises;
  space.carries = from.carries;
  if (from.writes_into != IndexSpace::kNothing) {
    space.writes_into = static_cast<int>(kept[index(from.writes_into)]);
  }
  for (const std::size_t i : from.unread) space.unread.push_back(kept[i]);
  space.is_free = from.is_free;
  space.is_random = from.is_random;
  space.inputs.resize(op.inputs.size());
  space.inputs_without.resize(op.inputs.size());
  for (std::size_t i = 0; i < kept.size(); ++i) {
    space.inputs[kept[i]] = from.inputs[i];
    space.inputs_without[kept[i]] = from.inputs_without[i];
  }
  const auto out = [&](std::size_t operand, std::size_t result) {
    space.inputs[operand] = from.outputs[result];
    space.inputs_without[operand] = from.outputs_without[result];
    for (Without& without : space.inputs_without[operand]) {
      if (without.is_forbidden()) without = Without::same();
    }
  };
  for (const WrittenOperand& write : writes) {
    if (!write.in_place) out(write.operand, write.result);
  }
  for (const Linearity& linearity : from.linearities) {
    Linearity own;
    own.inputs.resize(op.inputs.size());
    for (std::size_t i = 0; i < kept.size(); ++i) {
      own.inputs[kept[i]] = linearity.inputs[i];
    }
    for (const WrittenOperand& write : writes) {
      if (!write.in_place) {
        own.inputs[write.operand] = linearity.outputs[write.result];
      }
    }
    own.outputs = linearity.outputs;
    space.linearities.push_back(std::move(own));
  }
  return space;
}

// Keeps a tensor that is written in place where it is: the operand and the
// result have the same layout.
void keep_in_place(IndexSpace& space, const WrittenOperand& write) {
  const std::size_t i = write.operand;
  const std::size_t o = write.result;
  std::erase_if(space.linearities, [&](const Linearity& linearity) {
    return linearity.inputs[i] != linearity.outputs[o];
  });
  for (std::size_t f = 0; f < space.factors.size(); ++f) {
    const auto factor = static_cast<int>(f);
    const Without without = space.outputs_without[o][f];
    const bool changes =
        space.inputs[i].holds(factor) != space.outputs[o].holds(factor) ||
        (!space.outputs[o].holds(factor) && !without.is_forbidden() &&
         without != space.inputs_without[i][f]);
    if (!changes) continue;
    space.factors[f].kind = FactorKind::kBlocked;
    space.factors[f].program = ProgramUse::kNever;
    space.factors[f].reason = "the tensor written in place lacks it";
  }
}

// Returns whether the program of the functional overload, which writes nothing,
// serves the mutating overload: it produces every written tensor in its dtype.
bool program_serves(const OpSchema& op,
                    const std::vector<WrittenOperand>& writes,
                    const std::vector<TensorMeta>& made) {
  return op.outputs.size() == made.size() &&
         std::all_of(writes.begin(), writes.end(),
                     [&](const WrittenOperand& write) {
                       return write.result < made.size() &&
                              made[write.result].dtype() ==
                                  op.inputs[write.operand].dtype();
                     });
}

}  // namespace

Result<IndexSpace> derived_space(const OpLibrary& library,
                                 const OverloadForm& form, const OpRow& row,
                                 const OpSchema& op) {
  std::vector<std::size_t> kept;
  SP_ASSIGN(OpSchema functional, rebind(op, form.functional, kept));
  std::vector<WrittenOperand> writes = written_operands(form, op);
  if (row.name.empty()) {
    // The operator is known by its pointwise tag alone: its results are the
    // written tensors.
    functional.outputs = op.outputs;
  } else {
    SP_ASSIGN(auto results, library.infer_results(functional));
    set_results(functional, std::move(results));
    for (WrittenOperand& write : writes) {
      const std::int32_t slot = write.result < functional.output_slots.size()
                                    ? functional.output_slots[write.result]
                                    : OpSchema::kNotProduced;
      if (slot == OpSchema::kNotProduced) {
        return fail(ErrorCode::kShapeMismatch,
                    "`" + op.name() +
                        "` writes a result that the call does not produce",
                    "leave the tensor out, or ask for the result");
      }
      write.result = index(slot);
    }
    try {
      check_writes(op, functional, writes);
    } catch (const CallError& error) {
      return fail(
          ErrorCode::kShapeMismatch,
          "`" + op.name() + "` does not take these operands: " + error.message,
          "give tensors that fit `" + to_string(*op.function) + "`");
    }
  }
  SP_ASSIGN(IndexSpace from, bound_space(library, row, functional));
  const std::vector<TensorMeta> made = functional.outputs;
  IndexSpace space = placed(op, std::move(from), kept, writes);
  space.seal();
  const bool moves = op.function->has_tag("inplace_view");
  for (const WrittenOperand& write : writes) {
    if (write.in_place && !moves && write.result < space.outputs.size()) {
      keep_in_place(space, write);
    }
  }
  if (space.program != nullptr && !program_serves(op, writes, made)) {
    space.program = nullptr;
    for (Factor& factor : space.factors) {
      if (factor.program == ProgramUse::kNever) continue;
      factor.program = ProgramUse::kNever;
      factor.kind = FactorKind::kBlocked;
      factor.reason = "its program does not write";
    }
  }
  // The cast to the dtype of the written tensor must preserve a partial too.
  std::erase_if(space.linearities, [&](const Linearity& linearity) {
    for (const WrittenOperand& write : writes) {
      if (write.result >= made.size() || !linearity.outputs[write.result]) {
        continue;
      }
      if (!cast_keeps(*linearity.outputs[write.result],
                      made[write.result].dtype(),
                      op.inputs[write.operand].dtype())) {
        return true;
      }
    }
    return false;
  });
  space.outputs.resize(op.outputs.size());
  space.outputs_without.resize(op.outputs.size());
  for (Linearity& linearity : space.linearities) {
    linearity.outputs.resize(op.outputs.size());
  }
  space.seal();
  return space;
}

}  // namespace shardprop
