#include "ops/space/fused_lists.h"

#include "base/index.h"

#include <optional>
#include <string_view>
#include <utility>

namespace shardprop {
namespace {

constexpr std::string_view kFused = "aten._fused_";

// Returns the common length of the tensor lists; nullopt if the lengths differ.
std::optional<std::size_t> length_of_lists(const OpSchema& op) {
  std::optional<std::size_t> length;
  for (const Argument& argument : op.args) {
    const auto* list = std::get_if<std::vector<TensorArg>>(&argument);
    if (list == nullptr || list->empty()) continue;
    if (length && *length != list->size()) return std::nullopt;
    length = list->size();
  }
  return length;
}

// Returns the same operator on lists of one element.
std::optional<ElementCall> fused_element(const OpSchema& op,
                                         std::size_t place) {
  ElementCall out;
  std::vector<GivenArgument> given;
  std::vector<TensorMeta> metas;
  const auto take = [&](TensorArg& tensor) {
    if (tensor.operand == TensorArg::kNone) return;
    out.operands.push_back(static_cast<std::size_t>(tensor.operand));
    tensor.operand = static_cast<std::int32_t>(metas.size());
    metas.push_back(op.inputs[out.operands.back()]);
  };
  for (std::size_t i = 0; i < op.args.size(); ++i) {
    if (std::holds_alternative<NoneArg>(op.args[i])) continue;
    const auto* list = std::get_if<std::vector<TensorArg>>(&op.args[i]);
    const bool is_list = list != nullptr && !list->empty();
    Argument value =
        is_list ? Argument(std::vector<TensorArg>{(*list)[place]}) : op.args[i];
    if (is_list) take(std::get<std::vector<TensorArg>>(value).front());
    if (auto* lone = std::get_if<TensorArg>(&value)) take(*lone);
    given.push_back({op.function->arguments()[i].name, std::move(value)});
  }
  auto made = make_op_schema(op.function, std::move(given), std::move(metas));
  if (!made) return std::nullopt;
  out.op = *std::move(made);
  return out;
}

}  // namespace

bool is_fused_step(const FunctionSchema& function) {
  return function.name().starts_with(kFused);
}

std::vector<ElementCall> fused_calls(const OpSchema& op) {
  if (!is_fused_step(*op.function)) return {};
  const auto length = length_of_lists(op);
  if (!length || *length < 2) return {};
  std::vector<ElementCall> calls;
  for (std::size_t place = 0; place < *length; ++place) {
    auto call = fused_element(op, place);
    if (!call) return {};
    calls.push_back(*std::move(call));
  }
  return calls;
}

}  // namespace shardprop
