// The nearest that JAX's words for layouts can say of a plan: a PartitionSpec
// for each parameter, input and output.
//
//   f32[64,32] S(0),R on dp=2,tp=2            P("dp", None)
//   f32[64,32] S(0),S(0)                      P(("dp", "tp"), None)
//   f32[64,32] S(0)@1,S(0)@0                  P(("tp", "dp"), None)
//
// Those words know shards of equal size, cut in one run. What is left unsaid is
// listed; what lies between inputs and outputs is XLA's to lay out.
#pragma once

#include <shardprop/plan/pin.h>
#include <shardprop/plan/plan.h>
#include <shardprop/report/unsaid_layout.h>

#include <string>
#include <vector>

namespace shardprop {

struct JaxSpec {
  std::string name;
  // By tensor dim, the mesh dims that cut it, first cut first; empty: None.
  std::vector<std::vector<std::string>> axes;
  friend bool operator==(const JaxSpec&, const JaxSpec&) = default;
};

struct JaxSpecs {
  std::vector<JaxSpec> inputs;     // parameters, buffers and user inputs
  std::vector<JaxSpec> optimizer;  // state that lies otherwise, by parameter
  std::vector<JaxSpec> outputs;    // by the value that is handed back
  std::vector<UnsaidLayout> unsaid;
  std::vector<Pin> pins;  // of every input that is said
};

JaxSpecs jax_specs(const Plan& plan);

}  // namespace shardprop
