// What an operator's row has been proven against, in the words of the
// catalogue: "reference", "torch", "both", "property" or "none".
//
// Data beside the rows (src/ops/proofs.txt), checked by a test: "torch" stands
// for operators whose calls are run through tests/torch/prove_drawn.py, "none" is
// followed by the reason. A derived overload is not named there unless it was
// proven itself.
#pragma once

#include <string_view>

namespace shardprop {

// op_proof("aten.mm.default") == "torch"
std::string_view op_proof(std::string_view op);

// Why an operator is not proven; empty where it is, or no reason is known.
std::string_view op_unproven_reason(std::string_view op);

}  // namespace shardprop
