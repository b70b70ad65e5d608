// The steps of a per-rank program that a layout needs.
#pragma once

#include <shardprop/strategy/local_context.h>

namespace shardprop {

// The program without if_cut() (src/ops/program_text.h) and without the steps
// that lead to nothing. Precondition: it is per rank.
Decomposition chosen_steps(const Decomposition& program,
                           const LocalContext& context);

}  // namespace shardprop
