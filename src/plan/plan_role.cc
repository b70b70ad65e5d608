#include <shardprop/plan/plan_role.h>

namespace shardprop {

std::string_view to_string(RoleUse use) {
  switch (use) {
    case RoleUse::kBatch:
      return "batch";
    case RoleUse::kTokens:
      return "tokens";
    case RoleUse::kTensor:
      return "tensor";
    case RoleUse::kExperts:
      return "experts";
    case RoleUse::kReplicated:
      return "replicated";
    case RoleUse::kBetweenBatch:
      return "between batch";
    case RoleUse::kBetweenTokens:
      return "between tokens";
    case RoleUse::kBetweenTensor:
      return "between tensor";
    case RoleUse::kParameters:
      return "parameters";
    case RoleUse::kOptimizer:
      return "optimizer";
    case RoleUse::kInputs:
      return "inputs";
  }
  return {};
}

std::optional<RoleUse> parse_role_use(std::string_view text) {
  for (const RoleUse use : kAllRoleUses) {
    if (to_string(use) == text) return use;
  }
  return std::nullopt;
}

}  // namespace shardprop
