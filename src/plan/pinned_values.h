// Which values of a graph are pinned, and to what.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/graph/graph.h>
#include <shardprop/mesh/device_mesh.h>
#include <shardprop/plan/pin.h>

#include <map>
#include <span>

namespace shardprop {

struct PinnedValue {
  Layout layout;  // canonical
  Pin pin;        // the one that asks for it
};

// Errors: kPinMatchesNothing, kPinDoesNotFit, kPinConflict.
Result<std::map<ValueId, PinnedValue>> pinned_values(const Graph& graph,
                                                     const DeviceMesh& mesh,
                                                     std::span<const Pin> pins);

}  // namespace shardprop
