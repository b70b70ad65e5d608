#include "ops/schema/argument_check.h"

#include <algorithm>
#include <type_traits>
#include <utility>

namespace shardprop {
namespace {

template <class T>
bool holds(const Argument& value) {
  return std::holds_alternative<T>(value);
}

bool is_number(const Argument& value) {
  return holds<bool>(value) || holds<std::int64_t>(value) ||
         holds<double>(value) || holds<std::complex<double>>(value);
}

bool is_empty_list(const Argument& value) {
  return std::visit(
      [](const auto& v) {
        using T = std::decay_t<decltype(v)>;
        if constexpr (!std::is_same_v<T, std::string> &&
                      requires { v.empty(); }) {
          return v.empty();
        } else {
          return false;
        }
      },
      value);
}

template <class To, class From>
std::vector<To> convert(const std::vector<From>& from) {
  std::vector<To> to;
  to.reserve(from.size());
  for (const auto& element : from) to.push_back(static_cast<To>(element));
  return to;
}

std::optional<Argument> fit_list(const ArgumentSchema& declared,
                                 Argument value) {
  const auto filled = [&](const auto& one) {
    using T = std::decay_t<decltype(one)>;
    return Argument(std::vector<T>(
        static_cast<std::size_t>(declared.list_size.value_or(1)), one));
  };
  const bool empty = is_empty_list(value);
  switch (declared.type) {
    case ArgumentType::kTensor:
      if (empty) return Argument(std::vector<TensorArg>{});
      if (!holds<std::vector<TensorArg>>(value)) return std::nullopt;
      if (!declared.elements_optional) {
        for (const TensorArg& t : std::get<std::vector<TensorArg>>(value)) {
          if (t.operand == TensorArg::kNone) return std::nullopt;
        }
      }
      return value;
    case ArgumentType::kInt:
      if (empty) return Argument(std::vector<std::int64_t>{});
      if (const auto* one = std::get_if<std::int64_t>(&value)) {
        return filled(*one);
      }
      if (holds<std::vector<std::int64_t>>(value)) return value;
      return std::nullopt;
    case ArgumentType::kFloat:
      if (empty) return Argument(std::vector<double>{});
      if (const auto* one = std::get_if<double>(&value)) return filled(*one);
      if (const auto* one = std::get_if<std::int64_t>(&value)) {
        return filled(static_cast<double>(*one));
      }
      if (const auto* ints = std::get_if<std::vector<std::int64_t>>(&value)) {
        return Argument(convert<double>(*ints));
      }
      if (holds<std::vector<double>>(value)) return value;
      return std::nullopt;
    case ArgumentType::kBool:
      if (empty) return Argument(std::vector<bool>{});
      if (const auto* one = std::get_if<bool>(&value)) return filled(*one);
      if (holds<std::vector<bool>>(value)) return value;
      return std::nullopt;
    case ArgumentType::kScalar:
      if (empty || holds<std::vector<std::int64_t>>(value) ||
          holds<std::vector<double>>(value) ||
          holds<std::vector<bool>>(value)) {
        return value;
      }
      return std::nullopt;
    case ArgumentType::kString:
      if (empty) return Argument(std::vector<std::string>{});
      if (holds<std::vector<std::string>>(value)) return value;
      return std::nullopt;
    default:
      return value;
  }
}

std::optional<Argument> fit_one(const ArgumentSchema& declared,
                                Argument value) {
  switch (declared.type) {
    case ArgumentType::kTensor:
      if (const auto* tensor = std::get_if<TensorArg>(&value)) {
        if (tensor->operand == TensorArg::kNone) return std::nullopt;
        return value;
      }
      // A Python number represents a tensor of rank 0.
      if (is_number(value) && !declared.alias) return value;
      return std::nullopt;
    case ArgumentType::kInt:
      if (holds<std::int64_t>(value) || holds<bool>(value)) return value;
      return std::nullopt;
    case ArgumentType::kFloat:
      if (const auto* integer = std::get_if<std::int64_t>(&value)) {
        return Argument(static_cast<double>(*integer));
      }
      if (holds<double>(value) || holds<bool>(value)) return value;
      return std::nullopt;
    case ArgumentType::kBool:
      if (holds<bool>(value)) return value;
      return std::nullopt;
    case ArgumentType::kScalar:
      if (is_number(value)) return value;
      return std::nullopt;
    case ArgumentType::kString:
      if (holds<std::string>(value)) return value;
      return std::nullopt;
    case ArgumentType::kDType:
      if (holds<DType>(value)) return value;
      return std::nullopt;
    case ArgumentType::kLayout:
    case ArgumentType::kMemoryFormat:
    case ArgumentType::kDevice:
      if (auto* text = std::get_if<std::string>(&value)) {
        return Argument(NamedArg{std::move(*text)});
      }
      if (holds<NamedArg>(value)) return value;
      return std::nullopt;
    case ArgumentType::kGenerator:
    case ArgumentType::kOther:
      return value;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Argument> fit_argument(const ArgumentSchema& declared,
                                     Argument value) {
  const auto* tensor = std::get_if<TensorArg>(&value);
  const bool absent =
      holds<NoneArg>(value) ||
      (tensor != nullptr && tensor->operand == TensorArg::kNone);
  if (absent) {
    // An undefined tensor is accepted even if the declaration requires one (the
    // attn_bias of attention's backward). A generator is None if the default
    // generator is meant.
    if (declared.is_optional || declared.is_tensor() ||
        declared.type == ArgumentType::kGenerator ||
        declared.type == ArgumentType::kOther ||
        (declared.has_default && holds<NoneArg>(declared.default_value))) {
      return Argument(NoneArg{});
    }
    return std::nullopt;
  }
  return declared.is_list ? fit_list(declared, std::move(value))
                          : fit_one(declared, std::move(value));
}

bool fits_as_default(const ArgumentSchema& declared) {
  const Argument& value = declared.default_value;
  const auto& type = declared.type;
  const bool is_enumeration =
      !declared.is_list &&
      (type == ArgumentType::kDType || type == ArgumentType::kLayout ||
       type == ArgumentType::kMemoryFormat);
  if (is_enumeration && holds<std::int64_t>(value)) return true;
  // A declaration of PyTorch may have an undefined tensor as the default of `Tensor x`.
  if (holds<NoneArg>(value)) {
    return declared.is_optional || declared.is_tensor() ||
           type == ArgumentType::kGenerator || type == ArgumentType::kOther;
  }
  if (type == ArgumentType::kOther) return true;
  // Calls may pass a bool or a number in more places than a declaration.
  if (type == ArgumentType::kTensor && !declared.is_list) return false;
  if (type == ArgumentType::kGenerator) return false;
  const bool is_number_type =
      type == ArgumentType::kInt || type == ArgumentType::kFloat;
  if (is_number_type && holds<bool>(value)) return false;
  const bool is_list =
      value.index() >= Argument(std::vector<TensorArg>{}).index();
  // A number is the default of a list of a stated length.
  if (declared.is_list && !is_list && !declared.list_size) return false;
  return fit_argument(declared, value).has_value();
}

std::string example_of(const ArgumentSchema& declared) {
  std::string_view value;
  switch (declared.type) {
    case ArgumentType::kInt:
      value = declared.is_list ? "[1]" : "1";
      break;
    case ArgumentType::kFloat:
    case ArgumentType::kScalar:
      value = declared.is_list ? "[1.0]" : "1.0";
      break;
    case ArgumentType::kBool:
      value = declared.is_list ? "[True]" : "True";
      break;
    case ArgumentType::kString:
      value = declared.is_list ? "['a']" : "'a'";
      break;
    case ArgumentType::kTensor:
      value = declared.is_list ? "[]" : "None";
      break;
    case ArgumentType::kDevice:
      value = "'cpu'";
      break;
    case ArgumentType::kDType:
    case ArgumentType::kLayout:
    case ArgumentType::kMemoryFormat:
    case ArgumentType::kGenerator:
    case ArgumentType::kOther:
      value = "None";
      break;
  }
  return '`' + declared.name + '=' + std::string(value) + '`';
}

std::string describe_type(const ArgumentSchema& declared) {
  std::string out = declared.type_name;
  if (declared.elements_optional) out += '?';
  if (declared.is_list) {
    out += '[';
    if (declared.list_size) out += std::to_string(*declared.list_size);
    out += ']';
  }
  if (declared.is_optional) out += '?';
  return out;
}

std::string_view describe_value(const Argument& value) {
  static constexpr std::string_view kNames[] = {
      "None",
      "a bool",
      "an int",
      "a float",
      "a complex number",
      "a string",
      "a dtype",
      "a named setting",
      "a tensor",
      "a list of tensors",
      "a list of ints",
      "a list of floats",
      "a list of bools",
      "a list of strings",
  };
  static_assert(std::size(kNames) == std::variant_size_v<Argument>);
  return kNames[value.index()];
}

}  // namespace shardprop
