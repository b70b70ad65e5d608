// A topology on which compute and memory are expensive and sending is cheap.
// Its plans are full of shards, partials and collectives inside operators. On a
// fast machine the plans of small graphs replicate everything.
#pragma once

#include "support/result_checks.h"

#include <shardprop/mesh/topology.h>

#include <string_view>

namespace shardprop::testing {

inline Topology dear_compute() {
  Topology topology = value_of(find_topology("cpu-host"));
  topology.engine = Engine::kMpi;
  topology.devices_per_node.value = 64;
  for (const TopologyField& field : topology_fields()) {
    Figure& figure = topology.*field.figure;
    if (field.key.find("gbps") != std::string_view::npos) figure.value = 10;
    if (field.key.find("latency") != std::string_view::npos) {
      figure.value = 0.01;
    }
    if (field.key.find("tflops") != std::string_view::npos) {
      figure.value = 0.001;
    }
  }
  topology.memory_gbps.value = 1;
  topology.launch_us.value = 0;
  return topology;
}

}  // namespace shardprop::testing
