// `OutputKind` is the role of a result of a program.
//
//   gradient    of one of the inputs
//   update      the new value of an input: a parameter or a buffer
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace shardprop {

enum class OutputKind : std::uint8_t { kUser, kLoss, kGradient, kUpdate };

// Returns "user", "loss", "gradient" or "update".
std::string_view to_string(OutputKind kind);
std::optional<OutputKind> parse_output_kind(std::string_view text);

}  // namespace shardprop
