// What a collective takes: payload in bytes, time in nanoseconds.
//
// Payload, the most bytes any rank sends, with n ranks in the group:
//
//   all_gather, reduce_scatter   S (n-1)/n      S: the whole tensor of a group
//   all_reduce                   2 S (n-1)/n
//   all_to_all                   B (n-1)/n      B: what one rank holds
//   permute, send_recv           B
//   broadcast                    S
//   slice                        0
//
// Source: nccl-tests PERFORMANCE.md. Sizes are padded before they come here.
//
// Time is the least over the algorithms and protocols the engine may choose
// (NCCL's ring, tree and in-switch variants, each as LL, LL128 or Simple where
// it exists), every one a line `latency + S / bandwidth`, corrected for what
// real runs lose: trees at middle sizes, exchanges of small pieces, full nodes
// on a network. Lines measured on the machine take the model's place.
// Sources: NCCL src/graph/tuning.cc; meta-pytorch/autoparallel.
//
//   const Topology h100 = default_topology();
//   collective_nanoseconds(h100, CollectiveKind::kAllGather, {8, 8, 1},
//                          394'000'000);   // 1030000: 30 us + S/394 GB/s
#pragma once

#include <shardprop/mesh/topology.h>
#include <shardprop/placement/placement.h>

#include <cstdint>
#include <string_view>
#include <vector>

namespace shardprop {

// `bytes` is S or B of the table above. Rounded up to whole bytes.
std::int64_t collective_bytes_per_rank(CollectiveKind kind, std::int64_t ranks,
                                       std::int64_t bytes);

// How an algorithm's time strays from its line.
enum class LineCorrection : std::uint8_t {
  kNone,
  kTree,        // NCCL's own table for trees
  kFullNode,    // rings with all devices of a node in the group
  kSwitchTree,  // NVLS trees with all devices of a node in the group
  kExchange,    // direct sends: small pieces fill no link
};

// One algorithm for a group: time_us = latency_us + bytes / (1e3 bandwidth).
struct AlgorithmLine {
  std::string_view algorithm;  // "ring", "tree", "nvls", "nvls_tree", "direct"
  std::string_view protocol;   // "LL", "LL128", "Simple", "measured"
  double latency_us = 0;
  double bandwidth_gbps = 0;
  LineCorrection correction = LineCorrection::kNone;
  double synchronisation_us = 0;  // rings over nodes, beyond the engine's model
};

// The lines a collective has to choose from on a group of this place; empty
// for a slice and for one rank.
std::vector<AlgorithmLine> collective_algorithms(const Topology& topology,
                                                 CollectiveKind kind,
                                                 const GroupPlace& place);

// The least of `lines` for this message, corrected; 0 when there is none.
std::int64_t line_nanoseconds(const std::vector<AlgorithmLine>& lines,
                              const GroupPlace& place, std::int64_t bytes);

// Both in one. 0 for a group of one rank.
std::int64_t collective_nanoseconds(const Topology& topology,
                                    CollectiveKind kind,
                                    const GroupPlace& place,
                                    std::int64_t bytes);

// Whether the engine reduces this itself. What it does not, runs as an
// exchange followed by a local reduction in rank order.
bool reduces_natively(Engine engine, ReduceOp op, DType dtype);

// One pass over `bytes` of device memory, read and written, without a launch.
std::int64_t memory_pass_nanoseconds(const Topology& topology,
                                     std::int64_t bytes);

}  // namespace shardprop
