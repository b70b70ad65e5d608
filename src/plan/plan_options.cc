#include <shardprop/plan/plan_options.h>

namespace shardprop {

std::string_view to_string(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::kNone:
      return "none";
    case Optimizer::kSgd:
      return "sgd";
    case Optimizer::kAdamW:
      return "adamw";
  }
  return "none";
}

std::optional<Optimizer> parse_optimizer(std::string_view text) {
  for (const Optimizer o :
       {Optimizer::kNone, Optimizer::kSgd, Optimizer::kAdamW}) {
    if (to_string(o) == text) return o;
  }
  return std::nullopt;
}

}  // namespace shardprop
