// Operators with effects, which torch.export keeps in order by a token that
// each takes and hands on:
//
//   with_effects(token, aten._linalg_check_errors.default, info, "solve")
//     -> (token_1, None)
//
// The order of the nodes is that order already, so the operator stands for
// itself and the token, which holds nothing, is left out.
#pragma once

#include <shardprop/base/result.h>

#include "io/pt2_program.h"

#include <string_view>

namespace shardprop::pt2 {

bool is_with_effects(std::string_view target);

// The call of the operator within, without results where it makes none.
// Error: kHigherOrderOp where no token, operator or results stand in it.
Result<Node> without_token(const Node& node);

}  // namespace shardprop::pt2
