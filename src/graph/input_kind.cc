#include <shardprop/graph/input_kind.h>

#include "base/index.h"

#include <iterator>

namespace shardprop {
namespace {

// The names are in the order of the enum.
constexpr std::string_view kNames[] = {
    "parameter",       "buffer",         "constant",      "user_input",
    "optimizer_state", "optimizer_step", "learning_rate", "seed"};

}  // namespace

std::string_view to_string(InputKind kind) { return kNames[index(kind)]; }

std::optional<InputKind> parse_input_kind(std::string_view text) {
  for (std::size_t k = 0; k < std::size(kNames); ++k) {
    if (kNames[k] == text) return static_cast<InputKind>(k);
  }
  return std::nullopt;
}

}  // namespace shardprop
