#include "strategy/chosen_steps.h"

#include "base/index.h"
#include "ops/program/choice.h"
#include "strategy/joined_factors.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

class ChosenSteps {
 public:
  ChosenSteps(const Decomposition& program, const LocalContext& context)
      : program_(program), context_(context), place_(program.steps.size(), 0) {}

  Decomposition run() {
    mark();
    Decomposition made;
    made.per_rank = true;
    for (std::size_t s = 0; s < program_.steps.size(); ++s) {
      if (place_[s] == kNowhere) continue;
      place_[s] = static_cast<std::int32_t>(made.steps.size());
      DecompositionStep step = program_.steps[s];
      if (step.collective)
        step.collective->value = moved(step.collective->value);
      for (auto& [name, value] : step.op.args) {
        if (auto* ref = std::get_if<LocalRef>(&value)) *ref = moved(*ref);
        if (auto* list = std::get_if<std::vector<LocalRef>>(&value)) {
          for (LocalRef& ref : *list) ref = moved(ref);
        }
      }
      for (LocalRef& ref : step.operands) ref = moved(ref);
      made.steps.push_back(std::move(step));
    }
    for (const LocalRef output : program_.outputs) {
      made.outputs.push_back(moved(output));
    }
    return made;
  }

 private:
  static constexpr std::int32_t kNowhere = -1;

  // A step is needed if an output or a needed later step reads it.
  void mark() {
    std::fill(place_.begin(), place_.end(), kNowhere);
    const auto need = [&](LocalRef ref) {
      ref = chosen(ref);
      if (ref.step >= 0) place_[index(ref.step)] = 0;
    };
    for (const LocalRef output : program_.outputs) need(output);
    for (std::size_t s = program_.steps.size(); s-- > 0;) {
      if (place_[s] == kNowhere) continue;
      const DecompositionStep& step = program_.steps[s];
      if (step.collective) need(step.collective->value);
      for (const LocalRef operand : step.operands) need(operand);
    }
  }

  LocalRef chosen(LocalRef ref) const {
    while (ref.step >= 0) {
      const auto choice = choice_of(program_.steps[index(ref.step)]);
      if (!choice) break;
      ref = holds(*choice) ? choice->cut : choice->whole;
    }
    return ref;
  }

  bool holds(const Choice& choice) const {
    const Operand& operand = context_.space.inputs[index(choice.operand)];
    const auto joined = operand.joined_factor(choice.dim);
    const bool as_one = joined && context_.shards(*joined);
    if (as_one || choice.condition != Choice::If::kCut) {
      return as_one && (choice.condition != Choice::If::kUnaligned ||
                        !has_aligned_parts(context_, *joined));
    }
    const DimFactors& factors = operand.dims[index(choice.dim)];
    return std::any_of(factors.begin(), factors.end(), [&](FactorId factor) {
      return context_.shards(factor);
    });
  }

  LocalRef moved(LocalRef ref) const {
    ref = chosen(ref);
    if (ref.step >= 0) ref.step = place_[index(ref.step)];
    return ref;
  }

  const Decomposition& program_;
  const LocalContext& context_;
  std::vector<std::int32_t> place_;  // by step: its new place
};

}  // namespace

Decomposition chosen_steps(const Decomposition& program,
                           const LocalContext& context) {
  return ChosenSteps(program, context).run();
}

}  // namespace shardprop
