// Operators other than those of aten and prims: operators that take graphs
// ("higher_order.cond.default") and custom ones ("mylib.swiglu.default").
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace shardprop {

inline bool is_higher_order(std::string_view op) {
  return op.starts_with("higher_order.");
}

// Returns whether the operator runs its graphs conditionally or several times.
inline bool is_control_flow(std::string_view op) {
  constexpr std::string_view kNames[] = {
      "cond",       "switch", "while_loop", "while_loop_stack_output",
      "map",        "scan",   "map_impl",   "associative_scan",
      "foreach_map"};
  if (!is_higher_order(op)) return false;
  op.remove_prefix(op.find('.') + 1);
  op = op.substr(0, op.find('.'));
  return std::find(std::begin(kNames), std::end(kNames), op) !=
         std::end(kNames);
}

// Returns whether the operator wraps a call that writes through views of its
// operands.
inline bool is_functionalized_write(std::string_view op) {
  return op.starts_with("higher_order.auto_functionalized");
}

// Returns whether the operator is the user's own, or belongs to another library
// than PyTorch.
inline bool is_foreign(std::string_view op) {
  return !op.starts_with("aten.") && !op.starts_with("prims.");
}

// "`mylib.swiglu.default` is not an operator of aten or prims"
inline std::string what_is_foreign(std::string_view op) {
  return '`' + std::string(op) + "` " +
         (is_control_flow(op) ? "is control flow, which runs graphs of its own"
          : is_higher_order(op) ? "is a higher-order operator"
                                : "is not an operator of aten or prims");
}

// Help text: how to export the model without this operator.
inline std::string help_without_foreign(std::string_view op) {
  return is_control_flow(op)
             ? "export what runs in its place: one branch, or the loop unrolled"
             : "export the model with aten operators in its place, or give "
               "ExportedProgram.run_decompositions() a decomposition of it";
}

}  // namespace shardprop
