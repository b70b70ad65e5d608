// `CollectiveTuning` holds the constants with which NCCL predicts the time of
// its algorithms and chooses among them. Latencies are in microseconds,
// bandwidths in GB/s.
//
// Source: NCCL 2.27 src/graph/tuning.cc (base and hardware latencies, caps per
// channel and of the low-latency protocols). If the tuned tables of NCCL
// 2.27.5, as published in meta-pytorch/autoparallel, differ, their value is
// used and the field names autoparallel.
#pragma once

#include <shardprop/mesh/topology.h>

#include <array>

namespace shardprop {

// `PerProtocol` has one value for each of NCCL's protocols.
struct PerProtocol {
  double ll;
  double ll128;
  double simple;
};

// `PerNodes` has one value for groups on one node, on two or three nodes, and
// on four or more nodes.
using PerNodes = std::array<double, 3>;

struct CollectiveTuning {
  PerProtocol ring_base{6.6, 14.0, 8.4};
  PerProtocol ring_node_step{0.6, 1.9, 3.4};
  PerProtocol ring_network_step{2.7, 4.0, 14.0};
  PerProtocol tree_base{6.8, 14.0, 8.4};
  PerProtocol tree_node_step{0.6, 1.25, 4.0};
  PerProtocol tree_network_step{5.0, 8.5, 14.0};
  // Source: autoparallel. This is an LL step inside a node in a ring that spans
  // nodes.
  double ring_ll_node_step_across = 1.0;
  double nvls_node = 25.0;
  // Source: autoparallel. 28 us per doubling of the nodes, half of it up the
  // tree and half down.
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
  double nvls_share;  // fraction of the node bandwidth; 0 without NVLink SHARP
};

// Returns the constants of a GPU generation.
const CollectiveTuning& collective_tuning(Generation generation);

// Returns the entry of `values` for a group on `nodes` nodes.
double at_nodes(const PerNodes& values, std::int64_t nodes);

}  // namespace shardprop
