#include <shardprop/solver/pass.h>

#include <array>

#include "base/index.h"

namespace shardprop::solver {
namespace {

constexpr std::array<std::string_view, kNumPasses> kNames = {
    "arc-consistency",  "contraction",       "separable-edges",
    "dominance",        "low-degree",        "elimination",
    "dual-bound",       "branch-and-bound",  "local-search",
    "late-elimination", "front-elimination", "probing",
    "extrapolation",    "recombination"};

}  // namespace

std::string_view pass_name(Pass pass) { return kNames[index(pass)]; }

std::optional<Pass> parse_pass(std::string_view name) {
  for (std::size_t i = 0; i < kNumPasses; ++i) {
    if (kNames[i] == name) return static_cast<Pass>(i);
  }
  return std::nullopt;
}

}  // namespace shardprop::solver
