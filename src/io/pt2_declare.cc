#include "io/pt2_declare.h"

#include <algorithm>
#include <string_view>

namespace shardprop::pt2 {
namespace {

bool is_identifier(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
           (c >= 'A' && c <= 'Z');
  });
}

std::string_view declared_type(const Argument& value) {
  struct Names {
    std::string_view operator()(const TensorName&) { return "Tensor"; }
    std::string_view operator()(const TensorNames&) { return "Tensor?[]"; }
    std::string_view operator()(std::int64_t) { return "int"; }
    std::string_view operator()(const SymName&) { return "SymInt"; }
    std::string_view operator()(const std::vector<std::int64_t>&) {
      return "int[]";
    }
    std::string_view operator()(const std::vector<SymName>&) {
      return "SymInt[]";
    }
    std::string_view operator()(double) { return "float"; }
    std::string_view operator()(const SymFloat&) { return "float"; }
    std::string_view operator()(const std::vector<double>&) {
      return "float[]";
    }
    std::string_view operator()(bool) { return "bool"; }
    std::string_view operator()(const std::vector<bool>&) { return "bool[]"; }
    std::string_view operator()(const Text&) { return "str"; }
    std::string_view operator()(const TextList&) { return "str[]"; }
    std::string_view operator()(const ScalarType&) { return "ScalarType"; }
    std::string_view operator()(const MemoryFormat&) { return "MemoryFormat"; }
    std::string_view operator()(const Layout&) { return "Layout"; }
    std::string_view operator()(const Device&) { return "Device"; }
    std::string_view operator()(const std::complex<double>&) {
      return "Scalar";
    }
    std::string_view operator()(const None&) { return "Any?"; }
    std::string_view operator()(const Subgraph&) { return "Any"; }
    std::string_view operator()(const Foreign& foreign) {
      return foreign.tensors.empty() ? "Any" : "Tensor?[]";
    }
  };
  return std::visit(Names{}, value);
}

}  // namespace

bool is_higher_order(std::string_view target) {
  constexpr std::string_view kPrefix = "torch.ops.";
  if (target.starts_with(kPrefix)) target.remove_prefix(kPrefix.size());
  return target.starts_with("higher_order.");
}

namespace {

std::string argument_name(const Node& node, std::size_t i) {
  const std::string_view own = node.inputs[i].name;
  return is_identifier(own) ? std::string(own) : "arg" + std::to_string(i);
}

// "acme.accum.default" of "torch.ops.acme.accum.default".
std::string_view without_prefix(std::string_view target) {
  constexpr std::string_view kPrefix = "torch.ops.";
  if (target.starts_with(kPrefix)) target.remove_prefix(kPrefix.size());
  return target;
}

}  // namespace

std::optional<std::string_view> tensor_of_argument(const Node& node,
                                                   std::string_view name) {
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (argument_name(node, i) != name) continue;
    const auto* tensor = std::get_if<TensorName>(&node.inputs[i].value);
    if (tensor != nullptr) return tensor->name;
  }
  return std::nullopt;
}

WrittenArguments guessed_writes(const Node& node) {
  WrittenArguments written;
  if (!node.outputs.empty()) return written;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (!std::holds_alternative<TensorName>(node.inputs[i].value)) continue;
    written.names = {argument_name(node, i)};
    break;
  }
  return written;
}

std::size_t own_results(const Node& node, const WrittenArguments& written) {
  return node.outputs.size() - (written.are_results ? written.names.size() : 0);
}

Result<std::string> declaration_of(const Node& node,
                                   const WrittenArguments& written,
                                   const OpLibrary& library) {
  const std::string_view name = without_prefix(node.target);
  const bool of_torch = name.starts_with("aten.") || name.starts_with("prims.");
  const std::size_t dot = name.find('.');
  // Higher-order operators have no overloads.
  const std::size_t second = dot == std::string_view::npos ? dot
                             : is_higher_order(name)       ? dot
                                                     : name.find('.', dot + 1);
  constexpr std::size_t kLongest = 200;
  if (of_torch || second == std::string_view::npos || name.size() > kLongest) {
    return fail(ErrorCode::kUnknownOperator,
                '`' + std::string(node.target.substr(0, kLongest)) +
                    "` is not an operator of PyTorch " +
                    std::string(torch_release()),
                library.suggest(name.substr(0, kLongest)));
  }
  std::string text(name.substr(0, dot));
  text += "::";
  text += name.substr(dot + 1);
  text += '(';
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (i > 0) text += ", ";
    text += declared_type(node.inputs[i].value);
    text += ' ' + argument_name(node, i);
  }
  text += ") -> (";
  const std::size_t own = own_results(node, written);
  for (std::size_t i = 0; i < own; ++i) {
    if (i > 0) text += ", ";
    text += declared_type(node.outputs[i]);
  }
  for (std::size_t i = 0; i < written.names.size(); ++i) {
    if (i > 0 || own > 0) text += ", ";
    text += "Tensor " + written.names[i];
  }
  return text + ')';
}

}  // namespace shardprop::pt2
