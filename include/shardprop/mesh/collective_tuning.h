// The constants by which NCCL predicts what its algorithms take, and so
// chooses among them.
//
// Source: NCCL 2.27 src/graph/tuning.cc (base and hardware latencies, per
// channel and low-latency caps); where NCCL 2.27.5's tuned tables as published
// in meta-pytorch/autoparallel say otherwise, they win, and the field says so.
// Latencies in microseconds, bandwidths in GB/s.
#pragma once

#include <shardprop/mesh/topology.h>

#include <array>

namespace shardprop {

// NCCL's protocols.
struct PerProtocol {
  double ll;
  double ll128;
  double simple;
};

// On one node, two nodes, four and more (three count as two).
using PerNodes = std::array<double, 3>;

struct CollectiveTuning {
  PerProtocol ring_base{6.6, 14.0, 8.4};
  PerProtocol ring_node_step{0.6, 1.9, 3.4};
  PerProtocol ring_network_step{2.7, 4.0, 14.0};
  PerProtocol tree_base{6.8, 14.0, 8.4};
  PerProtocol tree_node_step{0.6, 1.25, 4.0};
  PerProtocol tree_network_step{5.0, 8.5, 14.0};
  // autoparallel: LL steps inside a node when the ring leaves it.
  double ring_ll_node_step_across = 1.0;
  double nvls_node = 25.0;
  // autoparallel: 28 a doubling of the nodes, up and down.
  double nvls_tree_network_step = 14.0;

  double ring_ll_share = 0.5;
  double ring_ll128_share = 0.92;
  double tree_share = 0.5;
  double tree_ll_share = 1 / 3.8;

  double node_channels = 16;
  double network_channels = 8;  // autoparallel: 313 GB/s of LL128 on 2 nodes
  PerNodes ll_cap;
  double ring_ll128_channel;
  PerNodes tree_channel;
  PerNodes tree_ll128_channel;
  double nvls_share;  // of the node bandwidth; 0 without NVLink SHARP
};

const CollectiveTuning& collective_tuning(Generation generation);

// The entry of `values` for a group on `nodes` nodes.
double at_nodes(const PerNodes& values, std::int64_t nodes);

}  // namespace shardprop
