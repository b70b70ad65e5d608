// A `Choice` of a per-rank program depends on the layout: `if_cut(mat2, 0, a,
// b)` is `a` if dim 0 of `mat2` is sharded, and `b` otherwise. `if_joined(query,
// 1, a, b)` is `a` if the joined factor of dim 1 of `query` is sharded, and
// `if_unaligned` is `a` if, besides, parts of the dim are not runs of full
// elements of its first factor, or equal parts of one.
#pragma once

#include <shardprop/ops/decomposition.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace shardprop {

struct Choice {
  enum class If : std::uint8_t { kCut, kJoined, kUnaligned };
  If condition = If::kCut;
  std::int32_t operand = 0;
  int dim = 0;
  LocalRef cut;  // the value if the condition holds
  LocalRef whole;
};

// Returns the condition of that name: "if_cut".
std::optional<Choice::If> condition_named(std::string_view name);

// Encodes the choice as a step that no rank runs.
DecompositionStep step_of(const Choice& choice);
// Returns the choice that a step encodes; nullopt for other steps.
std::optional<Choice> choice_of(const DecompositionStep& step);

}  // namespace shardprop
