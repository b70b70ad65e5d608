// Lowers the call of an operator for each rank: its steps, and the collectives
// inside.
#include "lower/lowering.h"

#include "base/index.h"
#include "base/try.h"
#include "lower/broken_plan.h"

#include <type_traits>
#include <utility>

namespace shardprop::lowering {
namespace {

// The values of a call while it is lowered: inputs, and the results of each
// step.
class CallValues {
 public:
  explicit CallValues(const std::vector<ProgramValueId>& inputs)
      : inputs_(inputs) {}
  void add(std::vector<ProgramValueId> results) {
    results_.push_back(std::move(results));
  }
  ProgramValueId operator[](const LocalRef& ref) const {
    if (ref.index == TensorArg::kNone) return {};
    const auto index = static_cast<std::size_t>(ref.index);
    return ref.step < 0 ? inputs_[index]
                        : results_[static_cast<std::size_t>(ref.step)][index];
  }

 private:
  const std::vector<ProgramValueId>& inputs_;
  std::vector<std::vector<ProgramValueId>> results_;
};

ProgramArgument argument(const LocalCall::Argument& argument,
                         const CallValues& values) {
  return std::visit(
      [&](const auto& held) -> ProgramArgument {
        using T = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<T, LocalRef>) {
          return values[held];
        } else if constexpr (std::is_same_v<T, std::vector<LocalRef>>) {
          std::vector<ProgramValueId> ids;
          for (const LocalRef& ref : held) ids.push_back(values[ref]);
          return ids;
        } else if constexpr (std::is_same_v<T, Argument>) {
          // The operator's own arguments name its operands.
          if (const auto* tensor = std::get_if<TensorArg>(&held)) {
            return values[{-1, tensor->operand}];
          }
          if (const auto* list = std::get_if<std::vector<TensorArg>>(&held)) {
            std::vector<ProgramValueId> ids;
            for (const TensorArg& one : *list) {
              ids.push_back(values[{-1, one.operand}]);
            }
            return ids;
          }
          return held;
        } else {
          return held;
        }
      },
      argument);
}

// Returns the step of a collective inside a local program, with the plan's
// price.
Result<RedistributeStep> inside(const LocalCollective& collective,
                                const PlannedNode* planned, std::size_t index,
                                const std::string& where) {
  const bool is_planned =
      planned != nullptr && index < planned->inside.size() &&
      planned->inside[index].kind == collective.kind &&
      planned->inside[index].reduce_op == collective.op &&
      planned->inside[index].mesh_dims == collective.mesh_dims;
  if (!is_planned) {
    return broken_plan(where,
                       "the collectives inside are not those of its program");
  }
  if (collective.kind != CollectiveKind::kAllReduce &&
      collective.kind != CollectiveKind::kAllGather) {
    return fail(Error{ErrorCode::kNotLowered,
                      "a local program has a collective of kind " +
                          std::string(to_string(collective.kind)),
                      where,
                      {},
                      {}});
  }
  RedistributeStep step;
  static_cast<CollectiveStep&>(step) = planned->inside[index];
  return step;
}

}  // namespace

Result<std::vector<ProgramValueId>> Lowering::run_call(
    const LocalCall& call, const std::vector<ProgramValueId>& inputs,
    const std::vector<Target>& targets, const PlannedNode* planned,
    const std::string& where) {
  const auto new_value = [&](std::size_t output) {
    const Target& target = targets[output];
    return target.overwrites.valid()
               ? build_.overwriting(target.name, target.meta, target.layout,
                                    target.overwrites)
               : build_.value(target.name, target.meta, target.layout,
                              target.buffer);
  };
  std::vector<ProgramValueId> made(targets.size());
  // Returns the output of the call for a result of a step, if that output has
  // no value yet.
  const auto result = [&](std::size_t step, std::size_t index) {
    for (std::size_t o = 0; o < call.outputs.size(); ++o) {
      const LocalRef& ref = call.outputs[o];
      if (ref.step != static_cast<std::int32_t>(step) ||
          ref.index != static_cast<std::int32_t>(index) || made[o].valid()) {
        continue;
      }
      return made[o] = new_value(o);
    }
    return ProgramValueId();
  };
  CallValues values(inputs);
  std::size_t collectives = 0;
  for (std::size_t s = 0; s < call.steps.size(); ++s) {
    if (const auto* op = std::get_if<LocalCall::Op>(&call.steps[s])) {
      ProgramArguments args;
      for (const auto& [name, value] : op->args) {
        args.emplace_back(name, argument(value, values));
      }
      std::vector<ProgramValueId> results;
      for (std::size_t r = 0; r < op->produces.size(); ++r) {
        results.push_back(result(s, r));
        if (!results.back().valid() && op->produces[r] &&
            call.steps.size() > 1) {
          results.back() = build_.local(where + ".l" + std::to_string(s));
        }
      }
      build_.op(op->name, std::move(args), results);
      values.add(std::move(results));
    } else {
      const auto& collective = std::get<LocalCollective>(call.steps[s]);
      SP_ASSIGN(RedistributeStep step,
                inside(collective, planned, collectives++, where));
      ProgramValueId reduced = result(s, 0);
      if (!reduced.valid()) {
        reduced = build_.local(where + ".l" + std::to_string(s));
      }
      build_.collective(std::move(step), values[collective.value], reduced);
      values.add({reduced});
    }
  }
  if (planned != nullptr && collectives != planned->inside.size()) {
    return broken_plan(where,
                       "the collectives inside are not those of its program");
  }
  for (std::size_t o = 0; o < made.size(); ++o) {
    if (made[o].valid()) continue;
    made[o] = new_value(o);
    build_.op("aten.alias.default", {{"self", values[call.outputs[o]]}},
              {made[o]});
  }
  return made;
}

}  // namespace shardprop::lowering
