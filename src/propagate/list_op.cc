#include "propagate/list_op.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace shardprop {
namespace {

constexpr std::string_view kPrefix = "_foreach_";

// The length of the first list of tensors; nullopt where lists of tensors have
// none or differ.
std::optional<std::size_t> list_length(const OpSchema& op) {
  std::optional<std::size_t> length;
  for (const Argument& argument : op.args) {
    const auto* list = std::get_if<std::vector<TensorArg>>(&argument);
    if (list == nullptr) continue;
    if (length && *length != list->size()) return std::nullopt;
    length = list->size();
  }
  return length;
}

// The k-th element of an argument of lists; what is no list is every element's.
std::optional<Argument> element(const Argument& argument, std::size_t k,
                                std::size_t length) {
  const auto pick = [&](const auto& list) -> std::optional<Argument> {
    if (list.size() != length) return std::nullopt;
    return Argument(list[k]);
  };
  if (const auto* t = std::get_if<std::vector<TensorArg>>(&argument)) {
    return pick(*t);
  }
  if (const auto* f = std::get_if<std::vector<double>>(&argument)) {
    return pick(*f);
  }
  if (const auto* i = std::get_if<std::vector<std::int64_t>>(&argument)) {
    return pick(*i);
  }
  return argument;
}

// The k-th element's call of `each`, arguments by position.
std::optional<ElementCall> element_call(
    const OpSchema& op, const std::shared_ptr<const FunctionSchema>& each,
    std::size_t k, std::size_t length) {
  ElementCall call;
  std::vector<GivenArgument> given;
  std::vector<TensorMeta> metas;
  const auto& declared = op.function->arguments();
  std::size_t position = 0;
  for (std::size_t a = 0; a < op.args.size(); ++a) {
    auto value = element(op.args[a], k, length);
    if (!value) return std::nullopt;
    if (auto* tensor = std::get_if<TensorArg>(&*value)) {
      if (tensor->operand == TensorArg::kNone) return std::nullopt;
      call.operands.push_back(static_cast<std::size_t>(tensor->operand));
      metas.push_back(op.inputs[call.operands.back()]);
      tensor->operand = static_cast<std::int32_t>(metas.size() - 1);
    }
    // By name where it has one there too, else by position.
    const auto named = each->argument_index(declared[a].name);
    const std::size_t at = named ? *named : position;
    if (at >= each->arguments().size()) return std::nullopt;
    if (!each->arguments()[at].keyword_only) position = at + 1;
    call.arguments.push_back(at);
    given.push_back({each->arguments()[at].name, *std::move(value)});
  }
  auto made = make_op_schema(each, std::move(given), std::move(metas));
  if (!made) return std::nullopt;
  call.op = *std::move(made);
  return call;
}

}  // namespace

std::optional<std::vector<ElementCall>> element_calls(const OpLibrary& library,
                                                      const OpSchema& op) {
  std::string_view base = op.function->base_name();
  if (!base.starts_with(kPrefix) || op.function->is_out()) return std::nullopt;
  base.remove_prefix(kPrefix.size());
  const bool in_place = base.ends_with('_');
  if (in_place) base.remove_suffix(1);
  const auto length = list_length(op);
  if (!length || *length == 0) return std::nullopt;
  const std::string packet =
      std::string(op.function->ns()) + '.' + std::string(base);
  for (const std::string& name : library.overloads(packet)) {
    auto each = library.find(name);
    if (each == nullptr || each->returns().size() != 1) continue;
    if (in_place) {
      each = library.find(packet + "_." + std::string(each->overload()));
      if (each == nullptr) continue;
    }
    std::vector<ElementCall> calls;
    for (std::size_t k = 0; k < *length; ++k) {
      auto call = element_call(op, each, k, *length);
      if (!call || !library.infer_results(call->op)) break;
      calls.push_back(*std::move(call));
    }
    if (calls.size() == *length) return calls;
  }
  return std::nullopt;
}

}  // namespace shardprop
