#include "propagate/bound_op.h"

#include "base/index.h"
#include "base/try.h"

#include <utility>

namespace shardprop {
namespace {

std::optional<std::size_t> output_of(const OpSchema& op, std::size_t result) {
  if (result >= op.output_slots.size()) return std::nullopt;
  const std::int32_t slot = op.output_slots[result];
  if (slot == OpSchema::kNotProduced) return std::nullopt;
  return static_cast<std::size_t>(slot);
}

// Returns the operands of an argument; a list has one per element.
std::vector<std::size_t> operands_of(const Argument& argument) {
  std::vector<std::size_t> out;
  const auto add = [&](const TensorArg& tensor) {
    if (tensor.operand != TensorArg::kNone) {
      out.push_back(static_cast<std::size_t>(tensor.operand));
    }
  };
  if (const auto* one = std::get_if<TensorArg>(&argument)) add(*one);
  if (const auto* list = std::get_if<std::vector<TensorArg>>(&argument)) {
    for (const TensorArg& tensor : *list) add(tensor);
  }
  return out;
}

std::vector<WrittenOperand> written_operands(const OpSchema& op) {
  std::vector<WrittenOperand> writes;
  const FunctionSchema& function = *op.function;
  if (!function.is_mutating()) return writes;
  // An operator that changes the view in place returns the layout of the new
  // view.
  const bool moves = function.has_tag("inplace_view");
  for (std::size_t a = 0; a < function.arguments().size(); ++a) {
    const auto& alias = function.arguments()[a].alias;
    if (!alias || !alias->writes) continue;
    std::optional<std::size_t> result;
    for (std::size_t r = 0; r < function.returns().size() && !moves; ++r) {
      const auto& returned = function.returns()[r];
      if (returned.alias && returned.alias->writes && !returned.is_list &&
          returned.alias->set == alias->set) {
        result = r;
      }
    }
    for (const std::size_t operand : operands_of(op.args[a])) {
      writes.push_back(
          {operand, result ? output_of(op, *result) : std::nullopt});
    }
  }
  return writes;
}

// Returns the result slots of the stated outputs. If inference succeeds, these
// are the results that the call produces; otherwise the first results.
std::vector<std::int32_t> slots_of(const OpLibrary& library,
                                   const OpSchema& op) {
  OpSchema inferred = op;
  if (auto results = library.infer_results(op)) {
    set_results(inferred, *std::move(results));
    if (inferred.outputs.size() == op.outputs.size()) {
      return inferred.output_slots;
    }
  }
  std::vector<std::int32_t> slots;
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    slots.push_back(static_cast<std::int32_t>(i));
  }
  return slots;
}

}  // namespace

Result<BoundOp> bind_op(const OpLibrary& library, const DeviceMesh& mesh,
                        const OpSchema& op) {
  BoundOp bound;
  OpSchema own = op;
  const ArgumentReads reads(*op.function);
  if (own.outputs.empty() && own.output_slots.empty()) {
    SP_ASSIGN(auto results, library.infer_results(own));
    set_results(own, std::move(results));
  } else {
    if (own.output_slots.empty()) own.output_slots = slots_of(library, own);
    SP_CHECK(library.check_outputs(own));
  }
  SP_ASSIGN(IndexSpace space, library.index_space(own));
  bound.writes = written_operands(own);
  bound.looks = reads.looks();
  bound.space = std::make_shared<const IndexSpace>(std::move(space));
  bound.op = std::make_shared<const OpSchema>(std::move(own));
  bound.walk = std::make_shared<const StrategyWalk>(*bound.op, *bound.space,
                                                    mesh, StrategyOptions{});
  return bound;
}

IndexSpace with_unread_whole(IndexSpace space) {
  for (const std::size_t i : space.unread) {
    for (DimFactors& dim : space.inputs[i].dims) dim.clear();
    for (Without& without : space.inputs_without[i]) without = Without::same();
  }
  return space;
}

Result<std::shared_ptr<const BoundOp>> BoundOps::get(const OpSchema& op) {
  CallKey key = call_key(op, {}, {});
  {
    const std::scoped_lock lock(mutex_);
    if (const auto found = held_.find(key); found != held_.end()) {
      return found->second;
    }
  }
  SP_ASSIGN(BoundOp bound, bind_op(*library_, mesh_, op));
  auto made = std::make_shared<const BoundOp>(std::move(bound));
  const std::scoped_lock lock(mutex_);
  if (held_.size() >= kMostHeld) held_.clear();
  return held_.emplace(std::move(key), std::move(made)).first->second;
}

}  // namespace shardprop
