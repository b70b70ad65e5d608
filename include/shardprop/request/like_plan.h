// pins_like() lays out the parameters and buffers of a graph as an earlier plan
// does, so that two programs of one model share their weights and caches: the
// prefill and the decode of a server, or an evaluation beside a training step.
//
//   Plan prefill = load_plan("prefill.json", "--like prefill.json").value();
//   std::vector<Pin> pins = pins_like(prefill, decode, mesh).value();
//   to_string(pins[0]);   // "stored:layers.*.k_cache=R,S(1)"
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/graph/graph.h>
#include <shardprop/mesh/device_mesh.h>
#include <shardprop/plan/pin.h>
#include <shardprop/plan/plan.h>

#include <vector>

namespace shardprop {

// Returns pins for the layouts between steps of the parameters and buffers that the
// plan has, too: tensors with the same name, kind and shape. If both programs train,
// the layouts of gradients and optimizer states are pinned as well. Names that differ
// in numbers share a pin if their layouts are equal. A tensor that the plan does not
// have stays free. Errors: kPlanNotRunnable (the file holds no plan), kPlanOtherGraph
// (the plan has another mesh, or none of these tensors).
Result<std::vector<Pin>> pins_like(const Plan& plan, const Graph& graph,
                                   const DeviceMesh& mesh);

}  // namespace shardprop
