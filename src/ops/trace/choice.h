// A choice of a per-rank program that falls with the layout:
// `if_cut(mat2, 0, a, b)` is `a` where ranks hold parts of dim 0 of `mat2`, and
// `b` elsewhere.
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

// A step that no rank runs.
DecompositionStep step_of(const Choice& choice);
// What such a step says; nullopt for other steps.
std::optional<Choice> choice_of(const DecompositionStep& step);

}  // namespace shardprop
