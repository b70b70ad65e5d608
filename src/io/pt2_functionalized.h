// Reads calls of custom operators that run_decompositions() wraps so that they
// write nothing in place: `auto_functionalized` and `auto_functionalized_v2`.
//
//   auto_functionalized_v2(acme.accum.default, x=x, _y_base_index=0,
//                          _all_bases=[y]) -> None, y_new
//   acme.accum.default(x=x, y=y) -> y_new
#pragma once

#include <shardprop/base/result.h>

#include "io/pt2_program.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop::pt2 {

bool is_auto_functionalized(std::string_view target);

// The wrapped call. Its last results are the new values of the arguments that
// the operator writes.
struct FunctionalizedCall {
  Node node;
  std::vector<std::string_view> written;  // names of these arguments
};

// Returns nullopt if the operator writes through views of its operands or into
// lists, because only the wrapper can express that. Error: kHigherOrderOp.
Result<std::optional<FunctionalizedCall>> wrapped_call(const Node& node);

// Returns the name of the operator that a node wraps ("acme.accum.default");
// empty if it wraps none.
std::string_view wrapped_operator(const Node& node);

}  // namespace shardprop::pt2
