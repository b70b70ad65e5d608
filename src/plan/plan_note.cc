#include <shardprop/plan/plan_note.h>

#include <array>

namespace shardprop {

std::string_view code_of(const PlanNote& note) {
  // In the order of the variant's types.
  static constexpr std::array<std::string_view, std::variant_size_v<PlanNote>>
      kCodes = {"graph",
                "small_batch",
                "uneven_heads",
                "batch_norm",
                "replicated_ops",
                "unlike_layers",
                "eager_activations",
                "pipeline_dim",
                "left_out",
                "failed_part",
                "earlier_plan",
                "recompute_rules",
                "reported"};
  return kCodes[note.index()];
}

}  // namespace shardprop
