// Selects the steps of a per-rank program that a layout needs.
#pragma once

#include <shardprop/strategy/local_context.h>

namespace shardprop {

// Returns the program without if_cut() (src/ops/program/program_text.h) and without
// unused steps. Precondition: the program is per rank.
Decomposition chosen_steps(const Decomposition& program,
                           const LocalContext& context);

}  // namespace shardprop
