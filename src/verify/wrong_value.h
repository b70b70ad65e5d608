// Says how a wrong value differs: the layout or factor in which it is right,
// and an element.
#pragma once

#include "verify/layout_fit.h"

#include <shardprop/graph/graph.h>
#include <shardprop/verify/verify_rank_programs.h>

#include <optional>
#include <string>
#include <vector>

namespace shardprop::verification {

// Sets the layout, the factor, the element and the sentences. `held` is by
// index on the mesh.
void explain(const RankValues& values, const DeviceMesh& mesh,
             const std::vector<LocalTensor>& held, const LocalTensor& whole,
             WrongValue& wrong);

// Adds the sentence about a value that the wrong one reads and that has terms.
void explain_terms(const DeviceMesh& mesh, WrongValue& wrong);

}  // namespace shardprop::verification
