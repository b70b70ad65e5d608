// `PlanRole` is one use of a mesh dim, with its share:
//
//   {RoleUse::kTensor, "tp", 800, {{"mlp.up"}, {"attn.o", true}}}
//
// says that tp shards 80 % of the arithmetic of matmuls by features, all of it
// in mlp.up and part of it in attn.o.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {

// `RoleUse` is the use of a mesh dim. It decides which quantity
// `PlanRole::permille` measures.
enum class RoleUse : std::uint8_t {
  // The arithmetic of matmuls that the mesh dim shards in this way, or that is
  // replicated over it.
  kBatch,
  kTokens,
  kTensor,  // features or heads
  kExperts,
  kReplicated,
  // The time of operators between matmuls.
  kBetweenBatch,
  kBetweenTokens,
  kBetweenTensor,
  // The bytes that are stored in shards. Parameters that all consumers read in
  // the same shards are not counted, since they belong to the sharding of
  // matmuls.
  kParameters,
  kOptimizer,  // state of the optimizer
  kInputs,
};
inline constexpr RoleUse kAllRoleUses[] = {
    RoleUse::kBatch,         RoleUse::kTokens,        RoleUse::kTensor,
    RoleUse::kExperts,       RoleUse::kReplicated,    RoleUse::kBetweenBatch,
    RoleUse::kBetweenTokens, RoleUse::kBetweenTensor, RoleUse::kParameters,
    RoleUse::kOptimizer,     RoleUse::kInputs};
// "batch", "tokens", "tensor", "experts", "replicated", "between batch",
// "between tokens", "between tensor", "parameters", "optimizer", "inputs".
std::string_view to_string(RoleUse use);
std::optional<RoleUse> parse_role_use(std::string_view text);

// `RoleModule` is a module with layers folded: self_attn.q_proj.
struct RoleModule {
  std::string name;
  bool is_part = false;  // other parts of the module have another role
  friend bool operator==(const RoleModule&, const RoleModule&) = default;
};

struct PlanRole {
  RoleUse use = RoleUse::kReplicated;
  std::string mesh_dim;
  std::int64_t permille = 0;
  std::vector<RoleModule> modules;
  friend bool operator==(const PlanRole&, const PlanRole&) = default;
};

}  // namespace shardprop
