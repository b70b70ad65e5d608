// Follows the factors of an operator through its per-rank program, up to the
// tensors that collectives move:
//
//   cumsum f32[5,6], dim 1, ab->ab:
//     %0 = sum(self, 1, True)        [5,1]  a,
//     %1 = unsqueeze(%0, 0)          [1,5,1]  ,a,
//     %2 = all_gather(%1)            each rank gives its part of a
//     %3 = full([1], offset(self))   [1]    none: as long on every rank
#pragma once

#include <shardprop/ops/decomposition.h>
#include <shardprop/ops/index_space.h>
#include <shardprop/ops/op_library.h>

namespace shardprop {

// Fills in RankCollective::dims; `space` is the index space of the program's
// operator. The index spaces of the steps show which factors their results
// have. A dim that is created from a local size alone (arange) counts as having
// no factor. Precondition: program.per_rank.
void note_factors(Decomposition& program, const IndexSpace& space,
                  const OpLibrary& library);

}  // namespace shardprop
