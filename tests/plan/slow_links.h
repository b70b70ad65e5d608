// The links of a DGX H100, `times` as slow and without latency, launches and
// measured figures: transfers and compute of small graphs then take as long.
#pragma once

#include <shardprop/mesh/topology.h>

namespace shardprop::test {

inline Topology slow_links(double times) {
  Topology topology = default_topology();
  topology.measured.clear();
  topology.node_reduces = false;
  topology.launch_us.value = 0;
  topology.ramp_us.value = 0;
  topology.node_latency_us.value = 0;
  topology.network_latency_us.value = 0;
  topology.node_bandwidth_gbps.value /= times;
  topology.network_bandwidth_gbps.value /= times;
  topology.all_to_all_gbps.value /= times;
  return topology;
}

}  // namespace shardprop::test
