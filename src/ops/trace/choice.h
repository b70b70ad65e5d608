// A `Choice` of a per-rank program depends on the layout: `if_cut(mat2, 0, a,
// b)` is `a` if dim 0 of `mat2` is sharded, and `b` otherwise.
#pragma once

#include <shardprop/ops/decomposition.h>

#include <cstdint>
#include <optional>

namespace shardprop {

struct Choice {
  std::int32_t operand = 0;
  int dim = 0;
  LocalRef cut;
  LocalRef whole;
};

// Encodes the choice as a step that no rank runs.
DecompositionStep step_of(const Choice& choice);
// Returns the choice that a step encodes; nullopt for other steps.
std::optional<Choice> choice_of(const DecompositionStep& step);

}  // namespace shardprop
