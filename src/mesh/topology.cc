#include <shardprop/mesh/topology.h>

#include <shardprop/mesh/update_cost.h>

#include "base/parse_number.h"
#include "base/saturating.h"
#include "mesh/topology_figures.h"

#include <algorithm>
#include <cmath>

namespace shardprop {
namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

constexpr TopologyField kFields[] = {
    {"node.devices", "devices", &Topology::devices_per_node, false},
    {"node.bandwidth_gbps", "GB/s", &Topology::node_bandwidth_gbps, false},
    {"node.latency_us", "us", &Topology::node_latency_us, true},
    {"node.all_to_all_gbps", "GB/s", &Topology::all_to_all_gbps, false},
    {"network.bandwidth_gbps", "GB/s", &Topology::network_bandwidth_gbps,
     false},
    {"network.latency_us", "us", &Topology::network_latency_us, true},
    {"device.f64_tflops", "TFLOP/s", &Topology::f64_tflops, false},
    {"device.f32_tflops", "TFLOP/s", &Topology::f32_tflops, false},
    {"device.tf32_tflops", "TFLOP/s", &Topology::tf32_tflops, false},
    {"device.f16_tflops", "TFLOP/s", &Topology::f16_tflops, false},
    {"device.f8_tflops", "TFLOP/s", &Topology::f8_tflops, false},
    {"device.memory_gbps", "GB/s", &Topology::memory_gbps, false},
    {"device.memory_gib", "GiB", &Topology::memory_gib, false},
    {"device.allocatable", "of memory", &Topology::allocatable, false},
    {"device.multiprocessors", "processors", &Topology::multiprocessors, true},
    {"device.efficiency", "of peak", &Topology::efficiency, false},
    {"device.attention_efficiency", "of peak", &Topology::attention_efficiency,
     true},
    {"device.attention_half_dim", "elements", &Topology::attention_half_dim,
     true},
    {"device.sustained", "of a rate", &Topology::sustained, true},
    {"device.memory_efficiency", "of peak", &Topology::memory_efficiency, true},
    {"device.launch_us", "us", &Topology::launch_us, true},
    {"device.ramp_us", "us", &Topology::ramp_us, true},
    {"eager.memory_efficiency", "of peak", &Topology::eager_memory_efficiency,
     true},
    {"overlap.discount", "of a transfer", &Topology::overlap_discount, true},
};

// A share is at most 1 and has a unit such as "of peak" or "of a transfer".
bool is_share(const TopologyField& field) {
  return field.unit.substr(0, 3) == "of ";
}

}  // namespace

std::string_view to_string(Engine engine) {
  switch (engine) {
    case Engine::kNccl:
      return "nccl";
    case Engine::kMpi:
      return "mpi";
    case Engine::kThreads:
      return "threads";
  }
  throw InternalError("an engine outside its enumeration");
}

std::optional<Engine> parse_engine(std::string_view text) {
  for (const Engine engine : {Engine::kNccl, Engine::kMpi, Engine::kThreads}) {
    if (to_string(engine) == text) return engine;
  }
  return std::nullopt;
}

std::string_view to_string(Generation generation) {
  switch (generation) {
    case Generation::kAmpere:
      return "ampere";
    case Generation::kHopper:
      return "hopper";
    case Generation::kBlackwell:
      return "blackwell";
  }
  throw InternalError("a generation outside its enumeration");
}

std::optional<Generation> parse_generation(std::string_view text) {
  for (const Generation generation :
       {Generation::kAmpere, Generation::kHopper, Generation::kBlackwell}) {
    if (to_string(generation) == text) return generation;
  }
  return std::nullopt;
}

std::int64_t Topology::memory_bytes() const {
  return saturated(memory_gib.value * kGiB);
}

std::int64_t Topology::allocatable_bytes() const {
  return std::max<std::int64_t>(
      saturated(allocatable.value * memory_gib.value * kGiB), 1);
}

double Topology::flops(MathClass math) const {
  switch (math) {
    case MathClass::kF64:
      return f64_tflops.value * 1e12;
    case MathClass::kF32:
      return f32_tflops.value * 1e12;
    case MathClass::kTf32:
      return tf32_tflops.value * 1e12;
    case MathClass::kF16:
      return f16_tflops.value * 1e12;
    case MathClass::kF8:
      return f8_tflops.value * 1e12;
  }
  throw InternalError("a math class outside its enumeration");
}

double Topology::matmul_rate(MathClass math) const {
  const double kept = sustained.value > 0 ? sustained.value : 1;
  return kept * efficiency.value * flops(math);
}

double Topology::attention_rate(MathClass math, double head_dim) const {
  if (attention_efficiency.value <= 0) return matmul_rate(math);
  constexpr double kStatedFor = 128;  // the head dim of attention_efficiency
  const auto share = [&](double dim) {
    return dim / (dim + attention_half_dim.value);
  };
  const double of_dim = head_dim > 0 ? share(head_dim) / share(kStatedFor) : 1;
  return std::min(attention_efficiency.value * of_dim, 1.0) * flops(math);
}

double Topology::memory_rate() const {
  const double share =
      memory_efficiency.value > 0 ? memory_efficiency.value : efficiency.value;
  return share * memory_gbps.value * 1e9;
}

std::span<const TopologyField> topology_fields() { return kFields; }

namespace {

tl::unexpected<Error> refuse(std::string_view key, double value,
                             std::string wanted) {
  return fail(Error{ErrorCode::kTopologyFigure,
                    "`" + std::string(key) + "` is " + number_text(value),
                    {},
                    {},
                    std::move(wanted)});
}

}  // namespace

Result<void> check_figure(const TopologyField& field, const Figure& figure) {
  const double value = figure.value;
  if (!std::isfinite(value) || value < 0 ||
      (value == 0 && !field.may_be_zero)) {
    return refuse(field.key, value, "give it a positive number");
  }
  if (field.figure == &Topology::devices_per_node &&
      (value != std::floor(value) || value > kMaxMeshRanks)) {
    return refuse(field.key, value, "devices are counted whole");
  }
  if (field.figure == &Topology::memory_gib && saturated(value * kGiB) < 1) {
    return refuse(field.key, value,
                  "count in GiB, so that it makes one byte at least");
  }
  if (is_share(field) && value > 1) {
    return refuse(field.key, value, "it is a share: at most 1");
  }
  return {};
}

Result<void> check_line(const MeasuredLine& line) {
  if (!std::isfinite(line.latency_us) || line.latency_us < 0) {
    return refuse("measured.latency_us", line.latency_us,
                  "give it a number of 0 or more");
  }
  if (!std::isfinite(line.bandwidth_gbps) || line.bandwidth_gbps <= 0) {
    return refuse("measured.bandwidth_gbps", line.bandwidth_gbps,
                  "give it a positive number");
  }
  if (line.ranks_per_node < 1 || line.nodes < 1 ||
      line.nodes > kMaxMeshRanks / line.ranks_per_node) {
    return refuse("measured.ranks_per_node",
                  static_cast<double>(line.ranks_per_node),
                  "a group has at least one rank on one node, and at most " +
                      std::to_string(kMaxMeshRanks));
  }
  return {};
}

Result<void> check_topology(const Topology& topology) {
  for (const TopologyField& field : kFields) {
    auto fits = check_figure(field, topology.*field.figure);
    if (!fits) return fail(std::move(fits).error().at(topology.name));
  }
  for (const MeasuredLine& line : topology.measured) {
    auto fits = check_line(line);
    if (!fits) return fail(std::move(fits).error().at(topology.name));
  }
  return {};
}

Topology with_eager_kernels(Topology topology) {
  if (topology.eager_memory_efficiency.value > 0) {
    topology.memory_efficiency = topology.eager_memory_efficiency;
  }
  return topology;
}

std::int64_t compute_nanoseconds(const Topology& topology, MathClass math,
                                 double flops, double bytes) {
  if (flops <= 0 && bytes <= 0) return 0;
  const double work = std::max(flops / topology.matmul_rate(math),
                               bytes / topology.memory_rate());
  return to_nanoseconds(std::max(topology.ramp_us.value * 1e-6 + work,
                                 topology.launch_us.value * 1e-6));
}

std::int64_t update_nanoseconds(const Topology& topology, double flops,
                                double bytes) {
  if (flops <= 0 && bytes <= 0) return 0;
  const double launch =
      topology.launch_us.value * 1e-6 / kParametersPerUpdateKernel;
  return to_nanoseconds(launch +
                        std::max(flops / topology.matmul_rate(MathClass::kF32),
                                 bytes / topology.memory_rate()));
}

MeshPlaces::MeshPlaces(const Topology& topology, const DeviceMesh& mesh)
    : node_size_(topology.node_size()) {
  const std::int64_t home = mesh.rank_at_index(0) / node_size_;
  Coordinate at(static_cast<std::size_t>(mesh.ndim()));
  for (int dim = 0; dim < mesh.ndim(); ++dim) {
    // The loop counts the ranks of the dim that share the origin's node. For a
    // strided mesh the count is min(n, g/m); the loop is right for any mesh.
    const std::int64_t size = mesh.size(dim);
    const RankGroup group = mesh.group(dim, at);
    std::int64_t near = 1;  // the origin itself
    for (std::int64_t i = 1; i < size; ++i) {
      if (group.rank(i) / node_size_ == home) ++near;
    }
    dims_.push_back({size, near, (size + near - 1) / near});
  }
}

GroupPlace MeshPlaces::of_mask(std::uint32_t mesh_dims) const {
  GroupPlace place;
  for (int dim = 0; dim < ndim(); ++dim) {
    if ((mesh_dims >> dim & 1U) == 0) continue;
    place.ranks *= of(dim).ranks;
    place.ranks_per_node *= of(dim).ranks_per_node;
  }
  place.ranks_per_node = std::min(place.ranks_per_node, node_size_);
  place.nodes = (place.ranks + place.ranks_per_node - 1) / place.ranks_per_node;
  return place;
}

}  // namespace shardprop
