// OutputKind: what a result of a program is there for.
//
//   gradient    of one of the inputs
//   update      what one of the inputs becomes: a parameter, a buffer
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace shardprop {

enum class OutputKind : std::uint8_t { kUser, kLoss, kGradient, kUpdate };

// "user", "loss", "gradient", "update".
std::string_view to_string(OutputKind kind);
std::optional<OutputKind> parse_output_kind(std::string_view text);

}  // namespace shardprop
