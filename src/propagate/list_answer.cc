// Answers a call of an operator on lists from the answers for its elements.
#include "base/nothing_wrong.h"
#include "base/try.h"
#include "ops/schema/operand_name.h"
#include "propagate/propagator_body.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

// All ranks run one call for all elements. An element may therefore neither
// need a program nor have per-rank arguments.
Result<void> check_runs_as_it_is(const OpSchema& list, const BoundOp& call,
                                 const OutputSharding& sharding,
                                 const DeviceMesh& mesh) {
  const bool takes_program =
      call.space->program != nullptr &&
      LocalStrategy(call.op, call.space, sharding, mesh).needs_program();
  if (!takes_program && sharding.rank_arguments.empty()) {
    return nothing_wrong();
  }
  return fail(Error{ErrorCode::kNoStrategy,
                    "with its tensors laid out so, ranks run more than one "
                    "call of `" +
                        list.name() + "`",
                    list.name(),
                    {},
                    "call the operator for each element, or replicate the "
                    "tensors"});
}

// If all elements share a tensor, the tensor is moved only for the first of
// them.
Result<void> add_moves(const OpSchema& list, const ElementCall& element,
                       std::vector<InputMove> moves, OutputSharding& made) {
  for (InputMove& move : moves) {
    const std::size_t input = element.operands[move.input];
    if (std::any_of(made.moves.begin(), made.moves.end(),
                    [&](const InputMove& m) { return m.input == input; })) {
      return fail(Error{ErrorCode::kNoStrategy,
                        "the elements of `" + list.name() +
                            "` need the tensor that they share in different "
                            "layouts",
                        list.name(),
                        {},
                        "replicate it, or call the operator for each "
                        "element"});
    }
    made.moves.push_back({input, std::move(move.plan)});
  }
  return nothing_wrong();
}

// Returns the error of an element with the names that its operands have in the
// lists: `grads[1]` for `grads[0]` of the second call.
Error of_list(const OpSchema& list, const ElementCall& element, Error error) {
  for (std::string& note : error.notes) {
    for (std::size_t k = 0; k < element.operands.size(); ++k) {
      const std::string own = '`' + operand_name(element.op, k) + '`';
      const std::size_t at = note.find(own);
      if (at == std::string::npos) continue;
      note.replace(at, own.size(),
                   '`' + operand_name(list, element.operands[k]) + '`');
      break;
    }
  }
  return error;
}

void add_results(const OpSchema& list, OutputSharding element,
                 OutputSharding& made) {
  if (!list.function->returns().empty()) {
    for (TensorSpec& spec : element.outputs) {
      made.output_slots.push_back(
          static_cast<std::int32_t>(made.outputs.size()));
      made.outputs.push_back(std::move(spec));
    }
  }
  made.inside.insert(made.inside.end(), element.inside.begin(),
                     element.inside.end());
  made.assignments.push_back(element.assignments.at(0));
  made.shardings.push_back(std::move(element.shardings.at(0)));
  made.redistribute_nanoseconds += element.redistribute_nanoseconds;
  made.inside_nanoseconds += element.inside_nanoseconds;
}

}  // namespace

Result<ShardingPropagator::Body::Answer>
ShardingPropagator::Body::answer_of_list(const OpSchema& op,
                                         std::span<const ElementCall> elements,
                                         std::span<const std::size_t> arguments,
                                         std::span<const Layout> inputs) const {
  Answer out;
  BoundOp call;
  call.looks.assign(op.args.size(), Look::kNothing);
  call.space = std::make_shared<const IndexSpace>();
  OutputSharding& made = out.sharding;
  std::vector<std::optional<TensorSpec>> needed(inputs.size());
  for (const ElementCall& element : elements) {
    std::vector<Layout> given;
    for (const std::size_t i : element.operands) {
      given.push_back(needed[i] ? needed[i]->layout() : inputs[i]);
    }
    auto answered = answer(element.op, given);
    if (!answered) {
      return fail(of_list(op, element, std::move(answered).error()));
    }
    Answer one = *std::move(answered);
    SP_CHECK(check_runs_as_it_is(op, *one.call, one.sharding, mesh));
    for (std::size_t k = 0; k < given.size(); ++k) {
      needed[element.operands[k]] = std::move(one.sharding.inputs[k]);
    }
    SP_CHECK(add_moves(op, element, std::move(one.sharding.moves), made));
    add_results(op, std::move(one.sharding), made);
    for (std::size_t a = 0; a < op.args.size(); ++a) {
      Look look = one.call->looks[arguments[a]];
      // A list has no sign, so its full value matters.
      if (look == Look::kSign) look = Look::kValue;
      call.looks[a] = std::max(call.looks[a], look);
    }
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!needed[i] && !inputs[i].is_replicated()) {
      return fail(Error{ErrorCode::kNoStrategy,
                        "every rank takes all numbers of `" + op.name() + "`",
                        op.name(),
                        {},
                        "replicate operand " + std::to_string(i)});
    }
    SP_ASSIGN(TensorSpec as_given, spec_of(mesh, inputs[i], op.inputs[i]));
    made.inputs.push_back(needed[i] ? *std::move(needed[i])
                                    : std::move(as_given));
  }
  std::sort(
      made.moves.begin(), made.moves.end(),
      [](const InputMove& a, const InputMove& b) { return a.input < b.input; });
  call.op = std::make_shared<const OpSchema>(op);
  out.call = std::make_shared<const BoundOp>(std::move(call));
  return out;
}

}  // namespace shardprop
