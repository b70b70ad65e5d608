// Evaluates dtype rules on calls.

#include "ops/argument_reads.h"
#include "ops/op_call.h"
#include "ops/rules/rule_words.h"
#include "ops/rules/type_rule.h"

#include <algorithm>
#include <string_view>
#include <variant>

namespace shardprop {
namespace {

using EvalKind = TypeRule::Node::Kind;

// Returns whether the tensor or number of that name is bool.
bool is_bool_argument(const OpCall& call, std::string_view argument) {
  if (!call.has(argument)) return false;
  const TensorMeta* tensor = call.optional_tensor(argument);
  return tensor != nullptr
             ? tensor->dtype() == DType::kBool
             : std::holds_alternative<bool>(call.op().arg(argument));
}

bool is_stated(const OpCall& call, std::string_view argument) {
  return call.has(argument) && !std::holds_alternative<NoneArg>(
                                   look_at(call.op(), argument, Look::kKind));
}

// Requires a number of the kind of the result, such as `alpha` of a sum.
void check_scale(const OpCall& call, std::string_view argument, DType dtype) {
  if (!call.has(argument)) return;
  const Argument& scale = look_at(call.op(), argument, Look::kKind);
  require(!std::holds_alternative<bool>(scale) || dtype == DType::kBool,
          "`" + std::string(argument) + "` is a bool");
  require(
      !counts(dtype) || !std::holds_alternative<double>(scale),
      "`" + std::string(argument) + "` is not an integer, as the operands are");
}

DType widened(const OpCall& call, std::string_view argument, DType own) {
  const DType wanted = call.dtype_or(argument, own);
  const bool is_half = own == DType::kF16 || own == DType::kBF16;
  require(
      wanted == own || (is_half && wanted == DType::kF32),
      "`" + std::string(argument) + "` is not the factors', nor f32 of halves");
  return wanted;
}

// A call with an argument `out_dtype` adds tensors of any dtype.
void check_addend(const OpCall& call, std::string_view argument, DType dtype) {
  if (call.has("out_dtype") || !call.has(argument)) return;
  const TensorMeta* added = call.optional_tensor(argument);
  require(added == nullptr || added->dtype() == dtype,
          "what is added is of another dtype");
}

}  // namespace

DType TypeRule::of(const OpCall& call, std::size_t result) const {
  return eval(call, nodes_[results_[std::min(result, results_.size() - 1)]],
              result);
}

DType TypeRule::eval(const OpCall& call, const Node& node,
                     std::size_t result) const {
  const auto operand = [&](std::size_t i) {
    return eval(call, nodes_[node.operands[i]], result);
  };
  switch (node.kind) {
    case EvalKind::kDType:
      return node.dtype;
    case EvalKind::kFirst:
      return call.first().dtype();
    case EvalKind::kArgument:
      return call.tensor(node.argument).dtype();
    case EvalKind::kPromoted:
      return promoted_dtype(call);
    case EvalKind::kPromote:
      return promote_types(operand(0), operand(1));
    case EvalKind::kFloating:
      return to_floating(operand(0));
    case EvalKind::kSum: {
      const DType own = operand(0);
      return counts(own) ? DType::kI64 : own;
    }
    case EvalKind::kReal:
      return real_dtype(operand(0));
    case EvalKind::kComplex:
      return complex_dtype(operand(0));
    case EvalKind::kGiven:
      return call.dtype_or(node.argument, operand(0));
    case EvalKind::kIf:
      return operand(call.boolean_or(node.argument, false) ? 0 : 1);
    case EvalKind::kAlike: {
      const DType own = operand(0);
      require(operand(1) == own, "two operands are of different dtypes");
      return own;
    }
    default:
      return checked(call, node, result);
  }
}

DType TypeRule::checked(const OpCall& call, const Node& node,
                        std::size_t result) const {
  if (node.kind == EvalKind::kStated) {
    const std::size_t chosen = is_stated(call, node.argument) ? 0 : 1;
    return eval(call, nodes_[node.operands[chosen]], result);
  }
  if (node.kind == EvalKind::kWord) {
    const OpDefinition::TypeOf* type = rule_words().find_dtype(node.argument);
    require(type != nullptr, "the dtype of the result is unknown");
    return (*type)(call, result);
  }
  if (node.kind == EvalKind::kSame) {
    for (const TensorMeta& meta : call.op().inputs) {
      require(meta.dtype() == call.first().dtype(),
              "the operands are of different dtypes");
    }
    return call.first().dtype();
  }
  const DType own = eval(call, nodes_[node.operands[0]], result);
  switch (node.kind) {
    case EvalKind::kNoBools:
      require(own != DType::kBool, "an operand is bool");
      break;
    case EvalKind::kNoIntegers:
      require(!counts(own), "an operand of integers needs a dtype");
      break;
    case EvalKind::kOnlyBool:
      require(own == DType::kBool, "an operand is not bool");
      break;
    case EvalKind::kOnlyFloating:
      require(is_floating(own), "an operand is not floating");
      break;
    case EvalKind::kHalf:
      require(item_size(own) == 2, "an operand is not half");
      break;
    case EvalKind::kTruth:
      return own == DType::kU8 ? DType::kU8 : DType::kBool;
    case EvalKind::kScaled:
      check_scale(call, node.argument, own);
      break;
    case EvalKind::kNotBool:
      require(!is_bool_argument(call, node.argument),
              "`" + node.argument + "` is bool");
      break;
    case EvalKind::kWidened:
      return widened(call, node.argument, own);
    case EvalKind::kAddend:
      check_addend(call, node.argument, own);
      break;
    default:
      break;
  }
  return own;
}

}  // namespace shardprop
