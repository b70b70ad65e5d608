#include "ops/program/held_factors.h"

#include "ops/op_call.h"
#include "ops/program/choice.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

class HeldFactors {
 public:
  HeldFactors(const Decomposition& program, const IndexSpace& space,
              const OpLibrary& library)
      : program_(program),
        space_(space),
        library_(library),
        results_(program.steps.size()) {}

  // Returns the factors by dim. They are computed on demand, because most steps
  // lead to no collective.
  const std::vector<DimFactors>& of(const LocalRef& ref) {
    if (ref.step < 0) return space_.inputs[index(ref.index)].dims;
    const DecompositionStep& step = program_.steps[index(ref.step)];
    if (step.collective) return of(step.collective->value);
    if (const auto choice = choice_of(step)) return of(choice->cut);
    std::optional<std::vector<Operand>>& known = results_[index(ref.step)];
    if (!known) known = results_of(step);
    return (*known)[index(ref.index)].dims;
  }

 private:
  // Each step calls an operator whose results the definition has inferred, so
  // the form can be bound again. Only the operands of the form are used.
  std::vector<Operand> results_of(const DecompositionStep& step) {
    const OpRow& row = *library_.row(*step.schema.function);
    IndexSpace own = row.definition.bind(OpCall(step.schema)).space;
    if (own.inputs.size() != step.operands.size()) {
      throw InternalError("a step of a program has operands without dims");
    }
    std::vector<DimFactors> made_of(own.factors.size());
    for (std::size_t i = 0; i < own.inputs.size(); ++i) {
      const std::vector<DimFactors>& held = of(step.operands[i]);
      for (std::size_t d = 0; d < held.size(); ++d) {
        match(own, own.inputs[i].dims[d], held[d], made_of);
      }
    }
    for (Operand& output : own.outputs) {
      for (DimFactors& dim : output.dims) {
        DimFactors held;
        for (const FactorId factor : dim) {
          for (const FactorId one : made_of[index(factor)]) {
            held.push_back(one);
          }
        }
        dim = std::move(held);
      }
    }
    return std::move(own.outputs);
  }

  // Matches the factors of a dim in the step with those of the operator, both
  // major first.
  void match(const IndexSpace& own, const DimFactors& dim,
             const DimFactors& held, std::vector<DimFactors>& made_of) const {
    std::size_t next = 0;
    for (const FactorId factor : dim) {
      DimFactors parts;
      std::int64_t left = own.factor(factor).size;
      for (; next < held.size(); ++next) {
        const std::int64_t size = space_.factor(held[next]).size;
        if (size == 0 || left % size != 0) break;
        left /= size;
        parts.push_back(held[next]);
      }
      // Another operand may be broadcast, or the same on every rank.
      if (made_of[index(factor)].empty()) made_of[index(factor)] = parts;
    }
  }

  const Decomposition& program_;
  const IndexSpace& space_;
  const OpLibrary& library_;
  std::vector<std::optional<std::vector<Operand>>> results_;  // by step
};

}  // namespace

void note_factors(Decomposition& program, const IndexSpace& space,
                  const OpLibrary& library) {
  HeldFactors held(program, space, library);
  for (DecompositionStep& step : program.steps) {
    if (step.collective) {
      step.collective->dims = held.of(step.collective->value);
    }
  }
}

}  // namespace shardprop
