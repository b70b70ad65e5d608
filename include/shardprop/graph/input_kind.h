// InputKind: what an input of a program is there for.
//
//   constant          a tensor that stands in the program's file
//   optimizer_state   of a parameter; zeros before the first step
//   optimizer_step    f32[]: number of the step, 1 for the first
//   learning_rate     f32[]
//   seed              i64[]: of all random numbers of a run
//
// Graphs have the first four only; the others are what a plan's program takes
// beside them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace shardprop {

enum class InputKind : std::uint8_t {
  kParameter,
  kBuffer,
  kConstant,
  kUser,
  kOptimizerState,
  kOptimizerStep,
  kLearningRate,
  kSeed,
};

// Whether a graph has inputs of the kind.
constexpr bool is_of_graph(InputKind kind) { return kind <= InputKind::kUser; }

// "parameter", "buffer", "constant", "user_input", "optimizer_state", ...
std::string_view to_string(InputKind kind);
std::optional<InputKind> parse_input_kind(std::string_view text);

}  // namespace shardprop
