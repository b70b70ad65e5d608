#include "graph/view_algebra.h"

#include "ops/view_strides.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <string_view>
#include <utility>

namespace shardprop {
namespace {

template <std::size_t N>
bool among(std::string_view name,
           const std::array<std::string_view, N>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Return their argument where they can and a copy where they must.
constexpr std::array<std::string_view, 6> kMayCopy = {
    "reshape", "reshape_as", "flatten", "contiguous", "to", "type_as"};

// Keep the elements in their order.
constexpr std::array<std::string_view, 9> kReshapes = {
    "view",      "reshape", "_reshape_alias", "flatten",   "unflatten",
    "unsqueeze", "squeeze", "view_as",        "reshape_as"};

constexpr std::array<std::string_view, 7> kIdentities = {
    "alias", "detach", "lift_fresh", "contiguous", "to", "type_as", "view_of"};

bool is_copy(const OpSchema& op, const TensorMeta& from, const TensorMeta& to) {
  if (!among(op.function->base_name(), kMayCopy)) return false;
  if (op.has_arg("copy") && op.bool_arg("copy").value_or(false)) return true;
  if (from.dtype() != to.dtype() || from.numel() != to.numel()) return true;
  return view_strides(from, to.shape()) != to.strides();
}

std::optional<std::size_t> aliased_operand(const OpSchema& op,
                                           const ArgumentSchema& result) {
  if (!result.alias || result.alias->writes) return std::nullopt;
  for (std::size_t i = 0; i < op.args.size(); ++i) {
    const ArgumentSchema& argument = op.function->arguments()[i];
    const auto* tensor = std::get_if<TensorArg>(&op.args[i]);
    if (tensor != nullptr && tensor->operand != TensorArg::kNone &&
        argument.alias && argument.alias->set == result.alias->set) {
      return static_cast<std::size_t>(tensor->operand);
    }
  }
  return std::nullopt;
}

WriteBack scatter(std::string op, std::vector<GivenArgument> rest) {
  std::vector<GivenArgument> arguments = {{"self", TensorArg{0}},
                                          {"src", TensorArg{1}}};
  for (GivenArgument& argument : rest) arguments.push_back(std::move(argument));
  return {std::move(op), std::move(arguments), true};
}

WriteBack slice_scatter(std::int64_t dim, Argument start, Argument end,
                        std::int64_t step) {
  return scatter("aten.slice_scatter.default", {{"dim", dim},
                                                {"start", std::move(start)},
                                                {"end", std::move(end)},
                                                {"step", step}});
}

WriteBack select_scatter(std::int64_t dim, std::int64_t index) {
  return scatter("aten.select_scatter.default",
                 {{"dim", dim}, {"index", index}});
}

std::int64_t wrap(std::int64_t dim, int rank) {
  return dim < 0 ? dim + std::max(rank, 1) : dim;
}

std::vector<std::int64_t> permutation(const OpSchema& view, int rank) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(rank));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  if (rank < 2) return order;
  const std::string_view name = view.function->base_name();
  if (name == "permute") {
    order = view.ints_arg("dims").value_or(order);
    for (std::int64_t& dim : order) dim = wrap(dim, rank);
  } else if (name == "transpose") {
    std::swap(
        order[static_cast<std::size_t>(wrap(*view.int_arg("dim0"), rank))],
        order[static_cast<std::size_t>(wrap(*view.int_arg("dim1"), rank))]);
  } else {
    std::swap(order[order.size() - 1], order[order.size() - 2]);
  }
  return order;
}

WriteBack inverse_permutation(const OpSchema& view, int rank) {
  const std::vector<std::int64_t> order = permutation(view, rank);
  std::vector<std::int64_t> inverse(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    inverse[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  }
  return {"aten.permute.default",
          {{"self", TensorArg{0}}, {"dims", std::move(inverse)}},
          false};
}

}  // namespace

std::vector<std::optional<std::size_t>> viewed_operands(const OpSchema& op) {
  std::vector<std::optional<std::size_t>> viewed(op.outputs.size());
  std::size_t slot = 0;
  for (const ArgumentSchema& result : op.function->returns()) {
    if (result.type != ArgumentType::kTensor) continue;
    // A list of results stands last or alone, so that it takes what is left.
    const std::size_t count =
        result.is_list ? op.output_slots.size() - slot : 1;
    const auto operand = aliased_operand(op, result);
    for (std::size_t i = 0; i < count && slot < op.output_slots.size();
         ++i, ++slot) {
      const std::int32_t output = op.output_slots[slot];
      if (!operand || output == OpSchema::kNotProduced) continue;
      const auto index = static_cast<std::size_t>(output);
      if (!is_copy(op, op.inputs[*operand], op.outputs[index])) {
        viewed[index] = operand;
      }
    }
  }
  return viewed;
}

std::optional<WriteBack> write_back(const OpSchema& view, std::size_t output) {
  const std::string_view name = view.function->base_name();
  const TensorMeta& base = view.inputs.front();
  if (among(name, kIdentities)) return WriteBack{};
  if (among(name, kReshapes)) {
    if (view.outputs[output].dtype() != base.dtype()) return std::nullopt;
    const std::vector<std::int64_t> shape(base.shape().begin(),
                                          base.shape().end());
    return WriteBack{"aten.reshape.default",
                     {{"self", TensorArg{0}}, {"shape", shape}},
                     false};
  }
  if (name == "permute" || name == "transpose" || name == "t" || name == "mT") {
    return inverse_permutation(view, base.rank());
  }
  if (name == "slice") {
    return slice_scatter(*view.int_arg("dim"), view.arg("start"),
                         view.arg("end"), *view.int_arg("step"));
  }
  if (name == "select") {
    return select_scatter(*view.int_arg("dim"), *view.int_arg("index"));
  }
  if (name == "unbind") {
    return select_scatter(*view.int_arg("dim"),
                          static_cast<std::int64_t>(output));
  }
  if (name == "split" || name == "split_with_sizes" || name == "chunk") {
    const std::int64_t dim = wrap(*view.int_arg("dim"), base.rank());
    std::int64_t start = 0;
    for (std::size_t i = 0; i < output; ++i) {
      start += view.outputs[i].size(static_cast<int>(dim));
    }
    const std::int64_t end =
        start + view.outputs[output].size(static_cast<int>(dim));
    return slice_scatter(dim, start, end, 1);
  }
  return std::nullopt;
}

}  // namespace shardprop
