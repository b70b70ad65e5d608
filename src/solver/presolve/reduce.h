// reduce() runs all reductions in turn until none of them changes the network,
// or it is stopped. A stop leaves a valid network.
#pragma once

#include "base/budget.h"
#include "solver/model/network.h"
#include "solver/presolve/pass_table.h"

namespace shardprop::solver {

void reduce(Network& network, const PassSet& passes, PassTable& table,
            const Budget& budget);

}  // namespace shardprop::solver
