#include "verify/input_domains.h"

#include <shardprop/ops/row_traits.h>

#include <algorithm>
#include <string_view>
#include <variant>

namespace shardprop::verification {
namespace {

// The bound of integers that are not used as indices. It is small, so that
// products of them stay exact.
constexpr std::int64_t kFewIntegers = 3;

// Returns the argument of an operand; for an operand in a list, the argument of
// the list.
std::string_view argument_of(const OpSchema& op, std::uint32_t operand) {
  const auto named = [&](const TensorArg& tensor) {
    return tensor.operand == static_cast<std::int32_t>(operand);
  };
  for (std::size_t i = 0; i < op.args.size(); ++i) {
    const auto* one = std::get_if<TensorArg>(&op.args[i]);
    const auto* list = std::get_if<std::vector<TensorArg>>(&op.args[i]);
    if ((one != nullptr && named(*one)) ||
        (list != nullptr && std::any_of(list->begin(), list->end(), named))) {
      return op.function->arguments()[i].name;
    }
  }
  return {};
}

class Search {
 public:
  Search(const Graph& graph, const OpLibrary& library)
      : graph_(graph), library_(library), seen_(graph.values().size(), false) {}

  InputDomain of(ValueId input) {
    std::fill(seen_.begin(), seen_.end(), false);
    found_ = {};
    visit(input);
    if (found_.below == 0) found_.below = kFewIntegers;
    return found_;
  }

 private:
  void visit(ValueId id) {
    if (seen_[id.index()]) return;
    seen_[id.index()] = true;
    for (const Use& use : graph_.value(id).consumers) {
      const Node& node = graph_.node(use.node);
      const OpRow* row = library_.row(*node.op.function);
      const std::string_view argument = argument_of(node.op, use.operand);
      if (row != nullptr) {
        for (const ArgumentDomain& domain : row->definition.traits().domains) {
          if (domain.argument == argument) note(domain, node.op, use.operand);
        }
      }
      // If elements of the operand appear in the result, the users of the
      // result also restrict them.
      const bool hands_on =
          (node.op.function->is_view() && use.operand == 0) ||
          (row != nullptr && row->definition.traits().selects_from(argument));
      if (!hands_on) continue;
      for (const ValueId output : node.outputs) visit(output);
    }
  }

  void note(const ArgumentDomain& domain, const OpSchema& op,
            std::uint32_t operand) {
    found_.positive = found_.positive || domain.positive;
    found_.nonzero = found_.nonzero || domain.nonzero;
    if (domain.below == IndexBound::kNone) return;
    const std::int64_t size = index_bound(domain, op, operand);
    if (size <= 0) return;
    found_.below = found_.below == 0 ? size : std::min(found_.below, size);
  }

  const Graph& graph_;
  const OpLibrary& library_;
  std::vector<bool> seen_;
  InputDomain found_;
};

}  // namespace

std::vector<InputDomain> input_domains(const Graph& graph,
                                       const OpLibrary& library) {
  Search search(graph, library);
  std::vector<InputDomain> out;
  for (const GraphInput& input : graph.inputs()) {
    out.push_back(search.of(input.value));
  }
  return out;
}

}  // namespace shardprop::verification
