#include <shardprop/mesh/topology.h>

#include <shardprop/mesh/update_cost.h>

#include "support/result_checks.h"

#include <limits>

namespace shardprop {
namespace {

using testing::value_of;

TEST_CASE("every figure of every preset has a source and is possible") {
  for (const Topology& preset : topology_presets()) {
    CAPTURE(preset.name);
    CHECK(check_topology(preset).has_value());
    CHECK_FALSE(preset.description.empty());
    for (const TopologyField& field : topology_fields()) {
      CAPTURE(field.key);
      CHECK_FALSE((preset.*field.figure).source.empty());
    }
    for (const MeasuredLine& line : preset.measured) {
      CHECK_FALSE(line.source.empty());
    }
  }
  CHECK(default_topology().name == "dgx-h100");
  CHECK_CODE(find_topology("dgx-h1"), ErrorCode::kTopologyUnknown);
}

TEST_CASE("impossible figures are refused") {
  for (const double bad : {-1.0, std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::quiet_NaN()}) {
    for (const TopologyField& field : topology_fields()) {
      Topology topology = default_topology();
      (topology.*field.figure).value = bad;
      CHECK_CODE(check_topology(topology), ErrorCode::kTopologyFigure);
    }
  }
  for (Figure Topology::* share :
       {&Topology::efficiency, &Topology::attention_efficiency,
        &Topology::memory_efficiency, &Topology::sustained,
        &Topology::eager_memory_efficiency, &Topology::overlap_discount}) {
    Topology topology = default_topology();
    (topology.*share).value = 1.01;
    CHECK_CODE(check_topology(topology), ErrorCode::kTopologyFigure);
  }
  Topology topology = default_topology();
  topology.measured.front().bandwidth_gbps = 0;
  CHECK_CODE(check_topology(topology), ErrorCode::kTopologyFigure);
}

TEST_CASE("the place of a mesh dim follows from the ranks it strides over") {
  const Topology h100 = default_topology();
  const auto place = [&](const char* mesh, std::uint32_t dims) {
    return MeshPlaces(h100, value_of(DeviceMesh::parse(mesh))).of_mask(dims);
  };
  // min(n, g/m) ranks a node, with g = 8 and m the ranks inside.
  CHECK(place("dp=4,tp=8", 2) == GroupPlace{8, 8, 1});
  CHECK(place("dp=4,tp=8", 1) == GroupPlace{4, 1, 4});
  CHECK(place("dp=4,tp=8", 3) == GroupPlace{32, 8, 4});
  CHECK(place("dp=8,tp=2", 1) == GroupPlace{8, 4, 2});
  CHECK(place("pp=2,dp=4,tp=4", 6) == GroupPlace{16, 8, 2});
  CHECK(place("pp=2,dp=4,tp=4", 1) == GroupPlace{2, 1, 2});
  CHECK(place("dp=2,tp=3", 2) == GroupPlace{3, 3, 1});
  CHECK(place("dp=2,tp=3", 0) == GroupPlace{1, 1, 1});
}

TEST_CASE("a list of ranks is placed where its ranks are") {
  // The mesh has every second rank of two nodes.
  const MeshDim dims[] = {{"x", 8}};
  const std::int64_t ranks[] = {0, 2, 4, 6, 8, 10, 12, 14};
  const auto mesh = value_of(DeviceMesh::from_ranks(dims, ranks));
  CHECK(MeshPlaces(default_topology(), mesh).of(0) == GroupPlace{8, 4, 2});
}

TEST_CASE("kernels take the roofline, at least their launch; views nothing") {
  const Topology h100 = default_topology();
  // 8192^3 in bf16: 1.0995e12 FLOP at 0.92 x 0.84 x 989e12, and the ramp of 3.9 us.
  const double side = 8192;
  CHECK(compute_nanoseconds(h100, MathClass::kF16, 2 * side * side * side,
                            3 * 2 * side * side) == 1442488);
  CHECK(compute_nanoseconds(h100, MathClass::kF32, 1, 4) == 7000);
  // A copy of 1 GB moves 2 GB at 0.86 x 3350 GB/s.
  CHECK(compute_nanoseconds(h100, MathClass::kF32, 0, 2e9) == 698103);
  CHECK(compute_nanoseconds(h100, MathClass::kF32, 0, 0) == 0);
  CHECK(h100.memory_bytes() == std::int64_t{80} << 30);
}

TEST_CASE("eager kernels have their own rate of memory") {
  Topology h100 = default_topology();
  h100.eager_memory_efficiency = {0.5, "a test"};
  const Topology eager = with_eager_kernels(h100);
  CHECK(eager.memory_rate() == 0.5 * 3350e9);
  CHECK(eager.matmul_rate(MathClass::kF16) ==
        h100.matmul_rate(MathClass::kF16));
  CHECK(with_eager_kernels(eager) == eager);
  h100.eager_memory_efficiency.value = 0;
  CHECK(with_eager_kernels(h100) == h100);
  h100.memory_efficiency.value = 0;
  CHECK(h100.memory_rate() == doctest::Approx(h100.efficiency.value * 3350e9));
}

TEST_CASE("attention of small heads is slower") {
  Topology h100 = default_topology();
  h100.attention_efficiency.value = 0.5;
  h100.attention_half_dim.value = 64;
  const double peak = h100.flops(MathClass::kF16);
  // d / (d + 64), which is 2/3 for the stated 128.
  CHECK(h100.attention_rate(MathClass::kF16, 128) ==
        doctest::Approx(0.5 * peak));
  CHECK(h100.attention_rate(MathClass::kF16, 64) ==
        doctest::Approx(0.375 * peak));
  CHECK(h100.attention_rate(MathClass::kF16, 0) == doctest::Approx(0.5 * peak));
  h100.attention_half_dim.value = 0;
  CHECK(h100.attention_rate(MathClass::kF16, 64) ==
        doctest::Approx(0.5 * peak));
  h100.attention_efficiency.value = 0;
  CHECK(h100.attention_rate(MathClass::kF16, 64) ==
        h100.matmul_rate(MathClass::kF16));
}

TEST_CASE("an update of a parameter costs its bytes, hardly a launch") {
  const Topology& h100 = default_topology();
  // 1024 elements: 28 KiB at 2.8 TB/s, and 1/36 of a launch of 7 us.
  const std::int64_t small =
      update_nanoseconds(h100, kAdamWUpdate.flops * 1024, 28 * 1024);
  CHECK(small == 204);
  CHECK(update_nanoseconds(h100, 0, 0) == 0);
  const double bytes = 28e9;
  CHECK(static_cast<double>(update_nanoseconds(h100, 0, bytes)) ==
        doctest::Approx(bytes / h100.memory_rate() * 1e9).epsilon(1e-4));
}

TEST_CASE("a process can allocate less than the figure on the box") {
  for (const Topology& topology : topology_presets()) {
    CAPTURE(topology.name);
    CHECK(topology.allocatable_bytes() < topology.memory_bytes());
    CHECK(!topology.allocatable.source.empty());
  }
  // 72 to 75 GiB are planned with on an H100 80GB.
  const std::int64_t h100 = default_topology().allocatable_bytes();
  CHECK(h100 >= std::int64_t{72} << 30);
  CHECK(h100 <= std::int64_t{75} << 30);
  // The share of a machine that a user describes by its memory alone.
  Topology small = default_topology();
  small.memory_gib = {1.0 / (1 << 30), "a byte"};
  CHECK(check_topology(small));
  CHECK(small.allocatable_bytes() == 1);
  small.allocatable.value = 1.1;
  CHECK_CODE(check_topology(small), ErrorCode::kTopologyFigure);
}

TEST_CASE("enumerations are written as they are read") {
  for (const CollectiveKind kind : kAllCollectiveKinds) {
    CHECK(parse_collective_kind(to_string(kind)) == kind);
  }
  for (const Engine e : {Engine::kNccl, Engine::kMpi, Engine::kThreads}) {
    CHECK(parse_engine(to_string(e)) == e);
  }
  for (const Generation g :
       {Generation::kAmpere, Generation::kHopper, Generation::kBlackwell}) {
    CHECK(parse_generation(to_string(g)) == g);
  }
  CHECK_FALSE(parse_collective_kind("gather").has_value());
  CHECK_FALSE(parse_engine("").has_value());
  CHECK_FALSE(parse_generation("volta").has_value());
}

}  // namespace
}  // namespace shardprop
