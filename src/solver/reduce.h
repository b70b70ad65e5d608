// All reductions in turns until none of them changes the network.
#pragma once

#include "solver/network.h"
#include "solver/pass_clock.h"

namespace shardprop::solver {

void reduce(Network& network, const PassSet& passes, PassClock& clock);

}  // namespace shardprop::solver
