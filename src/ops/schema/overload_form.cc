#include "ops/schema/overload_form.h"

#include "base/index.h"
#include "ops/schema/schema_parser.h"
#include "ops/space/foreach.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace shardprop {
namespace {

bool is_written(const ArgumentSchema& argument) {
  return argument.alias && argument.alias->writes;
}

// Functional names that do not follow from the name of the mutating overload.
struct Irregular {
  std::string_view mutating;
  std::string_view functional;
};
constexpr Irregular kIrregular[] = {
    {"aten._native_batch_norm_legit.default",
     "aten._native_batch_norm_legit_functional.default"},
    {"aten._batch_norm_with_update.default",
     "aten._batch_norm_with_update_functional.default"},
    {"aten.normal_.default", "aten.normal_functional.default"},
    {"aten.rrelu_with_noise.default",
     "aten.rrelu_with_noise_functional.default"},
    {"prims.copy_to.default", "aten.copy.default"},
};

// Returns overloads that may be the functional one, the likeliest first.
std::vector<std::string> candidates(const FunctionSchema& mutating,
                                    const OpLibrary& library) {
  for (const Irregular& known : kIrregular) {
    if (known.mutating == mutating.name()) {
      return {std::string(known.functional)};
    }
  }
  const std::string ns = std::string(mutating.ns()) + '.';
  std::string base(mutating.base_name());
  const std::string overload(mutating.overload());
  if (!mutating.is_out()) {
    if (base.starts_with("__i") && base.ends_with("__")) {
      return {ns + "__" + base.substr(3) + '.' + overload};
    }
    if (base.back() != '_') return {};
    base.pop_back();
    std::vector<std::string> names = {ns + base + '.' + overload};
    for (std::string& name : library.overloads(ns + base)) {
      names.push_back(std::move(name));
    }
    return names;
  }
  // "dim_IntList_out", "out" and "grad_input" are out= overloads of
  // "dim_IntList" and "default". The overload without the suffix "_out" is
  // tried first, then every functional overload.
  std::vector<std::string> names;
  constexpr std::string_view kSuffix = "_out";
  if (overload.size() > kSuffix.size() && overload.ends_with(kSuffix)) {
    names.push_back(ns + base + '.' +
                    overload.substr(0, overload.size() - kSuffix.size()));
  }
  for (std::string& name : library.overloads(ns + base)) {
    names.push_back(std::move(name));
  }
  return names;
}

// Argument names differ in two cases: dropout_(self, ...) is dropout(input,
// ...) in place, and prims.copy_to(a, b) is copy(self, src).
bool same_name(std::string_view mutating, std::string_view functional) {
  return functional == mutating ||
         (mutating == "self" && functional == "input") ||
         (mutating == "a" && functional == "self") ||
         (mutating == "b" && functional == "src");
}

std::optional<std::size_t> place_of(std::string_view functional,
                                    const FunctionSchema& mutating) {
  if (const auto exact = mutating.argument_index(functional)) return exact;
  const auto& arguments = mutating.arguments();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (same_name(arguments[i].name, functional)) return i;
  }
  return std::nullopt;
}

// Returns whether the functional overload declares the same arguments, except
// out= arguments. Additional arguments keep their defaults.
bool same_arguments(const FunctionSchema& mutating,
                    const FunctionSchema& functional) {
  const auto& others = functional.arguments();
  std::size_t next = 0;
  for (const ArgumentSchema& argument : mutating.arguments()) {
    if (is_written(argument) && argument.keyword_only) continue;
    while (next < others.size() && others[next].has_default &&
           !same_name(argument.name, others[next].name)) {
      ++next;
    }
    if (next >= others.size()) return false;
    const ArgumentSchema& other = others[next++];
    if (!same_name(argument.name, other.name) || other.type != argument.type ||
        other.is_list != argument.is_list || is_written(other)) {
      return false;
    }
  }
  for (; next < others.size(); ++next) {
    if (!others[next].has_default) return false;
  }
  return true;
}

std::optional<std::size_t> written_by(const FunctionSchema& mutating,
                                      const ArgumentSchema& result) {
  if (!result.alias || !result.alias->writes) return std::nullopt;
  for (std::size_t i = 0; i < mutating.arguments().size(); ++i) {
    const ArgumentSchema& argument = mutating.arguments()[i];
    if (is_written(argument) && argument.alias->set == result.alias->set)
      return i;
  }
  return std::nullopt;
}

std::optional<OverloadForm> match(
    const FunctionSchema& mutating,
    std::shared_ptr<const FunctionSchema> functional) {
  if (!same_arguments(mutating, *functional)) return std::nullopt;
  for (const ArgumentSchema& argument : mutating.arguments()) {
    // The declaration does not state the length of an out= list.
    const bool is_out = is_written(argument) && argument.keyword_only;
    if (is_out && argument.is_list) return std::nullopt;
  }
  OverloadForm form;
  const std::size_t returned = functional->returns().size();
  std::size_t next = 0;
  std::vector<bool> has_result(mutating.arguments().size(), false);
  for (const ArgumentSchema& result : mutating.returns()) {
    if (next >= returned) return std::nullopt;
    if (const auto argument = written_by(mutating, result)) {
      form.writes.push_back({*argument, next});
      form.results.emplace_back(std::nullopt);
      has_result[*argument] = true;
    } else {
      form.results.emplace_back(next);
    }
    ++next;
  }
  // Arguments that are written but not returned follow, in declared order.
  for (std::size_t i = 0; i < mutating.arguments().size(); ++i) {
    if (!is_written(mutating.arguments()[i]) || has_result[i]) continue;
    if (next >= returned) return std::nullopt;
    form.writes.push_back({i, next++});
  }
  if (next != returned) return std::nullopt;
  for (const OverloadForm::Write& write : form.writes) {
    if (mutating.arguments()[write.argument].is_list !=
        functional->returns()[write.result].is_list) {
      return std::nullopt;
    }
  }
  form.functional = std::move(functional);
  return form;
}

std::string without_aliases(std::vector<ArgumentSchema>::const_iterator begin,
                            std::vector<ArgumentSchema>::const_iterator end) {
  std::string text;
  for (auto at = begin; at != end; ++at) {
    if (!text.empty()) text += ", ";
    ArgumentSchema plain = *at;
    plain.alias.reset();
    text += to_string(plain);
  }
  return text;
}

// Returns the functional form of an operator that only the user declares. It
// has the same arguments, and returns the new value of each written argument
// under the argument's name.
//
//   acme::accum(Tensor x, Tensor(a!) y) -> ()
//   acme::accum(Tensor x, Tensor y) -> Tensor y
std::shared_ptr<const FunctionSchema> functional_of(
    const FunctionSchema& mutating) {
  const auto& arguments = mutating.arguments();
  std::vector<ArgumentSchema> returns;
  std::vector<bool> is_returned(arguments.size(), false);
  const auto return_new = [&](std::size_t argument) {
    ArgumentSchema result = arguments[argument];
    result.has_default = false;
    returns.push_back(std::move(result));
    is_returned[argument] = true;
  };
  for (const ArgumentSchema& result : mutating.returns()) {
    if (const auto argument = written_by(mutating, result)) {
      return_new(*argument);
    } else {
      returns.push_back(result);
    }
  }
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (is_written(arguments[i]) && !is_returned[i]) return_new(i);
  }
  const auto keywords =
      std::find_if(arguments.begin(), arguments.end(),
                   [](const ArgumentSchema& one) { return one.keyword_only; });
  std::string text = std::string(mutating.ns()) +
                     "::" + std::string(mutating.base_name()) + '.' +
                     std::string(mutating.overload()) + '(' +
                     without_aliases(arguments.begin(), keywords);
  if (keywords != arguments.end()) {
    if (keywords != arguments.begin()) text += ", ";
    text += "*, " + without_aliases(keywords, arguments.end());
  }
  text += ") -> (" + without_aliases(returns.begin(), returns.end()) + ')';
  auto schema = FunctionSchema::parse(text, "functional_form");
  if (!schema) return nullptr;
  return std::make_shared<const FunctionSchema>(*std::move(schema));
}

}  // namespace

std::optional<OverloadForm> overload_form(const FunctionSchema& mutating,
                                          const OpLibrary& library) {
  // In-place foreach overloads derive from the plain overload.
  if (foreach_form(mutating, library)) return std::nullopt;
  for (const std::string& name : candidates(mutating, library)) {
    if (auto functional = library.find(name)) {
      if (auto form = match(mutating, std::move(functional))) return form;
    }
  }
  // Only a user's own operator gets a generated functional form. An operator of
  // PyTorch without a functional overload is not functional at all.
  const bool is_foreign = mutating.ns() != "aten" && mutating.ns() != "prims";
  if (!is_foreign || mutating.is_out()) return std::nullopt;
  auto functional = functional_of(mutating);
  if (functional == nullptr) return std::nullopt;
  return match(mutating, std::move(functional));
}

std::vector<TensorWrite> tensor_writes(const OverloadForm& form,
                                       const OpSchema& op) {
  const auto operands = [&](std::size_t argument) {
    std::vector<std::size_t> found;
    const auto take = [&](const TensorArg& tensor) {
      if (tensor.operand != TensorArg::kNone) {
        found.push_back(static_cast<std::size_t>(tensor.operand));
      }
    };
    if (const auto* one = std::get_if<TensorArg>(&op.args[argument]))
      take(*one);
    if (const auto* list =
            std::get_if<std::vector<TensorArg>>(&op.args[argument])) {
      for (const TensorArg& tensor : *list) take(tensor);
    }
    return found;
  };
  // A list of results is as long as the list of tensors that it is written to.
  const auto& returns = form.functional->returns();
  std::vector<std::size_t> lengths(returns.size(), 1);
  for (const OverloadForm::Write& write : form.writes) {
    if (returns[write.result].is_list) {
      lengths[write.result] = operands(write.argument).size();
    }
  }
  std::vector<TensorWrite> out;
  for (const OverloadForm::Write& write : form.writes) {
    std::size_t result = 0;
    for (std::size_t r = 0; r < write.result; ++r) result += lengths[r];
    for (const std::size_t operand : operands(write.argument)) {
      out.push_back({write.argument, operand, result++});
    }
  }
  return out;
}

Result<OpSchema> rebind(const OpSchema& op,
                        std::shared_ptr<const FunctionSchema> function,
                        std::vector<std::size_t>& kept) {
  std::vector<GivenArgument> given;
  std::vector<TensorMeta> inputs;
  kept.clear();
  const auto keep = [&](TensorArg& tensor) {
    if (tensor.operand == TensorArg::kNone) return;
    const auto operand = index(tensor.operand);
    tensor.operand = static_cast<std::int32_t>(inputs.size());
    inputs.push_back(op.inputs[operand]);
    kept.push_back(operand);
  };
  for (const ArgumentSchema& declared : function->arguments()) {
    const auto index = place_of(declared.name, *op.function);
    if (!index) continue;
    Argument value = op.args[*index];
    if (auto* tensor = std::get_if<TensorArg>(&value)) keep(*tensor);
    if (auto* list = std::get_if<std::vector<TensorArg>>(&value)) {
      for (TensorArg& tensor : *list) keep(tensor);
    }
    given.push_back({declared.name, std::move(value)});
  }
  return make_op_schema(std::move(function), std::move(given),
                        std::move(inputs));
}

}  // namespace shardprop
