// PlanOptions: what a user may ask of a plan besides graph, mesh and topology.
#pragma once

#include <shardprop/plan/pin.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace shardprop {

// Whose state lies in memory beside each parameter that has a gradient, in the
// parameter's layout and dtype: none for sgd (without momentum), two tensors
// for adamw.
enum class Optimizer : std::uint8_t { kNone, kSgd, kAdamW };
std::string_view to_string(Optimizer optimizer);  // "none", "sgd", "adamw"
std::optional<Optimizer> parse_optimizer(std::string_view text);

struct PlanOptions {
  std::optional<std::int64_t> memory_limit;  // bytes a rank; none when empty
  Optimizer optimizer = Optimizer::kNone;
  // Share of a hideable transfer that compute hides, 0 to 1: gathers of
  // parameters, reductions of gradients.
  double overlap = 0;
  std::vector<Pin> pins;
  // Fails with kNoStrategy where an operator has no strategy, instead of
  // running it replicated.
  bool strict = false;

  double time_limit_seconds = 60;
  // Table entries of the solver to touch at most; a deterministic limit.
  std::optional<std::int64_t> work_limit;
  int threads = 1;
  std::uint64_t seed = 0;
};

}  // namespace shardprop
