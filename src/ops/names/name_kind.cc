#include "ops/names/name_kind.h"

#include "base/parse_int.h"

namespace shardprop {
namespace {

bool is_number(const ArgumentSchema& argument) {
  return !argument.is_list && (argument.type == ArgumentType::kInt ||
                               argument.type == ArgumentType::kFloat ||
                               argument.type == ArgumentType::kBool ||
                               argument.type == ArgumentType::kScalar);
}

}  // namespace

std::string_view expected_of(NameKind kind) {
  switch (kind) {
    case NameKind::kNone:
    case NameKind::kArgument:
      return "an argument";
    case NameKind::kTensor:
    case NameKind::kTensors:
      return "a tensor argument";
    case NameKind::kTypeOf:
      return "a dtype such as f32, or a tensor argument";
    case NameKind::kTensorOrNumber:
      return "an argument that is a tensor or a number";
    case NameKind::kInteger:
      return "an integer argument";
    case NameKind::kIntegers:
      return "an argument that is a list of integers";
    case NameKind::kDims:
      return "an argument that is an integer or a list of integers";
    case NameKind::kNumber:
      return "an argument that is a number";
    case NameKind::kFlag:
      return "a bool argument";
    case NameKind::kText:
      return "a str argument";
    case NameKind::kCondition:
      return "an argument that is a bool or optional";
    case NameKind::kCompared:
      return "an argument that is a str or an integer";
    case NameKind::kDType:
      return "a ScalarType argument";
    case NameKind::kFactor:
      return "a factor";
  }
  return "";
}

bool fits(NameKind kind, const ArgumentSchema& argument) {
  const bool is_single = !argument.is_list;
  switch (kind) {
    case NameKind::kArgument:
      return true;
    case NameKind::kTensor:
    case NameKind::kTypeOf:
      return argument.is_tensor();
    case NameKind::kTensors:
      return argument.type == ArgumentType::kTensor;
    case NameKind::kTensorOrNumber:
      return argument.is_tensor() || is_number(argument);
    case NameKind::kInteger:
      return is_single && argument.type == ArgumentType::kInt;
    case NameKind::kIntegers:
      return !is_single && argument.type == ArgumentType::kInt;
    case NameKind::kDims:
      return argument.type == ArgumentType::kInt;
    case NameKind::kNumber:
      return is_number(argument);
    case NameKind::kFlag:
      return is_single && argument.type == ArgumentType::kBool;
    case NameKind::kText:
      return is_single && argument.type == ArgumentType::kString;
    case NameKind::kCondition:
      return argument.is_optional ||
             (is_single && argument.type == ArgumentType::kBool);
    case NameKind::kCompared:
      return is_single && (argument.type == ArgumentType::kString ||
                           argument.type == ArgumentType::kInt ||
                           argument.type == ArgumentType::kScalar);
    case NameKind::kDType:
      return is_single && argument.type == ArgumentType::kDType;
    case NameKind::kNone:
    case NameKind::kFactor:
      return false;
  }
  return false;
}

bool fits_value(NameKind kind, const ArgumentSchema& argument,
                const std::string& value) {
  const auto number = parse_int(value);
  if (kind != NameKind::kCompared) {
    // A list of the stated length 1 may have any length.
    return !number || argument.list_size.value_or(1) == 1 ||
           *number < *argument.list_size;
  }
  return (argument.type == ArgumentType::kString) != number.has_value();
}

std::string expected_value_of(const ArgumentSchema& argument) {
  if (argument.is_list) {
    return "the index of an element below " +
           std::to_string(argument.list_size.value_or(1));
  }
  return argument.type == ArgumentType::kString ? "a word" : "an integer";
}

}  // namespace shardprop
