// Evaluates dtype rules on calls.

#include "ops/argument_reads.h"
#include "ops/op_call.h"
#include "ops/rules/rule_words.h"
#include "ops/rules/type_rule.h"
#include "ops/schema/operand_name.h"

#include <algorithm>
#include <string>
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

// Throws "`self` is i64, expected a floating dtype".
[[noreturn]] void unexpected(std::string_view name, DType found,
                             const std::string& expected) {
  call_error('`' + std::string(name) + "` is " + std::string(to_string(found)) +
             ", expected " + expected);
}

// Requires a number of the kind of the result, such as `alpha` of a sum.
void check_scale(const OpCall& call, std::string_view argument, DType dtype) {
  if (!call.has(argument)) return;
  const Argument& scale = look_at(call.op(), argument, Look::kKind);
  require(!std::holds_alternative<bool>(scale) || dtype == DType::kBool, [&] {
    return '`' + std::string(argument) + "` is a bool, expected a number";
  });
  require(!counts(dtype) || !std::holds_alternative<double>(scale), [&] {
    return '`' + std::string(argument) +
           "` is a float, expected an integer, because the result is " +
           std::string(to_string(dtype));
  });
}

DType widened(const OpCall& call, std::string_view argument, DType own) {
  const DType wanted = call.dtype_or(argument, own);
  const bool is_half = own == DType::kF16 || own == DType::kBF16;
  if (wanted == own || (is_half && wanted == DType::kF32)) return wanted;
  unexpected(argument, wanted,
             std::string(to_string(own)) + (is_half ? " or f32" : "") +
                 ", as the operands");
}

// A call with an argument `out_dtype` adds tensors of any dtype.
void check_addend(const OpCall& call, std::string_view argument, DType dtype) {
  if (call.has("out_dtype") || !call.has(argument)) return;
  const TensorMeta* added = call.optional_tensor(argument);
  if (added == nullptr || added->dtype() == dtype) return;
  unexpected(argument, added->dtype(),
             std::string(to_string(dtype)) + ", as the other operands");
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
      const DType other = operand(1);
      if (other != own) {
        unexpected(name_of(call, nodes_[node.operands[1]]), other,
                   std::string(to_string(own)) + ", as `" +
                       name_of(call, nodes_[node.operands[0]]) + '`');
      }
      return own;
    }
    default:
      return checked(call, node, result);
  }
}

std::string TypeRule::name_of(const OpCall& call, const Node& node) const {
  if (node.kind == EvalKind::kArgument) return node.argument;
  if (node.kind == EvalKind::kFirst || node.kind == EvalKind::kSame) {
    return operand_name(call.op(), 0);
  }
  if (node.kind == EvalKind::kGiven) {
    return is_stated(call, node.argument)
               ? node.argument
               : name_of(call, nodes_[node.operands[0]]);
  }
  return text(node);
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
    const DType first = call.first().dtype();
    for (std::size_t i = 1; i < call.op().inputs.size(); ++i) {
      const DType dtype = call.op().inputs[i].dtype();
      if (dtype == first) continue;
      unexpected(operand_name(call.op(), i), dtype,
                 std::string(to_string(first)) + ", as `" +
                     operand_name(call.op(), 0) + '`');
    }
    return first;
  }
  const Node& operand = nodes_[node.operands[0]];
  const DType own = eval(call, operand, result);
  const auto expect = [&](bool holds, const char* expected) {
    if (!holds) unexpected(name_of(call, operand), own, expected);
  };
  switch (node.kind) {
    case EvalKind::kNoBools:
      expect(own != DType::kBool, "another dtype than bool");
      break;
    case EvalKind::kNoIntegers:
      expect(!counts(own),
             call.has("dtype")
                 ? "a floating or complex dtype, or one as argument `dtype`"
                 : "a floating or complex dtype");
      break;
    case EvalKind::kOnlyBool:
      expect(own == DType::kBool, "bool");
      break;
    case EvalKind::kOnlyFloating:
      expect(is_floating(own), "a floating dtype");
      break;
    case EvalKind::kHalf:
      expect(item_size(own) == 2, "a dtype of 2 bytes, such as f16");
      break;
    case EvalKind::kTruth:
      return own == DType::kU8 ? DType::kU8 : DType::kBool;
    case EvalKind::kScaled:
      check_scale(call, node.argument, own);
      break;
    case EvalKind::kNotBool:
      require(!is_bool_argument(call, node.argument), [&] {
        return "`" + node.argument + "` is bool, expected another dtype";
      });
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
