// `InputKind` is the role of an input of a program.
//
//   constant          a tensor stored in the program's file
//   optimizer_state   of a parameter; zeros before the first step
//   optimizer_step    f32[]: number of the step, 1 for the first
//   learning_rate     f32[]
//   seed              i64[]: of all random numbers of a run
//
// Graphs have only parameters, buffers, constants and user inputs. The other
// kinds are additional inputs of a plan's program.
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

// Returns whether graphs have inputs of this kind.
constexpr bool is_of_graph(InputKind kind) { return kind <= InputKind::kUser; }

// Returns "parameter", "buffer", "constant", "user_input", "optimizer_state",
// ...
std::string_view to_string(InputKind kind);
std::optional<InputKind> parse_input_kind(std::string_view text);

}  // namespace shardprop
