#include <shardprop/redistribute/collective_cost.h>

#include "base/saturating.h"

#include <shardprop/mesh/collective_tuning.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace shardprop {
namespace {

constexpr double kKiB = 1024;
constexpr double kMiB = 1024 * kKiB;

// CurvePoint is a value at a size. Between two points, the value changes
// linearly with the logarithm of the size.
struct CurvePoint {
  double size;
  double value;
};

double curve_at(std::span<const CurvePoint> points, double size) {
  if (size <= points.front().size) return points.front().value;
  for (std::size_t i = 1; i < points.size(); ++i) {
    const CurvePoint& low = points[i - 1];
    const CurvePoint& high = points[i];
    if (size > high.size) continue;
    const double at =
        std::log2(size / low.size) / std::log2(high.size / low.size);
    return low.value + at * (high.value - low.value);
  }
  return points.back().value;
}

// Shares of peak bandwidth by message size (NCCL tuning.cc,
// treeCorrectionFactor).
constexpr CurvePoint kTreeShare[] = {
    {1 * kKiB, 1}, {64 * kKiB, 0.45}, {1 * kMiB, 0.45}, {64 * kMiB, 1}};
// Shares of peak bandwidth by bytes per rank (autoparallel).
constexpr CurvePoint kFullNodeShare[] = {{8 * kMiB, 0.68}, {32 * kMiB, 0.87}};
constexpr CurvePoint kSwitchTreeShare[] = {
    {32 * kKiB, 0.1}, {128 * kKiB, 0.3}, {8 * kMiB, 0.68}, {32 * kMiB, 0.87}};
constexpr CurvePoint kExchangeShare[] = {
    {16 * kKiB, 0.28}, {256 * kKiB, 0.62}, {2 * kMiB, 0.89}, {16 * kMiB, 1}};
// autoparallel: rings over several nodes wait for each other.
constexpr double kRingSynchronisation = 4.7;
// autoparallel: the latency in us of an all-to-all by number of nodes, and the
// loss of its remote part in the network's switches.
constexpr CurvePoint kExchangeLatency[] = {{1, 50}, {2, 37},  {4, 42},
                                           {8, 60}, {16, 98}, {32, 290}};
constexpr double kRemoteLoss = 0.44;
// NCCL: the penalty of Simple all-reduce rings over several nodes.
constexpr double kSimpleRingPenalty = 1.4;

double correction_share(LineCorrection correction, double bytes,
                        const GroupPlace& place) {
  const double a_rank = bytes / static_cast<double>(place.ranks);
  switch (correction) {
    case LineCorrection::kNone:
      return 1;
    case LineCorrection::kTree:
      return curve_at(kTreeShare, bytes);
    case LineCorrection::kFullNode:
      return curve_at(kFullNodeShare, a_rank);
    case LineCorrection::kSwitchTree:
      return curve_at(kSwitchTreeShare, a_rank);
    case LineCorrection::kExchange:
      return curve_at(kExchangeShare, bytes);
  }
  throw InternalError("a line correction outside its enumeration");
}

enum class Protocol { kLl, kLl128, kSimple };
constexpr Protocol kProtocols[] = {Protocol::kLl, Protocol::kLl128,
                                   Protocol::kSimple};

std::string_view name_of(Protocol protocol) {
  if (protocol == Protocol::kLl) return "LL";
  return protocol == Protocol::kLl128 ? "LL128" : "Simple";
}

double pick(const PerProtocol& values, Protocol protocol) {
  if (protocol == Protocol::kLl) return values.ll;
  return protocol == Protocol::kLl128 ? values.ll128 : values.simple;
}

// Builder computes the lines of one group, algorithm by algorithm.
class Builder {
 public:
  Builder(const Topology& topology, const GroupPlace& place)
      : topology_(topology),
        tuning_(collective_tuning(topology.generation)),
        place_(place),
        nccl_(topology.engine == Engine::kNccl),
        ranks_(static_cast<double>(place.ranks)),
        nodes_(static_cast<double>(place.nodes)) {}

  std::vector<AlgorithmLine> build(CollectiveKind kind) {
    if (place_.ranks <= 1) return {};
    switch (kind) {
      case CollectiveKind::kAllGather:
      case CollectiveKind::kReduceScatter:
        rings(kind, ranks_ - 1);
        break;
      case CollectiveKind::kAllReduce:
        rings(kind, 2 * (ranks_ - 1));
        if (nccl_) {
          trees();
          switches();
        }
        break;
      case CollectiveKind::kBroadcast:
        // In a pipelined ring, every rank sends on all that it receives.
        rings(kind, ranks_ - 1);
        for (AlgorithmLine& line : lines_) {
          line.bandwidth_gbps *= (ranks_ - 1) / ranks_;
        }
        break;
      case CollectiveKind::kAllToAll:
        exchange();
        break;
      case CollectiveKind::kPermute:
      case CollectiveKind::kSendRecv:
        send();
        break;
      case CollectiveKind::kSlice:
        return {};
    }
    measured(kind);
    return std::move(lines_);
  }

 private:
  // Returns the bandwidth of the slowest hop of a ring. A ring over several
  // nodes uses the network cards of all its ranks in a node. The links of the
  // node limit this bandwidth.
  double bus() const {
    if (place_.nodes == 1) return topology_.node_bandwidth_gbps.value;
    return std::min(topology_.network_bandwidth_gbps.value *
                        static_cast<double>(place_.ranks_per_node),
                    std::max(topology_.node_bandwidth_gbps.value,
                             topology_.all_to_all_gbps.value));
  }

  double channels() const {
    return place_.nodes == 1 ? tuning_.node_channels : tuning_.network_channels;
  }

  double ring_bus(Protocol protocol) const {
    if (!nccl_) return bus();
    switch (protocol) {
      case Protocol::kLl:
        return std::min(at_nodes(tuning_.ll_cap, place_.nodes),
                        tuning_.ring_ll_share * bus());
      case Protocol::kLl128:
        return std::min(tuning_.ring_ll128_share * bus(),
                        channels() * tuning_.ring_ll128_channel);
      case Protocol::kSimple:
        return bus();
    }
    throw InternalError("a protocol outside its enumeration");
  }

  double base(Protocol protocol) const {
    return nccl_ ? pick(tuning_.ring_base, protocol) : 0;
  }

  double node_step(Protocol protocol) const {
    double own = 0;
    if (nccl_) {
      const bool across_ll = place_.nodes > 1 && protocol == Protocol::kLl;
      own = across_ll ? tuning_.ring_ll_node_step_across
                      : pick(tuning_.ring_node_step, protocol);
    }
    return topology_.node_latency_us.value + own;
  }

  double network_step(Protocol protocol) const {
    double own = 0;
    if (nccl_) {
      // With one rank per node, NCCL uses the tree's network step for all
      // algorithms.
      own = pick(place_.ranks_per_node == 1 ? tuning_.tree_network_step
                                            : tuning_.ring_network_step,
                 protocol);
    }
    return topology_.network_latency_us.value + own;
  }

  double ring_latency(Protocol protocol, double steps) const {
    const double network_steps =
        place_.nodes == 1 ? 0 : (nodes_ - 1) * steps / (ranks_ - 1);
    return base(protocol) + (steps - network_steps) * node_step(protocol) +
           network_steps * network_step(protocol);
  }

  LineCorrection if_full_node(LineCorrection correction) const {
    const bool full = place_.nodes > 1 && place_.ranks_per_node > 1 &&
                      place_.ranks_per_node == topology_.node_size();
    return full ? correction : LineCorrection::kNone;
  }

  void rings(CollectiveKind kind, double steps) {
    for (const Protocol protocol : kProtocols) {
      const bool simple = protocol == Protocol::kSimple;
      if (!nccl_ && !simple) continue;
      double latency = ring_latency(protocol, steps);
      if (nccl_ && simple && place_.nodes > 1 &&
          kind == CollectiveKind::kAllReduce) {
        latency *= kSimpleRingPenalty;
      }
      const bool synchronises = nccl_ && place_.nodes > 1;
      lines_.push_back(
          {.algorithm = "ring",
           .protocol = name_of(protocol),
           .latency_us = latency,
           .bandwidth_gbps = ring_bus(protocol) * ranks_ / steps,
           .correction = nccl_ && simple
                             ? if_full_node(LineCorrection::kFullNode)
                             : LineCorrection::kNone,
           .synchronisation_us =
               synchronises ? kRingSynchronisation * nodes_ : 0});
    }
  }

  void trees() {
    for (const Protocol protocol : kProtocols) {
      const double near_steps = ranks_ / nodes_ - 1;
      const double near = pick(tuning_.tree_node_step, protocol) +
                          topology_.node_latency_us.value;
      const double far = pick(tuning_.tree_network_step, protocol) +
                         topology_.network_latency_us.value;
      double rate = 0;
      if (protocol == Protocol::kLl) {
        rate = std::min(at_nodes(tuning_.ll_cap, place_.nodes),
                        tuning_.tree_ll_share * bus());
      } else {
        const PerNodes& cap = protocol == Protocol::kLl128
                                  ? tuning_.tree_ll128_channel
                                  : tuning_.tree_channel;
        rate = std::min(bus(), channels() * at_nodes(cap, place_.nodes));
      }
      lines_.push_back(
          {.algorithm = "tree",
           .protocol = name_of(protocol),
           .latency_us = pick(tuning_.tree_base, protocol) +
                         2 * (near_steps * near + std::log2(nodes_) * far),
           .bandwidth_gbps = rate * tuning_.tree_share,
           .correction = LineCorrection::kTree});
    }
  }

  // Adds reductions in the switches of a node, and trees of such nodes.
  void switches() {
    if (!topology_.node_reduces || tuning_.nvls_share == 0) return;
    if (place_.ranks_per_node == 1) return;
    const double node = topology_.node_bandwidth_gbps.value;
    if (place_.nodes == 1) {
      lines_.push_back({.algorithm = "nvls",
                        .protocol = "Simple",
                        .latency_us = tuning_.nvls_node,
                        .bandwidth_gbps = tuning_.nvls_share * node});
      return;
    }
    // With more than two nodes, the inner nodes of a tree send twice the bytes
    // that they receive. This holds for the switches and for the network.
    const double tree_share = place_.nodes == 2 ? 1 : 0.5;
    const double switch_share =
        place_.nodes == 2 ? tuning_.nvls_share : tree_share;
    lines_.push_back(
        {.algorithm = "nvls_tree",
         .protocol = "Simple",
         .latency_us =
             tuning_.nvls_node + 2 * std::log2(nodes_) *
                                     (tuning_.nvls_tree_network_step +
                                      topology_.network_latency_us.value),
         .bandwidth_gbps = std::min(switch_share * node, tree_share * bus()),
         .correction = if_full_node(LineCorrection::kSwitchTree)});
  }

  void exchange() {
    const double near = static_cast<double>(place_.ranks_per_node - 1) / ranks_;
    const double far = 1 - 1 / ranks_ - near;
    double per_byte = near / topology_.all_to_all_gbps.value;
    if (place_.nodes > 1) {
      const double network =
          topology_.network_bandwidth_gbps.value * (1 - kRemoteLoss / nodes_);
      per_byte = std::max(per_byte, far / network);
    }
    // Small pieces use the same low-latency steps as a ring.
    const double stepwise = ring_latency(Protocol::kLl, ranks_ - 1);
    lines_.push_back(
        {.algorithm = "direct",
         .protocol = "Simple",
         .latency_us =
             nccl_ ? std::min(curve_at(kExchangeLatency, nodes_), stepwise)
                   : stepwise,
         .bandwidth_gbps = 1 / per_byte,
         .correction = LineCorrection::kExchange});
  }

  // Adds one message from each rank to another rank.
  void send() {
    const bool across = place_.nodes > 1;
    lines_.push_back(
        {.algorithm = "direct",
         .protocol = "Simple",
         .latency_us =
             base(Protocol::kLl) +
             (across ? network_step(Protocol::kLl) : node_step(Protocol::kLl)),
         .bandwidth_gbps = across ? topology_.network_bandwidth_gbps.value
                                  : topology_.all_to_all_gbps.value,
         .correction = LineCorrection::kExchange});
  }

  void measured(CollectiveKind kind) {
    std::vector<AlgorithmLine> seen;
    bool complete = false;
    for (const MeasuredLine& line : topology_.measured) {
      if (line.collective != kind ||
          line.ranks_per_node != place_.ranks_per_node ||
          line.nodes != place_.nodes) {
        continue;
      }
      complete = complete || line.complete;
      seen.push_back({.algorithm = "measured",
                      .protocol = "measured",
                      .latency_us = line.latency_us,
                      .bandwidth_gbps = line.bandwidth_gbps});
    }
    if (seen.empty()) return;
    std::erase_if(lines_, [&](const AlgorithmLine& line) {
      return complete || line.protocol == "Simple";
    });
    lines_.insert(lines_.end(), seen.begin(), seen.end());
  }

  const Topology& topology_;
  const CollectiveTuning& tuning_;
  GroupPlace place_;
  bool nccl_;
  double ranks_;
  double nodes_;
  std::vector<AlgorithmLine> lines_;
};

}  // namespace

std::vector<AlgorithmLine> collective_algorithms(const Topology& topology,
                                                 CollectiveKind kind,
                                                 const GroupPlace& place) {
  return Builder(topology, place).build(kind);
}

std::int64_t line_nanoseconds(const std::vector<AlgorithmLine>& lines,
                              const GroupPlace& place, std::int64_t bytes) {
  if (lines.empty()) return 0;
  const auto size = static_cast<double>(bytes);
  double least = std::numeric_limits<double>::infinity();
  for (const AlgorithmLine& line : lines) {
    const double fixed = line.latency_us + line.synchronisation_us;
    const double at_peak = fixed + size / (1e3 * line.bandwidth_gbps);
    // A correction only adds time, so a line that is too slow without it is
    // skipped.
    if (at_peak >= least) continue;
    const double share = correction_share(line.correction, size, place);
    least = std::min(least, fixed + (at_peak - fixed) / share);
  }
  return whole_nanoseconds(least * 1e3, kMostTransferNanoseconds);
}

std::int64_t collective_nanoseconds(const Topology& topology,
                                    CollectiveKind kind,
                                    const GroupPlace& place,
                                    std::int64_t bytes) {
  return line_nanoseconds(collective_algorithms(topology, kind, place), place,
                          bytes);
}

std::int64_t memory_pass_nanoseconds(const Topology& topology,
                                     std::int64_t bytes) {
  return whole_nanoseconds(
      2 * static_cast<double>(bytes) / (topology.memory_rate() * 1e-9),
      kMostTransferNanoseconds);
}

}  // namespace shardprop
