#include "ops/schema/argument_types.h"

#include "base/edit_distance.h"

#include <algorithm>
#include <iterator>

namespace shardprop {
namespace {

struct NamedType {
  std::string_view name;
  ArgumentType type;
};

constexpr NamedType kTypes[] = {
    {"Tensor", ArgumentType::kTensor},
    {"int", ArgumentType::kInt},
    {"SymInt", ArgumentType::kInt},
    {"float", ArgumentType::kFloat},
    {"SymFloat", ArgumentType::kFloat},
    {"bool", ArgumentType::kBool},
    {"SymBool", ArgumentType::kBool},
    {"Scalar", ArgumentType::kScalar},
    {"str", ArgumentType::kString},
    {"ScalarType", ArgumentType::kDType},
    {"Layout", ArgumentType::kLayout},
    {"MemoryFormat", ArgumentType::kMemoryFormat},
    {"Device", ArgumentType::kDevice},
    {"Generator", ArgumentType::kGenerator},
};

// Types of PyTorch that are stored and not interpreted. Custom classes have a dot.
constexpr std::string_view kOtherTypes[] = {
    "Any",          "Dict",        "Storage",   "Stream",     "QScheme",
    "Dimname",      "number",      "Future",    "RRef",       "NoneType",
    "AnyEnumType",  "DimnameList", "PyObject",  "complex",    "Await",
    "AnyClassType", "Union",       "Quantizer", "Capsule",    "None",
    "AnyListType",  "AnyList",     "AnyTuple",  "DeviceIndex"};

// `t`, `t1` and `tVal` are variables of a type.
bool is_type_variable(std::string_view name) {
  if (!name.starts_with('t')) return false;
  return name.size() == 1 || (name[1] >= '0' && name[1] <= '9') ||
         (name[1] >= 'A' && name[1] <= 'Z');
}

}  // namespace

bool is_other_type(std::string_view name) {
  return name.find('.') != std::string_view::npos || is_type_variable(name) ||
         std::find(std::begin(kOtherTypes), std::end(kOtherTypes), name) !=
             std::end(kOtherTypes);
}

std::string help_for_type(std::string_view name) {
  std::vector<std::string_view> names;
  for (const NamedType& type : kTypes) names.push_back(type.name);
  std::string nearest = did_you_mean(name, names);
  return nearest.starts_with("did")
             ? nearest
             : "types are Tensor, int, float, bool, str, Scalar, ScalarType "
               "and "
               "lists of them, such as Tensor[] and int[2]";
}

ArgumentType argument_type(std::string_view type_name) {
  for (const NamedType& known : kTypes) {
    if (known.name == type_name) return known.type;
  }
  return ArgumentType::kOther;
}

const std::vector<EnumeratedDefault>& enumerated_defaults() {
  static const std::vector<EnumeratedDefault> kTable = {
      {"ScalarType", 4, DType::kI64},
      {"ScalarType", 6, DType::kF32},
      {"ScalarType", 11, DType::kBool},
      {"MemoryFormat", 0, NamedArg{"contiguous_format"}},
      {"MemoryFormat", 1, NamedArg{"preserve_format"}},
      {"MemoryFormat", 2, NamedArg{"channels_last"}},
      {"Layout", 0, NamedArg{"strided"}},
  };
  return kTable;
}

}  // namespace shardprop
