#include "ops/program/program_shards.h"

#include "base/index.h"
#include "ops/program/local_arguments.h"
#include "ops/program/step_ways.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace shardprop {
namespace {

// `ShardRun` is the result of running a program with one factor sharded.
struct ShardRun {
  bool is_possible = true;
  // The step that needs the full factor; -1: the results need it.
  std::int32_t failed_step = -1;
  // Limits of the shards (Factor).
  bool even = false;
  std::int64_t least = 0;
};

class ShardRunner {
 public:
  ShardRunner(const Decomposition& program, const OpSchema& op,
              const IndexSpace& space, int factor)
      : program_(program),
        op_(op),
        space_(space),
        factor_(factor),
        results_(program.steps.size()) {
    for (std::size_t i = 0; i < space.inputs.size(); ++i) {
      inputs_.push_back(
          state_of(space.inputs[i], factor, space.inputs_without[i][at()]));
    }
  }

  ShardRun run() {
    const bool has_states = std::all_of(
        space_.inputs.begin(), space_.inputs.end(),
        [&](const Operand& operand) { return is_one_state(operand, factor_); });
    if (!has_states) return failed(-1);
    for (std::size_t s = 0; s < program_.steps.size(); ++s) {
      if (!step(s)) return failed(static_cast<std::int32_t>(s));
    }
    for (std::size_t o = 0; o < program_.outputs.size(); ++o) {
      if (!ends(o)) return failed(-1);
    }
    return run_;
  }

 private:
  std::size_t at() const { return static_cast<std::size_t>(factor_); }
  std::int64_t size() const { return space_.factors[at()].size; }

  ShardRun failed(std::int32_t step) {
    run_.is_possible = false;
    run_.failed_step = step;
    return run_;
  }

  StepState& state(LocalRef ref) {
    return ref.step < 0 ? inputs_[index(ref.index)]
                        : results_[index(ref.step)][index(ref.index)];
  }
  const TensorMeta& meta(LocalRef ref) const {
    return ref.step < 0 ? op_.inputs[index(ref.index)]
                        : program_.steps[index(ref.step)]
                              .schema.outputs[index(ref.index)];
  }

  bool step(std::size_t s) {
    const DecompositionStep& step = program_.steps[s];
    std::vector<StepState>& results = results_[s];
    if (step.operands.empty()) {
      results.assign(step.schema.outputs.size(), state_along_dim(step.op));
      return true;
    }
    std::vector<SteppedOperand> operands;
    for (const LocalRef ref : step.operands) {
      operands.push_back({ref, state(ref), local_bytes(ref)});
    }
    const std::vector<StepWay> ways = ways_of(*step.space);
    const StepWay* way = cheapest_way(ways, operands);
    if (way == nullptr || !note_limits(*step.space, way->factor) ||
        !can_be_local(step, way->factor)) {
      return false;
    }
    for (std::size_t i = 0; i < operands.size(); ++i) {
      state(operands[i].ref) = way->inputs[i];
    }
    results.assign(way->outputs.begin(), way->outputs.end());
    return true;
  }

  // Notes the limits that a step has for shards of its factor. Returns false if the
  // shards of this factor are not shards of the step's factor.
  bool note_limits(const IndexSpace& space, int factor) {
    if (factor == StepWay::kNoFactor) return true;
    const Factor& own = space.factors[static_cast<std::size_t>(factor)];
    if (size() == 0 || own.size % size() != 0) return false;
    // Each element of this factor is a run of elements of the step's factor.
    const std::int64_t run = own.size / size();
    run_.even = run_.even || own.even || own.program == ProgramUse::kWhenUneven;
    if (run > 0) {
      run_.least = std::max(run_.least, (own.least + run - 1) / run);
    }
    return true;
  }

  bool can_be_local(const DecompositionStep& step, int factor) const {
    if (factor == StepWay::kNoFactor) return true;
    const StepShard shard{factor, factor_, size()};
    return local_arguments(step, {&shard, 1}).has_value();
  }

  bool ends(std::size_t o) {
    const Operand& operand = space_.outputs[o];
    if (!is_one_state(operand, factor_)) return false;
    StepState wanted = state_of_result(o);
    // An average over unequal shards is a sum with the global divisor.
    if (wanted.is_partial() && wanted.reduce_op() == ReduceOp::kAvg) {
      wanted = StepState::partial(ReduceOp::kSum);
    }
    const StepState has = state(program_.outputs[o]);
    return has == wanted ||
           (has.is_partial() && !wanted.is_partial() && !wanted.is_shard());
  }

  // Returns the state that the operator's result has at the end.
  StepState state_of_result(std::size_t o) const {
    return state_of(space_.outputs[o], factor_,
                    space_.outputs_without[o][at()]);
  }

  // The dim of an operand or a result may give the length of a vector.
  StepState state_along_dim(const LocalOp& op) const {
    for (const auto& [name, value] : op.args) {
      const auto* size = std::get_if<RankScalar>(&value);
      if (size == nullptr) continue;
      const auto i = index(size->operand);
      const StepState along = size->of_output ? state_of_result(i) : inputs_[i];
      if (along == StepState::shard(size->dim)) return StepState::shard(0);
    }
    return StepState::same();
  }

  // Returns the bytes on one of two ranks.
  std::int64_t local_bytes(LocalRef ref) {
    std::int64_t bytes = meta(ref).numel() * item_size(meta(ref).dtype());
    return state(ref).is_shard() ? bytes / 2 : bytes;
  }

  const Decomposition& program_;
  const OpSchema& op_;
  const IndexSpace& space_;
  const int factor_;
  std::vector<StepState> inputs_;
  std::vector<std::vector<StepState>> results_;  // by step
  ShardRun run_;
};

// Returns whether the step has a program that can take its place. Its numbers must not
// differ between ranks, because they refer to its own operands.
bool has_steps(const DecompositionStep& step) {
  if (step.space == nullptr || step.space->program == nullptr ||
      step.space->program->per_rank) {
    return false;
  }
  for (const DecompositionStep& inner : step.space->program->steps) {
    for (const auto& [name, value] : inner.op.args) {
      if (std::holds_alternative<RankScalar>(value) ||
          std::holds_alternative<std::vector<RankScalar>>(value)) {
        return false;
      }
    }
  }
  return true;
}

// Calls visit(ref) for every tensor that a step reads.
template <class Visit>
void each_tensor(DecompositionStep& step, const Visit& visit) {
  for (LocalRef& ref : step.operands) visit(ref);
  for (auto& [name, value] : step.op.args) {
    if (auto* ref = std::get_if<LocalRef>(&value)) visit(*ref);
    if (auto* list = std::get_if<std::vector<LocalRef>>(&value)) {
      for (LocalRef& ref : *list) {
        if (ref.index != TensorArg::kNone) visit(ref);
      }
    }
  }
}

// Replaces a step by the steps of its own program.
Decomposition with_steps_of(Decomposition program, std::size_t at) {
  const DecompositionStep outer = std::move(program.steps[at]);
  const Decomposition& inner = *outer.space->program;
  const auto first = static_cast<std::int32_t>(at);
  const auto count = static_cast<std::int32_t>(inner.steps.size());
  Decomposition made;
  const auto of_inner = [&](LocalRef& ref) {
    ref = ref.step < 0 ? outer.operands[index(ref.index)]
                       : LocalRef{ref.step + first, ref.index};
  };
  const auto of_outer = [&](LocalRef& ref) {
    if (ref.step == first) {
      LocalRef result = inner.outputs[index(ref.index)];
      of_inner(result);
      ref = result;
    } else if (ref.step > first) {
      ref.step += count - 1;
    }
  };
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    if (s == at) {
      for (DecompositionStep step : inner.steps) {
        each_tensor(step, of_inner);
        made.steps.push_back(std::move(step));
      }
      continue;
    }
    DecompositionStep step = std::move(program.steps[s]);
    each_tensor(step, of_outer);
    made.steps.push_back(std::move(step));
  }
  made.outputs = std::move(program.outputs);
  for (LocalRef& ref : made.outputs) of_outer(ref);
  return made;
}

std::string reason_of(const ShardRun& run, const Decomposition& program) {
  if (run.failed_step < 0) {
    return "its program does not compute its results from parts of it";
  }
  const auto& function = program.steps[index(run.failed_step)].schema.function;
  return "its program calls `" + std::string(function->base_name()) +
         "`, which needs all of it";
}

// A factor of size 0 or 1 is never sharded.
bool is_opened(const Factor& factor) {
  return factor.program != ProgramUse::kNever && factor.size > 1;
}

// Replaces steps by their programs until no step with a program prevents a shard.
void expand(Decomposition& program, const OpSchema& op,
            const IndexSpace& space) {
  // Unit: steps. The programs of the library nest fewer than 10.
  constexpr int kMostExpanded = 256;
  int expanded = 0;
  for (std::size_t f = 0; f < space.factors.size();) {
    const ShardRun run =
        is_opened(space.factors[f])
            ? ShardRunner(program, op, space, static_cast<int>(f)).run()
            : ShardRun();
    if (run.is_possible || run.failed_step < 0 ||
        !has_steps(program.steps[index(run.failed_step)]) ||
        expanded == kMostExpanded) {
      ++f;
      continue;
    }
    ++expanded;
    program = with_steps_of(std::move(program), index(run.failed_step));
  }
}

}  // namespace

void shard_by_steps(Decomposition& program, const OpSchema& op,
                    IndexSpace& space) {
  expand(program, op, space);
  for (std::size_t f = 0; f < space.factors.size(); ++f) {
    Factor& factor = space.factors[f];
    if (factor.size <= 1) continue;
    const ShardRun run =
        ShardRunner(program, op, space, static_cast<int>(f)).run();
    if (factor.program == ProgramUse::kNever) {
      factor.outside_program = !run.is_possible || run.least > factor.least ||
                               (run.even && !factor.even);
      continue;
    }
    if (run.is_possible) {
      factor.even = factor.even || run.even;
      factor.least = std::max(factor.least, run.least);
      continue;
    }
    if (factor.program == ProgramUse::kWhenUneven) {
      factor.even = true;
    } else {
      factor.kind = FactorKind::kBlocked;
      factor.reason = reason_of(run, program);
    }
    factor.program = ProgramUse::kNever;
    factor.outside_program = true;
  }
}

}  // namespace shardprop
