#include "io/pt2_effects.h"

#include <algorithm>
#include <string>

namespace shardprop::pt2 {

bool is_with_effects(std::string_view target) {
  return target == "torch.ops.higher_order.with_effects";
}

Result<Node> without_token(const Node& node) {
  const Foreign* within = node.inputs.size() < 2
                              ? nullptr
                              : std::get_if<Foreign>(&node.inputs[1].value);
  if (within == nullptr || within->kind != "as_operator") {
    return fail(ErrorCode::kHigherOrderOp,
                "`with_effects` takes a token and an operator",
                "the file was changed by hand, or written by a newer release");
  }
  if (node.outputs.empty() ||
      !std::holds_alternative<TensorName>(node.outputs.front())) {
    return fail(ErrorCode::kHigherOrderOp, "`with_effects` returns no token",
                "the file was changed by hand, or written by a newer release");
  }
  Node out = node;
  out.target = within->name;
  out.inputs.erase(out.inputs.begin(), out.inputs.begin() + 2);
  out.outputs.erase(out.outputs.begin());
  if (std::all_of(out.outputs.begin(), out.outputs.end(), [](const auto& made) {
        return std::holds_alternative<None>(made);
      })) {
    out.outputs.clear();
  }
  return out;
}

}  // namespace shardprop::pt2
