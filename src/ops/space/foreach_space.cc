// The index space of a foreach overload: those of its elements' calls, side by side.

#include "ops/program/program_text.h"
#include "ops/program/trace.h"
#include "ops/space/foreach.h"

#include "base/index.h"
#include "base/try.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace shardprop {
namespace {

// Returns the call as a program of one step.
Result<std::shared_ptr<const Decomposition>> one_step(
    const OpSchema& op, const OpLibrary& library) {
  CallExpression call{op.name(), {}, {}};
  for (const ArgumentSchema& argument : op.function->arguments()) {
    call.named.emplace_back(argument.name,
                            std::make_shared<const Expression>(
                                Expression{NameExpression{argument.name}}));
  }
  ProgramText text;
  text.results.push_back(
      std::make_shared<const Expression>(Expression{std::move(call)}));
  return trace_program(text, op, library, /*per_rank=*/false);
}

// Appends `one` to `all`; both are programs on full tensors. `operands` maps
// the inputs of `one` to those of `all`.
void append(Decomposition& all, const Decomposition& one,
            const std::vector<std::size_t>& operands) {
  const auto before = static_cast<std::int32_t>(all.steps.size());
  const auto renamed = [&](LocalRef ref) {
    return ref.step < 0
               ? LocalRef{-1,
                          static_cast<std::int32_t>(operands[index(ref.index)])}
               : LocalRef{ref.step + before, ref.index};
  };
  for (DecompositionStep step : one.steps) {
    for (LocalRef& ref : step.operands) ref = renamed(ref);
    for (auto& [name, value] : step.op.args) {
      if (auto* ref = std::get_if<LocalRef>(&value)) *ref = renamed(*ref);
      if (auto* refs = std::get_if<std::vector<LocalRef>>(&value)) {
        for (LocalRef& ref : *refs) ref = renamed(ref);
      }
    }
    all.steps.push_back(std::move(step));
  }
  for (const LocalRef ref : one.outputs) all.outputs.push_back(renamed(ref));
}

// `SideBySide` combines the index spaces of the elements' calls into one.
class SideBySide {
 public:
  explicit SideBySide(const OpSchema& op)
      : mutates_(op.function->is_mutating()) {
    space_.inputs.resize(op.inputs.size());
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      space_.inputs[i].dims.resize(op.inputs[i].shape().size());
    }
    space_.is_free = true;
  }

  void add(const ElementCall& call, IndexSpace own) {
    const bool has_output = !mutates_;
    own.seal();
    const auto [known, is_new] = factors_.try_emplace(to_string(own));
    if (is_new) {
      for (const Factor& factor : own.factors) {
        known->second.push_back(static_cast<FactorId>(space_.factors.size()));
        space_.factors.push_back(alone(own, factor));
      }
    }
    const std::vector<FactorId>& ids = known->second;
    for (std::size_t i = 0; i < call.operands.size(); ++i) {
      space_.inputs[call.operands[i]] = renamed(own.inputs[i], ids);
    }
    if (has_output) space_.outputs.push_back(renamed(own.outputs[0], ids));
    space_.flops_per_point =
        std::max(space_.flops_per_point, own.flops_per_point);
    if (own.product != ProductKind::kNone) space_.product = own.product;
    space_.is_free = space_.is_free && own.is_free;
    space_.is_random = space_.is_random || own.is_random;
    added_.push_back({&call, std::move(own), &ids, has_output});
  }

  // Returns the combined index space. A factor of one element leaves the
  // operands of the other elements unchanged.
  Result<IndexSpace> done(const OpLibrary& library) {
    space_.seal();
    for (auto& row : space_.outputs_without) {
      std::fill(row.begin(), row.end(), Without::same());
    }
    std::size_t output = 0;
    for (const Added& one : added_) {
      const auto place = [&](std::vector<Without>& row,
                             const std::vector<Without>& own) {
        for (std::size_t f = 0; f < one.ids->size(); ++f) {
          row[index((*one.ids)[f])] = own[f];
        }
      };
      for (std::size_t i = 0; i < one.call->operands.size(); ++i) {
        place(space_.inputs_without[one.call->operands[i]],
              one.own.inputs_without[i]);
      }
      if (one.has_output) {
        place(space_.outputs_without[output++], one.own.outputs_without[0]);
      }
    }
    add_linearities();
    SP_CHECK(add_programs(library));
    return std::move(space_);
  }

 private:
  struct Added {
    const ElementCall* call;
    IndexSpace own;
    const std::vector<FactorId>* ids;
    bool has_output;
  };

  bool has_program(const IndexSpace& own) const {
    return own.program != nullptr && !own.program->per_rank && !mutates_;
  }

  // Blocks a factor that only a program of all elements could shard, if this
  // element has no program of its own.
  Factor alone(const IndexSpace& own, Factor factor) const {
    if (factor.program != ProgramUse::kNever && !has_program(own)) {
      factor.program = ProgramUse::kNever;
      factor.kind = FactorKind::kBlocked;
      factor.reason = "it takes a program to shard it";
    }
    return factor;
  }

  static Operand renamed(Operand operand, const std::vector<FactorId>& ids) {
    for (DimFactors& dim : operand.dims) {
      for (FactorId& id : dim) id = ids[index(id)];
    }
    return operand;
  }

  // Adds the linearities that every element has.
  void add_linearities() {
    if (added_.empty()) return;
    for (const Linearity& first : added_.front().own.linearities) {
      Linearity all;
      all.inputs.resize(space_.inputs.size());
      bool holds = true;
      for (const Added& one : added_) {
        const auto& own = one.own.linearities;
        holds = holds && std::find(own.begin(), own.end(), first) != own.end();
        if (!holds) break;
        for (std::size_t i = 0; i < one.call->operands.size(); ++i) {
          all.inputs[one.call->operands[i]] = first.inputs[i];
        }
        if (one.has_output) all.outputs.push_back(first.outputs[0]);
      }
      if (holds) space_.linearities.push_back(std::move(all));
    }
  }

  // If one element needs a program, the programs of all elements run as one.
  Result<void> add_programs(const OpLibrary& library) {
    if (std::none_of(added_.begin(), added_.end(),
                     [&](const Added& one) { return has_program(one.own); })) {
      return {};
    }
    Decomposition all;
    for (const Added& one : added_) {
      std::shared_ptr<const Decomposition> program = one.own.program;
      if (!has_program(one.own)) {
        SP_ASSIGN(program, one_step(one.call->op, library));
      }
      append(all, *program, one.call->operands);
    }
    space_.program = std::make_shared<const Decomposition>(std::move(all));
    return {};
  }

  bool mutates_;
  IndexSpace space_;
  std::map<std::string, std::vector<FactorId>> factors_;
  std::vector<Added> added_;
};

}  // namespace

Result<IndexSpace> foreach_space(const ForeachForm& form, const OpSchema& op,
                                 const OpLibrary& library) {
  SP_ASSIGN(const auto calls, element_calls(form, op, library));
  SideBySide all(op);
  for (const ElementCall& call : calls) {
    SP_ASSIGN(IndexSpace own, library.index_space(call.op));
    if (!own.local_arguments.empty()) {
      for (Factor& factor : own.factors) factor.kind = FactorKind::kBlocked;
    }
    all.add(call, std::move(own));
  }
  return all.done(library);
}

}  // namespace shardprop
