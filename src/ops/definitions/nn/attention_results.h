// The results of the attention kernels beside the output. Kernels of different devices
// return a log-sum-exp of another layout, and other seeds.
#pragma once

#include "ops/forms/attention_space.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace shardprop::attention {

// One entry for each result after the output; nullopt if the kernel does not produce it.
using Results = std::vector<std::optional<AttentionResult>>;

Results flash(const OpCall& call, const Attention& a);
Results flash_for_cpu(const OpCall& call, const Attention& a);
Results efficient(const OpCall& call, const Attention& a);
Results cudnn(const OpCall& call, const Attention& a);
Results overrideable(const OpCall& call, const Attention& a);

// Returns the number of queries in a tile of the padded log-sum-exp. A rank's part is a
// multiple of it, so that the rank pads nothing.
std::int64_t tile_of(const Attention& a);

}  // namespace shardprop::attention
