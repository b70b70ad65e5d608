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
#include "strategy/chosen_steps.h"
#include "strategy/transcript.h"

#include <shardprop/placement/local_region.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace shardprop {
namespace {

// State is the placement of a value on one mesh dim: R, S(dim) or P(op).
using State = Placement;
// States has one State per mesh dim.
using States = InlineVector<State, 5>;

struct LocalValue {
  LocalRef ref;
  States states;
  TensorMeta meta;
};

// Way is one way to run a step on one mesh dim.
struct Way {
  InlineVector<State, 4> inputs;
  InlineVector<State, 4> outputs;
};

State state_of(const Operand& operand, int factor, Without without) {
  for (std::size_t dim = 0; dim < operand.dims.size(); ++dim) {
    const DimFactors& factors = operand.dims[dim];
    if (!factors.empty() && factors[0] == factor) {
      return Placement::shard(static_cast<int>(dim));
    }
  }
  return without.is_partial() ? Placement::partial(without.reduce_op())
                              : Placement::replicate();
}

// Returns whether a shard of the factor is a shard of one dim. A minor factor
// of a dim gives a strided shard, which the derivation does not support.
bool is_followed(const Operand& operand, int factor) {
  return !operand.holds(factor) ||
         std::any_of(operand.dims.begin(), operand.dims.end(),
                     [&](const DimFactors& dim) {
                       return !dim.empty() && dim[0] == factor;
                     });
}

std::vector<Way> ways_of(const IndexSpace& space) {
  std::vector<Way> ways;
  for (std::size_t f = 0; f < space.factors.size(); ++f) {
    const auto factor = static_cast<int>(f);
    if (space.factors[f].kind != FactorKind::kParallel) continue;
    Way way;
    bool allowed = true;
    for (std::size_t i = 0; i < space.inputs.size(); ++i) {
      allowed = allowed && is_followed(space.inputs[i], factor);
      way.inputs.push_back(
          state_of(space.inputs[i], factor, space.inputs_without[i][f]));
    }
    for (std::size_t o = 0; o < space.outputs.size(); ++o) {
      allowed = allowed && is_followed(space.outputs[o], factor) &&
                (space.outputs[o].holds(factor) ||
                 !space.outputs_without[o][f].is_forbidden());
      way.outputs.push_back(
          state_of(space.outputs[o], factor, space.outputs_without[o][f]));
    }
    if (allowed) ways.push_back(std::move(way));
  }
  for (const Linearity& linearity : space.linearities) {
    Way way;
    for (const auto& op : linearity.inputs) {
      way.inputs.push_back(op ? Placement::partial(*op)
                              : Placement::replicate());
    }
    for (const auto& op : linearity.outputs) {
      way.outputs.push_back(op ? Placement::partial(*op)
                               : Placement::replicate());
    }
    ways.push_back(std::move(way));
  }
  // The last way has replicated operands and results only.
  ways.push_back({InlineVector<State, 4>(space.inputs.size()),
                  InlineVector<State, 4>(space.outputs.size())});
  return ways;
}

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
    if (choice == kUnassigned) return Placement::replicate();
    const auto f = index(choice);
    if (f >= context_.space.factors.size()) return Placement::replicate();
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
               ? Placement::partial(ReduceOp::kSum)
               : state;
  }

  LocalValue value_of(LocalRef ref) const {
    if (ref.step < 0) return input(ref.index);
    if (ref.index != 0) {
      throw InternalError("a decomposition takes a second result of a step");
    }
    return values_.at(index(ref.step)).value();
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
    value.states[index(mesh_dim)] = Placement::replicate();
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
        value.states[m] = Placement::replicate();
      }
      if (over.empty()) continue;
      value.ref = out_.collective(CollectiveKind::kAllReduce, value.ref, op,
                                  over, value.meta.dtype(), local_bytes(value));
    }
    return value.ref;
  }

  // Returns the entry that stores a value of the decomposition.
  LocalValue& stored(LocalRef ref, const LocalValue& value) {
    if (ref.step >= 0) return values_.at(index(ref.step)).value();
    // The value is an input, which is partial only if the strategy says so.
    auto& kept = inputs_.at(index(ref.index));
    if (!kept) kept = value;
    return *kept;
  }

  // Returns whether the way reads one value with two different states.
  static bool splits_a_value(const std::vector<LocalRef>& refs,
                             const Way& way) {
    for (std::size_t i = 0; i < refs.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (refs[i] == refs[j] && way.inputs[i] != way.inputs[j]) return true;
      }
    }
    return false;
  }

  std::int64_t cost(const std::vector<LocalValue>& operands, const Way& way,
                    std::size_t m) const {
    constexpr std::int64_t kImpossible = -1;
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const State state = operands[i].states[m];
      if (state == way.inputs[i]) continue;
      if (!state.is_partial() || way.inputs[i].is_partial() ||
          way.inputs[i].is_shard()) {
        return kImpossible;
      }
      bytes += local_bytes(operands[i]);
    }
    return bytes;
  }

  // Returns the states of a step without operands. If a dim of an input gives
  // its length, the vector is sharded as that dim is.
  States states_along_input(const LocalOp& op) const {
    States states(mesh_dims(), Placement::replicate());
    for (const auto& [name, value] : op.args) {
      const auto* size = std::get_if<RankScalar>(&value);
      if (size == nullptr) continue;
      const LocalValue along = input(size->operand);
      for (std::size_t m = 0; m < states.size(); ++m) {
        if (along.states[m] == Placement::shard(size->dim)) {
          states[m] = Placement::shard(0);
        }
      }
    }
    return states;
  }

  void step(std::size_t s) {
    const DecompositionStep& step = program_.steps[s];
    std::vector<LocalValue> operands;
    for (const LocalRef ref : step.operands) operands.push_back(value_of(ref));
    LocalValue result{{}, {}, step.schema.outputs.front()};
    if (operands.empty()) result.states = states_along_input(step.op);
    const std::vector<Way> ways = ways_of(*step.space);
    for (std::size_t m = 0; m < mesh_dims() && !operands.empty(); ++m) {
      const Way* best = nullptr;
      std::int64_t least = 0;
      for (const Way& way : ways) {
        if (splits_a_value(step.operands, way)) continue;
        const std::int64_t bytes = cost(operands, way, m);
        if (bytes < 0 || (best != nullptr && bytes >= least)) continue;
        best = &way;
        least = bytes;
      }
      if (best == nullptr) {
        throw InternalError("a step of the program of " + context_.op.name() +
                            " cannot be sharded: " + step.op.name);
      }
      for (std::size_t i = 0; i < operands.size(); ++i) {
        operands[i].states[m] = best->inputs[i];
      }
      result.states.push_back(best->outputs.front());
    }
    std::map<std::pair<std::int32_t, std::int32_t>, LocalRef> renamed;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const LocalRef from = step.operands[i];
      const auto [taken, is_new] =
          renamed.try_emplace({from.step, from.index}, LocalRef{});
      if (is_new) taken->second = reduced(from, operands[i]);
    }
    LocalOp op = step.op;
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
    result.ref = out_.op(std::move(op.name), std::move(op.args));
    work_.resize(out_.steps.size());
    work_.back() = {step.space->is_free        ? StepWork::Kind::kView
                    : is_by_point(*step.space) ? StepWork::Kind::kByPoint
                                               : StepWork::Kind::kOther,
                    local_bytes(result)};
    values_[s] = std::move(result);
  }

  const LocalContext& context_;
  const Decomposition& program_;
  LocalProgram out_;
  std::vector<StepWork> work_;
  std::vector<std::optional<LocalValue>> values_;  // by step
  std::vector<std::optional<LocalValue>> inputs_;
};

}  // namespace

DerivedProgram derived_program(const LocalContext& context) {
  const Decomposition& program = *context.space.program;
  return program.per_rank ? transcript(context) : Deriver(context).run();
}

}  // namespace shardprop
