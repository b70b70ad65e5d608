// `Topology` describes the machine under a mesh: its devices, links and rates.
//
// Ranks fill nodes in order: rank r is on node r / devices_per_node. A node is
// one domain of fast links (a DGX box, an NVL72 rack, a host). All figures are
// per device and per direction, and each has a source. Field names state the
// unit (G = 1e9, GiB = 2^30). Functions of this header return durations as
// integer nanoseconds.
//
//   Topology h100 = find_topology("dgx-h100").value();
//   auto mesh = DeviceMesh::parse("dp=4,tp=8").value();
//   MeshPlaces places(h100, mesh);
//   places.of(1);        // tp: 8 ranks, 8 a node, 1 node
//   places.of_mask(3);   // dp and tp together: 32 ranks, 8 a node, 4 nodes
#pragma once

#include <shardprop/base/inline_vector.h>
#include <shardprop/base/result.h>
#include <shardprop/mesh/collective_kind.h>
#include <shardprop/mesh/device_mesh.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {

// `Figure` is a number and its source.
struct Figure {
  double value = 0;
  std::string source;
  friend bool operator==(const Figure&, const Figure&) = default;
};

// `Engine` is the library that runs the collectives. It decides which
// algorithms exist and which reductions run natively.
enum class Engine : std::uint8_t { kNccl, kMpi, kThreads };
std::string_view to_string(Engine engine);
std::optional<Engine> parse_engine(std::string_view text);

// `Generation` selects the constants with which NCCL chooses its algorithms
// (collective_tuning.h).
enum class Generation : std::uint8_t { kAmpere, kHopper, kBlackwell };
std::string_view to_string(Generation generation);
std::optional<Generation> parse_generation(std::string_view text);

// `MathClass` lists the dtype classes for which a device has its own arithmetic
// rate.
enum class MathClass : std::uint8_t {
  kF64,
  kF32,
  kTf32,
  kF16,  // f16 and bf16
  kF8,   // 8-bit floats and integers
};

// `MeasuredLine` is a line `time = latency + bytes / bandwidth` measured on the
// machine for groups of one place. `bytes` is the full tensor of the group: the
// output of an all-gather, or the input of a reduce-scatter or all-reduce. For
// an all-to-all and a permute, `bytes` is the local tensor of one rank. The
// time is the minimum over all lines of one collective and place, since an
// engine chooses among its protocols.
struct MeasuredLine {
  CollectiveKind collective = CollectiveKind::kAllGather;
  std::int64_t ranks_per_node = 1;
  std::int64_t nodes = 1;
  double latency_us = 0;
  double bandwidth_gbps = 0;
  // False if only large messages were measured. Then the model's own
  // small-message protocols stay eligible next to the line.
  bool complete = true;
  std::string source;
  friend bool operator==(const MeasuredLine&, const MeasuredLine&) = default;
};

struct Topology {
  std::string name;
  std::string description;
  Engine engine = Engine::kNccl;
  Generation generation = Generation::kHopper;
  bool node_reduces = false;  // switches inside a node reduce (NVLink SHARP)

  Figure devices_per_node;
  Figure node_bandwidth_gbps;  // of a device inside its node, bus bandwidth
  // Latency of a step inside a node, in addition to the engine's own.
  Figure node_latency_us;
  Figure network_bandwidth_gbps;  // of a device between nodes
  // Latency of a step between nodes, in addition to the engine's own.
  Figure network_latency_us;
  Figure all_to_all_gbps;  // of a device inside its node, large exchanges

  Figure f64_tflops;
  Figure f32_tflops;
  Figure tf32_tflops;
  Figure f16_tflops;
  Figure f8_tflops;
  Figure memory_gbps;
  Figure memory_gib;
  // Fraction of `memory_gib` that the tensors of one process can occupy. The
  // driver, the context, buffers of the collectives and fragmentation take the
  // rest.
  Figure allocatable{1, "all of it"};
  // Units that each work on one tile of a matmul at a time (product_cost.h). If
  // it is 0, matmuls of every shape run at one rate.
  Figure multiprocessors;
  Figure efficiency;  // fraction of the peak rate that matmuls reach
  // The same fraction for attention kernels, which run two or more matmuls on
  // chip. If it is 0, `efficiency` is used.
  Figure attention_efficiency;
  // Head dim at which attention reaches half of its highest rate. The rate for
  // the head dim d is proportional to d / (d + attention_half_dim), and
  // `attention_efficiency` is that of 128. If it is 0, all head dims have one
  // rate.
  Figure attention_half_dim;
  // Fraction of their own rate that matmuls keep in a long step, in which the
  // power of the device limits its clock. If it is 0, they keep all of it.
  Figure sustained;
  // Fraction of `memory_gbps` that memory-bound kernels reach. If it is 0,
  // `efficiency` is used.
  Figure memory_efficiency;
  // The same fraction for the kernels of eager PyTorch (Fusion::kNone). If it
  // is 0, that of memory-bound kernels is used.
  Figure eager_memory_efficiency;
  Figure launch_us;  // minimum duration of a kernel
  // Time of a kernel in which its rates are not reached: its first and its last
  // blocks.
  Figure ramp_us;
  // Fraction of an overlappable transfer that compute overlaps.
  Figure overlap_discount;

  std::vector<MeasuredLine> measured;

  std::int64_t node_size() const {
    return static_cast<std::int64_t>(devices_per_node.value);
  }
  // Device memory in bytes.
  std::int64_t memory_bytes() const;
  // Returns the bytes of device memory that the tensors of one process can
  // occupy; at least 1.
  std::int64_t allocatable_bytes() const;
  // Returns the peak rate in FLOP/s.
  double flops(MathClass math) const;
  // Returns the rate in FLOP/s that matmuls reach in a step.
  double matmul_rate(MathClass math) const;
  // Returns the rate in FLOP/s that attention with this head dim reaches.
  double attention_rate(MathClass math, double head_dim) const;
  // Returns the bytes per second that memory-bound kernels reach.
  double memory_rate() const;

  friend bool operator==(const Topology&, const Topology&) = default;
};

// `TopologyField` describes one figure of a Topology. Readers, writers, checks
// and listings use the table of these.
struct TopologyField {
  std::string_view key;   // path in a topology file: "device.f16_tflops"
  std::string_view unit;  // "TFLOP/s"
  Figure Topology::* figure;
  bool may_be_zero;
};
// Returns the table of all figures of a Topology.
std::span<const TopologyField> topology_fields();

// Checks that every figure is finite and in its range. Error: kTopologyFigure.
Result<void> check_topology(const Topology& topology);

// Returns the presets, the default one (`dgx-h100`) first. Each preset is a file
// of src/mesh/presets, which the build embeds.
const std::vector<Topology>& topology_presets();
// Error: kTopologyUnknown, which lists the presets.
Result<Topology> find_topology(std::string_view name);
// Returns the default preset, `dgx-h100`.
const Topology& default_topology();

// Returns the topology whose memory-bound kernels are those of eager PyTorch.
Topology with_eager_kernels(Topology topology);

// Returns the time of a kernel that does `flops` operations and moves `bytes`
// of device memory (read plus written). It is `ramp_us` plus a roofline at the
// rates that kernels reach, and at least `launch_us`. The time is 0 if `flops`
// and `bytes` are 0, as for views.
std::int64_t compute_nanoseconds(const Topology& topology, MathClass math,
                                 double flops, double bytes);

// `GroupPlace` is the distribution of a group's ranks over nodes.
struct GroupPlace {
  std::int64_t ranks = 1;
  std::int64_t ranks_per_node = 1;
  std::int64_t nodes = 1;
  friend bool operator==(const GroupPlace&, const GroupPlace&) = default;
};

// `MeshPlaces` computes the place of every group of a mesh's dims on a
// topology.
//
// Let g be the devices per node and m the stride of a mesh dim in ranks. A dim
// of size n has min(n, g/m) ranks per node (at least 1), and spans n divided by
// that number of nodes, rounded up. For a group over several dims the ranks
// multiply, and so do the ranks per node, up to g.
class MeshPlaces {
 public:
  MeshPlaces(const Topology& topology, const DeviceMesh& mesh);

  int ndim() const { return static_cast<int>(dims_.size()); }
  const GroupPlace& of(int mesh_dim) const {
    return dims_[static_cast<std::size_t>(mesh_dim)];
  }
  // Returns the place of the group over the mesh dims whose bits are set.
  GroupPlace of_mask(std::uint32_t mesh_dims) const;

 private:
  std::int64_t node_size_;
  InlineVector<GroupPlace, 5> dims_;
};

}  // namespace shardprop
