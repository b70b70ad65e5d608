// `op_proof` returns how an operator's definition was proven, in the words of
// the catalogue: "reference", "torch", "both", "property" or "none".
//
// The data is in src/ops/proofs.txt and is checked by a test. "torch" marks
// operators whose calls tests/torch/prove_drawn.py runs; "none" is followed by
// the reason. A derived overload is listed only if it was proven itself.
#pragma once

#include <string_view>

namespace shardprop {

// Example: op_proof("aten.mm.default") == "torch".
std::string_view op_proof(std::string_view op);

// Returns why an operator is not proven; empty if it is proven or the reason is
// unknown.
std::string_view op_unproven_reason(std::string_view op);

}  // namespace shardprop
