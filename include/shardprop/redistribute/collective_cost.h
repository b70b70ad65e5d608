// This header defines the cost of a collective: payload in bytes, time in
// nanoseconds.
//
// The payload is the most bytes that any rank sends. For n ranks in the group:
//
//   all_gather, reduce_scatter   S (n-1)/n      S: the full tensor of a group
//   all_reduce                   2 S (n-1)/n
//   all_to_all                   B (n-1)/n      B: the local tensor of one rank
//   permute, send_recv           B
//   broadcast                    S
//   slice                        0
//
// Source: nccl-tests PERFORMANCE.md. The caller passes padded sizes.
//
// The time is the minimum over the algorithms and protocols that the engine may
// choose: NCCL's ring, tree and in-switch variants, each as LL, LL128 or Simple
// if it exists. Each is a line `latency + S / bandwidth`. Corrections account
// for losses of real runs: trees at middle sizes, exchanges of small pieces,
// full nodes on a network. Lines measured on the machine replace those of the
// model. Sources: NCCL src/graph/tuning.cc; meta-pytorch/autoparallel.
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

// Returns the payload. `bytes` is S or B of the table above; the result is
// rounded up to whole bytes.
std::int64_t collective_bytes_per_rank(CollectiveKind kind, std::int64_t ranks,
                                       std::int64_t bytes);

// `LineCorrection` names the way in which an algorithm's time deviates from its
// line.
enum class LineCorrection : std::uint8_t {
  kNone,
  kTree,        // NCCL's own table for trees
  kFullNode,    // rings over all devices of a node
  kSwitchTree,  // NVLS trees over all devices of a node
  kExchange,    // direct sends: small pieces do not saturate a link
};

// `AlgorithmLine` is one algorithm for a group: time_us = latency_us + bytes /
// (1e3 bandwidth).
struct AlgorithmLine {
  std::string_view algorithm;  // "ring", "tree", "nvls", "nvls_tree", "direct"
  std::string_view protocol;   // "LL", "LL128", "Simple", "measured"
  double latency_us = 0;
  double bandwidth_gbps = 0;
  LineCorrection correction = LineCorrection::kNone;
  // Rings over nodes, in addition to NCCL's model.
  double synchronisation_us = 0;
};

// Returns the lines from which a collective chooses on a group of this place;
// empty for a slice and for one rank.
std::vector<AlgorithmLine> collective_algorithms(const Topology& topology,
                                                 CollectiveKind kind,
                                                 const GroupPlace& place);

// Returns the minimum over `lines` for this message, corrected, in nanoseconds;
// 0 if `lines` is empty.
std::int64_t line_nanoseconds(const std::vector<AlgorithmLine>& lines,
                              const GroupPlace& place, std::int64_t bytes);

// Applies line_nanoseconds() to collective_algorithms(); 0 for a group of one
// rank.
std::int64_t collective_nanoseconds(const Topology& topology,
                                    CollectiveKind kind,
                                    const GroupPlace& place,
                                    std::int64_t bytes);

// Returns whether the engine has this reduction. Any other reduction runs as an
// exchange followed by a local reduction in rank order.
bool reduces_natively(Engine engine, ReduceOp op, DType dtype);

// Returns the time to read and write `bytes` of device memory once, without a
// launch.
std::int64_t memory_pass_nanoseconds(const Topology& topology,
                                     std::int64_t bytes);

}  // namespace shardprop
