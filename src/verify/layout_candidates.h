// Lists the layouts in which the values of ranks may be right.
#pragma once

#include <shardprop/mesh/device_mesh.h>
#include <shardprop/placement/layout.h>

#include <cstdint>
#include <vector>

namespace shardprop::verification {

// `TermOps` says which terms are tried. Values of two ranks may be right under a
// maximum by chance, and half of a value may be a term or a wrong scale. kSums
// therefore means sums and means of terms that differ between ranks.
enum class TermOps : std::uint8_t { kSums, kAll };

// `LayoutChoices` says which placements are possible.
struct LayoutChoices {
  std::vector<int> sharded_dims;     // tensor dims of which ranks hold less
  std::vector<bool> may_be_partial;  // by mesh dim
  bool strided = false;              // strided shards too
  TermOps ops = TermOps::kSums;
};

// Returns the layouts, the ones with the fewest terms and shards first. If
// several mesh dims shard one tensor dim, both orders are listed.
std::vector<Layout> layout_candidates(const DeviceMesh& mesh, const Dims& whole,
                                      const LayoutChoices& choices);

}  // namespace shardprop::verification
