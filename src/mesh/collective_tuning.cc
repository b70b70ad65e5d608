#include <shardprop/mesh/collective_tuning.h>

#include <shardprop/base/error.h>

namespace shardprop {

const CollectiveTuning& collective_tuning(Generation generation) {
  static const CollectiveTuning ampere{.node_channels = 12,
                                       .ll_cap = {87.7, 39, 20.4},
                                       .ring_ll128_channel = 20,
                                       .tree_channel = {24, 23.6, 17.8},
                                       .tree_ll128_channel = {20, 20, 20},
                                       .nvls_share = 0};
  static const CollectiveTuning hopper{.ll_cap = {141, 39, 20.4},
                                       .ring_ll128_channel = 36.7,
                                       .tree_channel = {38.7, 41.4, 36},
                                       .tree_ll128_channel = {36.7, 36.7, 29},
                                       .nvls_share = 0.85};
  static const CollectiveTuning blackwell{
      .ll_cap = {282, 39, 20.4},
      .ring_ll128_channel = 40,
      .tree_channel = {70, 42.8, 24},
      .tree_ll128_channel = {55.6, 31.7, 20},
      .nvls_share = 0.74};
  switch (generation) {
    case Generation::kAmpere:
      return ampere;
    case Generation::kHopper:
      return hopper;
    case Generation::kBlackwell:
      return blackwell;
  }
  throw InternalError("a generation outside its enumeration");
}

double at_nodes(const PerNodes& values, std::int64_t nodes) {
  if (nodes >= 4) return values[2];
  return values[nodes >= 2 ? 1 : 0];
}

}  // namespace shardprop
