// Reads operators with effects. torch.export keeps their order by a token that
// each operator takes and returns:
//
//   with_effects(token, aten._linalg_check_errors.default, info, "solve")
//     -> (token_1, None)
//
// The nodes of the graph are in that order already. The operator therefore
// replaces its wrapper, and the token, which has no data, is dropped.
#pragma once

#include <shardprop/base/result.h>

#include "io/pt2_program.h"

#include <string_view>

namespace shardprop::pt2 {

bool is_with_effects(std::string_view target);

// Returns the call of the wrapped operator, without results if it produces
// none. Error: kHigherOrderOp if the node has no token, no operator or no
// results.
Result<Node> without_token(const Node& node);

}  // namespace shardprop::pt2
