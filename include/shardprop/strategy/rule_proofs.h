// What the rule of an operator has been proven against, in the words of the
// catalogue: "reference", "torch", "both", "property" or "none".
//
// Data beside the rules (src/strategy/rules/proofs.txt), checked by a test:
// "torch" stands for operators whose every call in the example graphs is run
// through tests/torch/prove_rules.py. A derived overload is not named there
// unless it was proven itself.
#pragma once

#include <string_view>

namespace shardprop {

// rule_proof("aten.mm.default") == "torch"
std::string_view rule_proof(std::string_view op);

}  // namespace shardprop
