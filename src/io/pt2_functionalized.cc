#include "io/pt2_functionalized.h"

#include "base/index.h"
#include "base/try.h"

#include <algorithm>
#include <map>
#include <utility>

namespace shardprop::pt2 {
namespace {

constexpr std::string_view kFirstVersion =
    "torch.ops.higher_order.auto_functionalized";
constexpr std::string_view kSecondVersion =
    "torch.ops.higher_order.auto_functionalized_v2";
constexpr std::string_view kBases = "_all_bases";
constexpr std::string_view kBaseIndex = "_base_index";
// PyTorch writes it for an argument that is its entire base.
constexpr std::string_view kAlias = "_alias";

tl::unexpected<Error> wrapper_is_changed(const std::string& why) {
  return fail(ErrorCode::kHigherOrderOp, "`auto_functionalized` " + why,
              "the file was changed by hand, or written by a newer release");
}

const NamedArgument* argument_named(const Node& node, std::string_view name) {
  const auto found =
      std::find_if(node.inputs.begin(), node.inputs.end(),
                   [&](const NamedArgument& one) { return one.name == name; });
  return found == node.inputs.end() ? nullptr : &*found;
}

// Returns the results of the operator itself. An operator without results has a
// None, which is dropped.
std::vector<Argument> results_before_bases(const Node& node,
                                           std::size_t written) {
  std::vector<Argument> own(
      node.outputs.begin(),
      node.outputs.end() - static_cast<std::ptrdiff_t>(written));
  if (own.size() == 1 && std::holds_alternative<None>(own.front())) own.clear();
  return own;
}

}  // namespace

bool is_auto_functionalized(std::string_view target) {
  return target == kFirstVersion || target == kSecondVersion;
}

std::string_view wrapped_operator(const Node& node) {
  if (!is_auto_functionalized(node.target) || node.inputs.empty()) return {};
  const auto* wrapped = std::get_if<Foreign>(&node.inputs.front().value);
  return wrapped == nullptr || wrapped->kind != "as_operator"
             ? std::string_view()
             : wrapped->name;
}

Result<std::optional<FunctionalizedCall>> wrapped_call(const Node& node) {
  FunctionalizedCall call;
  call.node = node;
  call.node.target = wrapped_operator(node);
  if (call.node.target.empty()) return wrapper_is_changed("wraps no operator");
  // The first version does not list the written arguments.
  if (node.target == kFirstVersion) return std::nullopt;
  const NamedArgument* listed = argument_named(node, kBases);
  const auto* bases =
      listed == nullptr ? nullptr : std::get_if<TensorNames>(&listed->value);
  if (bases == nullptr || bases->size() > node.outputs.size()) {
    return wrapper_is_changed("does not list what it writes");
  }
  const std::size_t first = node.outputs.size() - bases->size();
  call.node.inputs.clear();
  std::map<std::int64_t, std::string_view> written_as;  // by base
  std::vector<Argument> results = results_before_bases(node, bases->size());
  for (std::size_t i = 1; i < node.inputs.size(); ++i) {
    const NamedArgument& argument = node.inputs[i];
    if (argument.name == kBases) continue;
    if (!argument.name.starts_with('_')) {
      call.node.inputs.push_back(argument);
      continue;
    }
    if (argument.name.ends_with(kAlias)) continue;
    // Any other word describes a view, or an element of a list.
    if (!argument.name.ends_with(kBaseIndex)) return std::nullopt;
    std::string_view name = argument.name.substr(1);
    name.remove_suffix(kBaseIndex.size());
    if (std::holds_alternative<None>(argument.value)) {
      call.node.inputs.push_back({name, None{}});
      continue;
    }
    const auto* base = std::get_if<std::int64_t>(&argument.value);
    if (base == nullptr || *base < 0 || index(*base) >= bases->size()) {
      return wrapper_is_changed("writes what it does not list");
    }
    // If two arguments share a base, one result cannot represent both new
    // values.
    if (!written_as.emplace(*base, name).second) return std::nullopt;
    call.node.inputs.push_back({name, TensorName{(*bases)[index(*base)]}});
    call.written.push_back(name);
    results.push_back(node.outputs[first + index(*base)]);
  }
  call.node.outputs = std::move(results);
  return call;
}

}  // namespace shardprop::pt2
