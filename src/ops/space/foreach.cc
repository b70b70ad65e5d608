#include "ops/space/foreach.h"

#include "base/index.h"
#include "ops/argument_reads.h"

#include "base/quantities.h"
#include "base/try.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace shardprop {
namespace {

constexpr std::string_view kPrefix = "_foreach_";

// `kOtherwise` lists the operators of one element to use if no operator has the
// list operator's name, or none accepts its arguments.
struct Named {
  std::string_view list;
  std::string_view element;
};
constexpr Named kOtherwise[] = {{"norm", "linalg_vector_norm"},
                                {"powsum", "linalg__powsum"},
                                {"maximum", "clamp_min"},
                                {"minimum", "clamp_max"}};

std::vector<std::string> packets_of(std::string_view ns,
                                    std::string_view base) {
  const std::string prefix = std::string(ns) + '.';
  std::vector<std::string> packets = {prefix + std::string(base)};
  for (const Named& known : kOtherwise) {
    if (known.list == base) {
      packets.push_back(prefix + std::string(known.element));
    }
  }
  return packets;
}

// Returns whether `listed` is `scalars` in one tensor, one for each element.
// Their values are known only at run time, so the call of an element omits
// them.
bool is_numbers(const ArgumentSchema& listed, const ArgumentSchema& plain) {
  return listed.name == "scalars" && listed.type == ArgumentType::kTensor &&
         !listed.is_list && plain.type == ArgumentType::kScalar &&
         !plain.is_list && plain.has_default;
}

// Returns whether an element of argument `listed` can be given as argument
// `plain`.
bool fits(const ArgumentSchema& listed, const ArgumentSchema& plain) {
  if (is_numbers(listed, plain)) return true;
  if (plain.is_list || (listed.is_optional && !plain.is_optional)) return false;
  return listed.type == plain.type &&
         (!listed.is_list || listed.type == ArgumentType::kTensor ||
          listed.type == ArgumentType::kScalar);
}

// Returns the argument of `each` that an element of `listed` can be: the one of
// the same name, or the first free one if there is no such name. Returns the
// number of arguments if none fits. (`pow.Scalar` has a number as `self`, so that
// it is not the operator of one element of `_foreach_pow.Scalar`.)
std::size_t place_of(const ArgumentSchema& listed, const FunctionSchema& each,
                     const std::vector<bool>& taken) {
  const auto& arguments = each.arguments();
  const auto can_be = [&](std::size_t i) {
    return !taken[i] && fits(listed, arguments[i]);
  };
  if (const auto named = each.argument_index(listed.name)) {
    return can_be(*named) ? *named : arguments.size();
  }
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (can_be(i)) return i;
  }
  return arguments.size();
}

std::optional<std::vector<std::size_t>> matched(const FunctionSchema& function,
                                                const FunctionSchema& each) {
  std::vector<bool> taken(each.arguments().size(), false);
  std::vector<std::size_t> out;
  for (const ArgumentSchema& listed : function.arguments()) {
    const std::size_t place = place_of(listed, each, taken);
    if (place == taken.size()) return std::nullopt;
    taken[place] = true;
    out.push_back(place);
  }
  for (std::size_t i = 0; i < taken.size(); ++i) {
    if (!taken[i] && !each.arguments()[i].has_default) return std::nullopt;
  }
  return out;
}

Argument element_of(const Argument& value, std::size_t i) {
  if (const auto* list = std::get_if<std::vector<TensorArg>>(&value)) {
    return i < list->size() ? Argument((*list)[i]) : Argument(NoneArg{});
  }
  const auto number = [&](const auto& list) {
    return i < list.size() ? Argument(list[i]) : Argument(NoneArg{});
  };
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value)) {
    return number(*list);
  }
  if (const auto* list = std::get_if<std::vector<double>>(&value)) {
    return number(*list);
  }
  if (const auto* list = std::get_if<std::vector<bool>>(&value)) {
    return i < list->size() ? Argument(bool{(*list)[i]}) : Argument(NoneArg{});
  }
  return value;
}

Result<ElementCall> element_call(const ForeachForm& form, const OpSchema& op,
                                 std::size_t i) {
  ElementCall out;
  std::vector<GivenArgument> given;
  std::vector<TensorMeta> inputs;
  for (std::size_t a = 0; a < form.arguments.size(); ++a) {
    if (form.numbers == a) continue;
    // The call of the element has the argument under another name.
    ArgumentReads::note(op.function->arguments()[a].name, Look::kValue);
    Argument value = element_of(op.args[a], i);
    if (auto* tensor = std::get_if<TensorArg>(&value);
        tensor != nullptr && tensor->operand != TensorArg::kNone) {
      const auto operand = index(tensor->operand);
      if (!op.function->arguments()[a].is_list &&
          op.inputs[operand].rank() > 0) {
        return fail(ErrorCode::kShapeMismatch,
                    "`" + op.name() + "` takes a scalar for every element",
                    "give a tensor of rank 0 as `" +
                        op.function->arguments()[a].name + "`");
      }
      tensor->operand = static_cast<std::int32_t>(inputs.size());
      inputs.push_back(op.inputs[operand]);
      out.operands.push_back(operand);
    }
    given.push_back(
        {form.each->arguments()[form.arguments[a]].name, std::move(value)});
  }
  // The operands of `each` have its own order.
  std::vector<TensorMeta> metas = inputs;
  SP_ASSIGN(out.op, make_op_schema(form.each, given, std::move(metas)));
  std::vector<std::size_t> ordered;
  for (const ArgumentSchema& declared : form.each->arguments()) {
    for (const GivenArgument& argument : given) {
      const auto* tensor = std::get_if<TensorArg>(&argument.value);
      if (argument.name == declared.name && tensor != nullptr &&
          tensor->operand != TensorArg::kNone) {
        ordered.push_back(out.operands[index(tensor->operand)]);
      }
    }
  }
  out.operands = std::move(ordered);
  return out;
}

// Finds "pow_.Tensor" for "pow.Tensor_Tensor", "add_.Scalar" for "add.Scalar".
std::shared_ptr<const FunctionSchema> in_place_of(const std::string& packet,
                                                  std::string_view overload,
                                                  const OpLibrary& library) {
  auto each = library.find(packet + "_." + std::string(overload));
  const std::size_t last = overload.rfind('_');
  if (each != nullptr || last == std::string_view::npos) return each;
  overload.remove_prefix(last + 1);
  return library.find(packet + "_." + std::string(overload));
}

}  // namespace

std::optional<ForeachForm> foreach_form(const FunctionSchema& function,
                                        const OpLibrary& library) {
  std::string_view base = function.base_name();
  if (!base.starts_with(kPrefix) || function.is_out()) return std::nullopt;
  base.remove_prefix(kPrefix.size());
  const bool in_place = base.ends_with('_');
  if (in_place) base.remove_suffix(1);
  for (const std::string& packet : packets_of(function.ns(), base)) {
    for (const std::string& name : library.overloads(packet)) {
      auto each = library.find(name);
      if (each->returns().size() != 1) continue;
      if (in_place) {
        each = in_place_of(packet, each->overload(), library);
        if (each == nullptr) continue;
      }
      if (auto arguments = matched(function, *each)) {
        std::optional<std::size_t> numbers;
        for (std::size_t a = 0; a < arguments->size(); ++a) {
          if (is_numbers(function.arguments()[a],
                         each->arguments()[(*arguments)[a]])) {
            numbers = a;
          }
        }
        return ForeachForm{std::move(each), *std::move(arguments), numbers};
      }
    }
  }
  return std::nullopt;
}

Result<std::vector<ElementCall>> element_calls(const ForeachForm& form,
                                               const OpSchema& op,
                                               const OpLibrary& library) {
  std::optional<std::size_t> count;
  bool agree = true;
  for (const Argument& argument : op.args) {
    std::optional<std::size_t> length;
    std::visit(
        [&](const auto& value) {
          using T = std::decay_t<decltype(value)>;
          if constexpr (!std::is_same_v<T, std::string> &&
                        requires { value.size(); }) {
            length = value.size();
          }
        },
        argument);
    agree = agree && (!length || !count || *length == *count);
    if (length) count = length;
  }
  if (!agree || !count || *count == 0) {
    return fail(
        ErrorCode::kShapeMismatch,
        "`" + op.name() +
            "` does not take these operands: its lists are empty or "
            "differ in length",
        "give lists of one length to `" + to_string(*op.function) + "`");
  }
  if (form.numbers) {
    const auto* numbers = std::get_if<TensorArg>(&op.args[*form.numbers]);
    if (numbers == nullptr || numbers->operand == TensorArg::kNone ||
        op.inputs[index(numbers->operand)].shape() !=
            Dims{static_cast<std::int64_t>(*count)}) {
      return fail(ErrorCode::kShapeMismatch,
                  "`" + op.name() + "` takes a number for every element",
                  "give a vector of " + counted(*count, "element") + " as `" +
                      op.function->arguments()[*form.numbers].name + "`");
    }
  }
  std::vector<ElementCall> out;
  for (std::size_t i = 0; i < *count; ++i) {
    SP_ASSIGN(ElementCall call, element_call(form, op, i));
    SP_ASSIGN(auto results, library.infer_results(call.op));
    set_results(call.op, std::move(results));
    out.push_back(std::move(call));
  }
  return out;
}

Result<std::vector<std::optional<TensorMeta>>> foreach_results(
    const ForeachForm& form, const OpSchema& op, const OpLibrary& library) {
  SP_ASSIGN(auto calls, element_calls(form, op, library));
  std::vector<std::optional<TensorMeta>> results;
  if (op.function->is_mutating()) return results;
  for (ElementCall& call : calls) {
    results.emplace_back(std::move(call.op.outputs.at(0)));
  }
  return results;
}

}  // namespace shardprop
