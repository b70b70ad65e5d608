// `jax_specs` expresses a plan in JAX's notation as far as possible: a
// PartitionSpec for each parameter, input and output.
//
//   f32[64,32] S(0),R on dp=2,tp=2            P("dp", None)
//   f32[64,32] S(0),S(0)                      P(("dp", "tp"), None)
//   f32[64,32] S(0)@1,S(0)@0                  P(("tp", "dp"), None)
//
// A PartitionSpec can only express shards of equal size in one run. Layouts
// that are not expressible are listed. XLA chooses the layouts between inputs
// and outputs.
#pragma once

#include <shardprop/plan/pin.h>
#include <shardprop/plan/plan.h>
#include <shardprop/report/unsaid_layout.h>

#include <string>
#include <vector>

namespace shardprop {

// `JaxSpec` is the PartitionSpec of one value.
struct JaxSpec {
  std::string name;
  // By tensor dim: the mesh dims that shard it, outermost first; empty means
  // None.
  std::vector<std::vector<std::string>> axes;
  friend bool operator==(const JaxSpec&, const JaxSpec&) = default;
};

// `JaxSpecs` are the PartitionSpecs of a plan and the layouts without one.
struct JaxSpecs {
  std::vector<JaxSpec> inputs;     // parameters, buffers and user inputs
  std::vector<JaxSpec> optimizer;  // state with another layout, by parameter
  std::vector<JaxSpec> outputs;    // by returned value
  std::vector<UnsaidLayout> unsaid;
  std::vector<Pin> pins;  // for every input that is expressible
};

JaxSpecs jax_specs(const Plan& plan);

}  // namespace shardprop
