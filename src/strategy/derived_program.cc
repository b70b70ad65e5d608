// Derives the program for each mesh dim separately. On one mesh dim, a value is
// replicated, sharded along one dim, or partial.
//
// A step uses a factor or a linearity of its own index space that matches its
// operands. Partial operands may first be reduced. If several ways match, the
// step uses the way that reduces the fewest bytes. Other reductions are
// postponed until a step or the result needs the replicated value.

#include "strategy/derived_program.h"

#include "base/index.h"
#include "base/saturating.h"
#include "ops/program/local_arguments.h"
#include "ops/program/step_ways.h"
#include "strategy/chosen_steps.h"
#include "strategy/transcript.h"

#include <shardprop/placement/local_region.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace shardprop {
namespace {

// State is the distribution of a value on one mesh dim.
using State = StepState;
// States has one State per mesh dim.
using States = InlineVector<State, 5>;

struct LocalValue {
  LocalRef ref;
  States states;
  TensorMeta meta;
};

bool is_by_point(const IndexSpace& space) {
  for (std::size_t f = 0; f < space.factors.size(); ++f) {
    if (space.factors[f].kind != FactorKind::kParallel ||
        !space.outputs[0].holds(static_cast<int>(f))) {
      return false;
    }
  }
  return true;
}

class Deriver {
 public:
  explicit Deriver(const LocalContext& context)
      : context_(context),
        program_(*context.space.program),
        values_(program_.steps.size()),
        inputs_(context.op.inputs.size()) {}

  DerivedProgram run() {
    for (std::size_t s = 0; s < program_.steps.size(); ++s) step(s);
    for (std::size_t o = 0; o < program_.outputs.size(); ++o) {
      LocalValue value = value_of(program_.outputs[o]);
      for (std::size_t m = 0; m < value.states.size(); ++m) {
        bring(value, static_cast<int>(m), wanted(o, m));
      }
      out_.outputs.push_back(reduced(program_.outputs[o], value));
    }
    work_.resize(out_.steps.size());
    return {std::move(out_), std::move(work_)};
  }

 private:
  // Mesh dims are in the order of the strategy's assignment.
  std::size_t mesh_dims() const { return context_.strategy.assignment.size(); }

  // Returns the placement of an operand on a mesh dim in the strategy.
  State given(const Operand& operand, const std::vector<Without>& without,
              std::size_t m) const {
    const std::int16_t choice = context_.strategy.assignment[m];
    if (choice == kUnassigned) return State::same();
    const auto f = index(choice);
    if (f >= context_.space.factors.size()) return State::same();
    return state_of(operand, choice, without[f]);
  }

  LocalValue input(std::int32_t i) const {
    const auto at = index(i);
    LocalValue value{{-1, i}, {}, context_.op.inputs[at]};
    for (std::size_t m = 0; m < mesh_dims(); ++m) {
      value.states.push_back(given(context_.space.inputs[at],
                                   context_.space.inputs_without[at], m));
    }
    return value;
  }

  State wanted(std::size_t o, std::size_t m) const {
    const State state =
        given(context_.space.outputs[o], context_.space.outputs_without[o], m);
    // An average over unequal shards is a sum with the global divisor.
    return state.is_partial() && state.reduce_op() == ReduceOp::kAvg
               ? State::partial(ReduceOp::kSum)
               : state;
  }

  LocalValue value_of(LocalRef ref) const {
    if (ref.step < 0) return input(ref.index);
    return values_.at(index(ref.step)).at(index(ref.index));
  }

  // Returns the bytes of the largest local part.
  std::int64_t local_bytes(const LocalValue& value) const {
    Dims shape = value.meta.shape();
    for (std::size_t m = 0; m < value.states.size(); ++m) {
      const State state = value.states[m];
      if (!state.is_shard()) continue;
      std::int64_t& size = shape[index(state.dim())];
      size = chunk(size, context_.mesh.size(static_cast<int>(m)), 0).size();
    }
    std::int64_t bytes = item_size(value.meta.dtype());
    for (const std::int64_t size : shape) bytes *= size;
    return bytes;
  }

  // Records that a value must be reduced over a mesh dim.
  static void bring(LocalValue& value, int mesh_dim, State wanted) {
    State& state = value.states[index(mesh_dim)];
    if (state == wanted) return;
    if (!state.is_partial() || wanted.is_partial() || wanted.is_shard()) {
      throw InternalError("a decomposition does not end as its row says");
    }
    value.states[index(mesh_dim)] = State::same();
  }

  // Returns the value after all reductions that `wanted` requires. Each reduce
  // op needs one all-reduce over all its mesh dims. Every reduction runs only
  // once.
  LocalRef reduced(LocalRef ref, const LocalValue& wanted) {
    LocalValue& value = stored(ref, wanted);
    for (const ReduceOp op : kAllReduceOps) {
      DimIndices over;
      for (std::size_t m = 0; m < value.states.size(); ++m) {
        const bool goes = value.states[m].is_partial() &&
                          value.states[m].reduce_op() == op &&
                          !wanted.states[m].is_partial();
        if (!goes) continue;
        over.push_back(static_cast<std::int32_t>(m));
        value.states[m] = State::same();
      }
      if (over.empty()) continue;
      value.ref = out_.collective(CollectiveKind::kAllReduce, value.ref, op,
                                  over, value.meta.dtype(), local_bytes(value));
    }
    return value.ref;
  }

  // Returns the entry that stores a value of the decomposition.
  LocalValue& stored(LocalRef ref, const LocalValue& value) {
    if (ref.step >= 0) {
      return values_.at(index(ref.step)).at(index(ref.index));
    }
    // The value is an input, which is partial only if the strategy says so.
    auto& kept = inputs_.at(index(ref.index));
    if (!kept) kept = value;
    return *kept;
  }

  // Returns the states of a step without operands. If a dim of an input or a result
  // gives its length, the vector is sharded as that dim is.
  States states_along_dim(const LocalOp& op) const {
    States states(mesh_dims(), State::same());
    for (const auto& [name, value] : op.args) {
      const auto* size = std::get_if<RankScalar>(&value);
      if (size == nullptr) continue;
      for (std::size_t m = 0; m < states.size(); ++m) {
        const State along = size->of_output ? wanted(index(size->operand), m)
                                            : input(size->operand).states[m];
        if (along == State::shard(size->dim)) {
          states[m] = State::shard(0);
        }
      }
    }
    return states;
  }

  // Chooses the way of a step on each mesh dim. Returns the factors that mesh dims
  // shard, by mesh dim; sets the states of operands and results.
  std::vector<StepShard> shard(const DecompositionStep& step,
                               std::vector<LocalValue>& operands,
                               std::vector<LocalValue>& results) const {
    std::vector<StepShard> shards;
    const std::vector<StepWay> ways = ways_of(*step.space);
    for (std::size_t m = 0; m < mesh_dims(); ++m) {
      std::vector<SteppedOperand> given;
      for (std::size_t i = 0; i < operands.size(); ++i) {
        given.push_back({step.operands[i], operands[i].states[m],
                         local_bytes(operands[i])});
      }
      const StepWay* way = cheapest_way(ways, given);
      if (way == nullptr) {
        throw InternalError("a step of the program of " + context_.op.name() +
                            " cannot be sharded: " + step.op.name);
      }
      for (std::size_t i = 0; i < operands.size(); ++i) {
        operands[i].states[m] = way->inputs[i];
      }
      for (std::size_t o = 0; o < results.size(); ++o) {
        results[o].states.push_back(way->outputs[o]);
      }
      if (way->factor == StepWay::kNoFactor) continue;
      const std::int16_t factor = context_.strategy.assignment[m];
      const bool is_known = std::any_of(
          shards.begin(), shards.end(),
          [&](const StepShard& one) { return one.own == way->factor; });
      if (!is_known) {
        shards.push_back(
            {way->factor, factor, context_.space.factor(factor).size});
      }
    }
    return shards;
  }

  // Passes each rank the arguments that differ between ranks.
  static void set_local_arguments(LocalOp& op, const DecompositionStep& step,
                                  const std::vector<StepShard>& shards) {
    if (shards.empty()) return;
    const auto locals = local_arguments(step, shards);
    if (!locals) {
      throw InternalError("a step has no local arguments: " + op.name);
    }
    for (const LocalArgument& local : *locals) {
      std::erase_if(op.args, [&](const auto& named) {
        return named.first == local.name;
      });
      op.args.emplace_back(
          local.name, local.is_list ? LocalOp::Value(local.values)
                                    : LocalOp::Value(local.values.front()));
    }
  }

  void step(std::size_t s) {
    const DecompositionStep& step = program_.steps[s];
    std::vector<LocalValue> operands;
    for (const LocalRef ref : step.operands) operands.push_back(value_of(ref));
    std::vector<LocalValue> results;
    for (const TensorMeta& meta : step.schema.outputs) {
      results.push_back({{}, {}, meta});
    }
    LocalOp op = step.op;
    if (operands.empty()) {
      for (LocalValue& result : results) {
        result.states = states_along_dim(step.op);
      }
    } else {
      set_local_arguments(op, step, shard(step, operands, results));
    }
    std::map<std::pair<std::int32_t, std::int32_t>, LocalRef> renamed;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const LocalRef from = step.operands[i];
      const auto [taken, is_new] =
          renamed.try_emplace({from.step, from.index}, LocalRef{});
      if (is_new) taken->second = reduced(from, operands[i]);
    }
    for (auto& [name, value] : op.args) {
      if (auto* ref = std::get_if<LocalRef>(&value)) {
        *ref = renamed.at({ref->step, ref->index});
      } else if (auto* list = std::get_if<std::vector<LocalRef>>(&value)) {
        for (LocalRef& element : *list) {
          if (element.index != TensorArg::kNone) {
            element = renamed.at({element.step, element.index});
          }
        }
      }
    }
    const LocalRef made = out_.op(std::move(op.name), std::move(op.args));
    std::int64_t bytes = 0;
    for (std::size_t o = 0; o < results.size(); ++o) {
      results[o].ref = {made.step, static_cast<std::int32_t>(o)};
      bytes = sat_add(bytes, local_bytes(results[o]));
    }
    work_.resize(out_.steps.size());
    work_.back() = {step.space->is_free        ? StepWork::Kind::kView
                    : is_by_point(*step.space) ? StepWork::Kind::kByPoint
                                               : StepWork::Kind::kOther,
                    bytes};
    values_[s] = std::move(results);
  }

  const LocalContext& context_;
  const Decomposition& program_;
  LocalProgram out_;
  std::vector<StepWork> work_;
  std::vector<std::vector<LocalValue>> values_;  // by step: its results
  std::vector<std::optional<LocalValue>> inputs_;
};

}  // namespace

DerivedProgram derived_program(const LocalContext& context) {
  const Decomposition& program = *context.space.program;
  return program.per_rank ? transcript(context) : Deriver(context).run();
}

}  // namespace shardprop
