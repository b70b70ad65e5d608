#include <shardprop/redistribute/collective_cost.h>

#include "support/result_checks.h"

#include <cmath>
#include <string>

namespace shardprop {
namespace {

using testing::value_of;

AlgorithmLine line_of(CollectiveKind kind, const GroupPlace& place,
                      std::string_view algorithm, std::string_view protocol) {
  for (const AlgorithmLine& line :
       collective_algorithms(default_topology(), kind, place)) {
    if (line.algorithm == algorithm && line.protocol == protocol) return line;
  }
  FAIL("no such line");
  return {};
}

void check_near(double got, double wanted, double tolerance) {
  INFO(got << " for " << wanted);
  CHECK(std::abs(got / wanted - 1) <= tolerance);
}

TEST_CASE("lines across nodes are those NCCL 2.27.5 tunes") {
  // latency us, bandwidth GB/s; published in meta-pytorch/autoparallel.
  struct Row {
    std::int64_t nodes;
    std::int64_t ranks_per_node;
    double ll_us, ll_gbps, ll128_us, ll128_gbps, simple_us, simple_gbps;
    double reduce_gbps;
  };
  const Row rows[] = {{2, 1, 11.6, 48, 22.5, 88.3, 22.4, 96, 48},
                      {4, 1, 21.6, 27.2, 39.5, 58.9, 50.4, 64, 32},
                      {8, 1, 41.6, 23.3, 73.5, 50.5, 106, 54.9, 27.4},
                      {16, 1, 81.6, 21.8, 142, 47.1, 218, 51.2, 25.6},
                      {32, 1, 162, 21.1, 278, 45.6, 442, 49.5, 24.8},
                      {2, 8, 23.3, 41.6, 44.6, 313, 70, 410, 205},
                      {4, 8, 42.7, 21.1, 79.2, 303, 146, 396, 198},
                      {8, 8, 81.5, 20.7, 148, 298, 297, 390, 195},
                      {16, 8, 159, 20.6, 287, 296, 599, 387, 194},
                      {32, 8, 314, 20.5, 564, 295, 1204, 386, 193}};
  for (const Row& row : rows) {
    const GroupPlace place{row.nodes * row.ranks_per_node, row.ranks_per_node,
                           row.nodes};
    CAPTURE(row.nodes);
    CAPTURE(row.ranks_per_node);
    const auto gather = [&](std::string_view protocol) {
      return line_of(CollectiveKind::kAllGather, place, "ring", protocol);
    };
    check_near(gather("LL").latency_us, row.ll_us, 0.02);
    check_near(gather("LL").bandwidth_gbps, row.ll_gbps, 0.02);
    check_near(gather("LL128").latency_us, row.ll128_us, 0.02);
    check_near(gather("LL128").bandwidth_gbps, row.ll128_gbps, 0.02);
    check_near(gather("Simple").latency_us, row.simple_us, 0.02);
    check_near(gather("Simple").bandwidth_gbps, row.simple_gbps, 0.02);
    const AlgorithmLine reduce =
        line_of(CollectiveKind::kAllReduce, place, "ring", "Simple");
    check_near(reduce.bandwidth_gbps, row.reduce_gbps, 0.02);
  }
  // NVLS trees of full nodes.
  const std::pair<std::int64_t, std::pair<double, double>> trees[] = {
      {2, {53, 267}},
      {4, {81, 160}},
      {8, {109, 160}},
      {16, {137, 160}},
      {32, {165, 160}}};
  for (const auto& [nodes, figures] : trees) {
    const AlgorithmLine tree =
        line_of(CollectiveKind::kAllReduce, {8 * nodes, 8, nodes}, "nvls_tree",
                "Simple");
    check_near(tree.latency_us, figures.first, 0.02);
    check_near(tree.bandwidth_gbps, figures.second, 0.02);
  }
}

TEST_CASE("no collective outruns the network cards of a node") {
  // Without reductions in the network, a node sends (n - 1) / n of the bytes of
  // a gather or scatter, and twice that for an all-reduce.
  const std::int64_t bytes = std::int64_t{2} << 30;
  for (const Topology& preset : topology_presets()) {
    for (const double slower : {1.0, 0.3, 0.03}) {
      Topology topology = preset;
      topology.network_bandwidth_gbps.value *= slower;
      for (const std::int64_t ranks_per_node : {1, 2, 4, 8}) {
        for (const std::int64_t nodes : {2, 3, 4, 8, 64}) {
          const auto n = static_cast<double>(nodes);
          const double sent = static_cast<double>(bytes) * (n - 1) / n;
          const double rate = topology.network_bandwidth_gbps.value *
                              static_cast<double>(ranks_per_node);
          const auto took = [&](CollectiveKind kind) {
            return static_cast<double>(collective_nanoseconds(
                topology, kind, {nodes * ranks_per_node, ranks_per_node, nodes},
                bytes));
          };
          CAPTURE(topology.name);
          CAPTURE(slower);
          CAPTURE(ranks_per_node);
          CAPTURE(nodes);
          CHECK(took(CollectiveKind::kAllGather) >= sent / rate);
          CHECK(took(CollectiveKind::kReduceScatter) >= sent / rate);
          CHECK(took(CollectiveKind::kAllReduce) >= 2 * sent / rate);
        }
      }
    }
  }
}

TEST_CASE("large messages in a DGX H100 take what nccl-tests measured") {
  const Topology h100 = default_topology();
  CHECK(collective_nanoseconds(h100, CollectiveKind::kAllGather, {8, 8, 1},
                               394'000'000) == 1'030'000);
  CHECK(collective_nanoseconds(h100, CollectiveKind::kAllReduce, {8, 8, 1},
                               267'000'000) == 1'031'000);
  // A few bytes go by LL: base plus seven steps.
  CHECK(collective_nanoseconds(h100, CollectiveKind::kAllGather, {8, 8, 1},
                               8) == 10'800);
  // Small all-reduces go by a tree or a ring, whichever has fewer steps.
  CHECK(collective_nanoseconds(h100, CollectiveKind::kAllReduce, {8, 8, 1}, 8) <
        15'100);
}

TEST_CASE("messages in a DGX A100 take what nccl-tests measured") {
  // Source: aiconfigurator-core 0.12.0, a100_sxm/comm/nccl/2.27.3.
  const Topology a100 = value_of(find_topology("dgx-a100"));
  const auto took = [&](CollectiveKind kind, std::int64_t ranks) {
    return static_cast<double>(
               collective_nanoseconds(a100, kind, {ranks, ranks, 1}, 1 << 29)) *
           1e-3;
  };
  check_near(took(CollectiveKind::kAllReduce, 8), 4225.9, 0.05);
  check_near(took(CollectiveKind::kAllGather, 8), 2288.0, 0.05);
  check_near(took(CollectiveKind::kReduceScatter, 4), 1982.3, 0.05);
  // Beyond 8 ranks, the model of NCCL's 12 links at 20 GB/s has the say.
  CHECK(collective_nanoseconds(a100, CollectiveKind::kAllReduce, {16, 8, 2},
                               1 << 29) > 4'225'900);
}

TEST_CASE("payloads follow the formulas of nccl-tests") {
  const auto bytes = [](CollectiveKind kind, std::int64_t n, std::int64_t s) {
    return collective_bytes_per_rank(kind, n, s);
  };
  CHECK(bytes(CollectiveKind::kAllGather, 4, 1000) == 750);
  CHECK(bytes(CollectiveKind::kReduceScatter, 4, 1000) == 750);
  CHECK(bytes(CollectiveKind::kAllReduce, 4, 1000) == 1500);
  CHECK(bytes(CollectiveKind::kAllToAll, 4, 1000) == 750);
  CHECK(bytes(CollectiveKind::kPermute, 4, 1000) == 1000);
  CHECK(bytes(CollectiveKind::kSendRecv, 2, 1000) == 1000);
  CHECK(bytes(CollectiveKind::kBroadcast, 4, 1000) == 1000);
  CHECK(bytes(CollectiveKind::kSlice, 4, 1000) == 0);
  CHECK(bytes(CollectiveKind::kAllReduce, 1, 1000) == 0);
  CHECK(bytes(CollectiveKind::kAllReduce, 3, 1000) == 1334);
}

TEST_CASE("times grow with the message and with the group's spread") {
  for (const Topology& topology : topology_presets()) {
    CAPTURE(topology.name);
    for (const CollectiveKind kind : kAllCollectiveKinds) {
      CAPTURE(to_string(kind));
      for (const std::int64_t ranks : {2, 3, 8, 16, 64}) {
        for (const std::int64_t near : {1, 2, 8}) {
          const std::int64_t per_node = std::min(ranks, near);
          const GroupPlace place{ranks, per_node,
                                 (ranks + per_node - 1) / per_node};
          std::int64_t before = 0;
          for (std::int64_t bytes = 1; bytes < std::int64_t{1} << 36;
               bytes *= 2) {
            const std::int64_t now =
                collective_nanoseconds(topology, kind, place, bytes);
            CHECK(now >= before);
            before = now;
          }
          if (kind == CollectiveKind::kSlice) {
            CHECK(before == 0);
          } else {
            CHECK(before > 0);
          }
        }
      }
      CHECK(collective_nanoseconds(topology, kind, {1, 1, 1}, 1 << 20) == 0);
    }
    // The same ranks one a node are never faster than all in a node.
    for (const CollectiveKind kind :
         {CollectiveKind::kAllGather, CollectiveKind::kAllReduce,
          CollectiveKind::kAllToAll, CollectiveKind::kPermute}) {
      for (const std::int64_t bytes : {8, 1 << 16, 1 << 26}) {
        CHECK(collective_nanoseconds(topology, kind, {4, 1, 4}, bytes) >=
              collective_nanoseconds(topology, kind, {4, 4, 1}, bytes));
      }
    }
  }
}

TEST_CASE("measured lines take the model's place") {
  Topology topology = default_topology();
  topology.measured = {{CollectiveKind::kAllGather, 2, 2, 100, 1, true, "t"},
                       {CollectiveKind::kAllGather, 2, 2, 10, 0.1, true, "t"},
                       {CollectiveKind::kAllReduce, 2, 2, 1, 1000, false, "t"}};
  const GroupPlace place{4, 2, 2};
  // The cost is the minimum of both lines: 10 us + 1 KB/0.1 GB/s, then 100 us +
  // 1 MB/1 GB/s.
  CHECK(collective_nanoseconds(topology, CollectiveKind::kAllGather, place,
                               1000) == 20'000);
  CHECK(collective_nanoseconds(topology, CollectiveKind::kAllGather, place,
                               1'000'000) == 1'100'000);
  // Incomplete: the low-latency protocols stay.
  CHECK(collective_algorithms(topology, CollectiveKind::kAllReduce, place)
            .size() == 5);
  // Another place keeps the model.
  CHECK(collective_algorithms(topology, CollectiveKind::kAllGather, {2, 1, 2})
            .size() == 3);
}

TEST_CASE("an engine reduces the ops and dtypes that it supports") {
  CHECK(reduces_natively(Engine::kNccl, ReduceOp::kSum, DType::kBF16));
  CHECK(reduces_natively(Engine::kNccl, ReduceOp::kAvg, DType::kF32));
  CHECK_FALSE(reduces_natively(Engine::kNccl, ReduceOp::kBor, DType::kI32));
  CHECK_FALSE(reduces_natively(Engine::kNccl, ReduceOp::kSum, DType::kI16));
  CHECK_FALSE(reduces_natively(Engine::kNccl, ReduceOp::kMax, DType::kBool));
  CHECK(reduces_natively(Engine::kNccl, ReduceOp::kSum, DType::kC64));
  CHECK_FALSE(reduces_natively(Engine::kNccl, ReduceOp::kProduct, DType::kC64));
  CHECK(reduces_natively(Engine::kMpi, ReduceOp::kBor, DType::kI32));
  CHECK_FALSE(reduces_natively(Engine::kMpi, ReduceOp::kSum, DType::kBF16));
  CHECK_FALSE(reduces_natively(Engine::kMpi, ReduceOp::kAvg, DType::kF32));
  CHECK(reduces_natively(Engine::kThreads, ReduceOp::kAvg, DType::kF8E4M3FN));
}

TEST_CASE("a memory pass reads and writes") {
  // 1 GB at 0.86 x 3350 GB/s, twice.
  CHECK(memory_pass_nanoseconds(default_topology(), 1'000'000'000) == 694'203);
}

}  // namespace
}  // namespace shardprop
