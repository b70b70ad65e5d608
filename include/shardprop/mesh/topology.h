// Topology: what the machine under a mesh can do.
//
// Ranks fill nodes in order: rank r sits in node r / devices_per_node, where a
// node is one domain of fast links (a DGX box, an NVL72 rack, a host). All
// figures are per device and per direction, in the units their names state
// (G = 1e9, GiB = 2^30), each with the source it was taken from. Durations
// leave this header as integer nanoseconds.
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

// A number and where it comes from.
struct Figure {
  double value = 0;
  std::string source;
  friend bool operator==(const Figure&, const Figure&) = default;
};

// What runs the collectives; decides which algorithms there are and which
// reductions run natively.
enum class Engine : std::uint8_t { kNccl, kMpi, kThreads };
std::string_view to_string(Engine engine);
std::optional<Engine> parse_engine(std::string_view text);

// Whose constants NCCL's choice of algorithm uses (collective_tuning.h).
enum class Generation : std::uint8_t { kAmpere, kHopper, kBlackwell };
std::string_view to_string(Generation generation);
std::optional<Generation> parse_generation(std::string_view text);

// Rates of arithmetic a device tells apart.
enum class MathClass : std::uint8_t {
  kF64,
  kF32,
  kTf32,
  kF16,  // f16 and bf16
  kF8,   // 8-bit floats and integers
};

// A line `time = latency + bytes / bandwidth` seen on the machine for groups of
// one place. `bytes` is the whole tensor of the group (output of an all-gather,
// input of a reduce-scatter or all-reduce; for an all-to-all and a permute what
// one rank holds). Several lines of one collective and place mean the least of
// them, as an engine chooses among its protocols.
struct MeasuredLine {
  CollectiveKind collective = CollectiveKind::kAllGather;
  std::int64_t ranks_per_node = 1;
  std::int64_t nodes = 1;
  double latency_us = 0;
  double bandwidth_gbps = 0;
  // False where only large messages were measured: the model's own
  // small-message protocols stay eligible beside the line.
  bool complete = true;
  std::string source;
  friend bool operator==(const MeasuredLine&, const MeasuredLine&) = default;
};

struct Topology {
  std::string name;
  std::string description;
  Engine engine = Engine::kNccl;
  Generation generation = Generation::kHopper;
  bool node_reduces = false;  // switches in a node reduce (NVLink SHARP)

  Figure devices_per_node;
  Figure node_bandwidth_gbps;  // a device inside its node, bus bandwidth
  Figure node_latency_us;      // a step inside a node, beyond the engine's own
  Figure network_bandwidth_gbps;  // a device between nodes
  Figure network_latency_us;  // a step between nodes, beyond the engine's own
  Figure all_to_all_gbps;     // a device inside its node, large exchanges

  Figure f64_tflops;
  Figure f32_tflops;
  Figure tf32_tflops;
  Figure f16_tflops;
  Figure f8_tflops;
  Figure memory_gbps;
  Figure memory_gib;
  // Share of memory_gib that the tensors of one process can occupy. The rest
  // is taken by the driver, the context, buffers of the collectives and
  // fragmentation.
  Figure allocatable{1, "all of it"};
  // Units that each work on one tile of a product at a time (product_cost.h);
  // 0: products of every shape run at one rate.
  Figure multiprocessors;
  Figure efficiency;  // share of peak that kernels reach
  // The same of attention, whose kernels multiply twice and more without
  // leaving the chip; 0: as other kernels.
  Figure attention_efficiency;
  Figure launch_us;         // the least a kernel takes
  Figure overlap_discount;  // share of a hideable transfer that compute hides

  std::vector<MeasuredLine> measured;

  std::int64_t node_size() const {
    return static_cast<std::int64_t>(devices_per_node.value);
  }
  // Device memory in bytes.
  std::int64_t memory_bytes() const;
  // Bytes of device memory that the tensors of one process can occupy; at
  // least 1.
  std::int64_t allocatable_bytes() const;
  // Peak FLOP/s. Non-tensor rates stand in where a device lacks a class.
  double flops(MathClass math) const;

  friend bool operator==(const Topology&, const Topology&) = default;
};

// One figure of a Topology: the row that readers, writers, checks and listings
// are driven by.
struct TopologyField {
  std::string_view key;   // "device.f16_tflops": its place in a topology file
  std::string_view unit;  // "TFLOP/s"
  Figure Topology::* figure;
  bool may_be_zero;
};
std::span<const TopologyField> topology_fields();

// Whether every figure is finite and possible. Error: kTopologyFigure.
Result<void> check_topology(const Topology& topology);

// The presets, the default one (`dgx-h100`) first.
const std::vector<Topology>& topology_presets();
// Error: kTopologyUnknown, with the names there are.
Result<Topology> find_topology(std::string_view name);
const Topology& default_topology();

// Time of a kernel that does `flops` operations and moves `bytes` of device
// memory (read plus written): a roofline at `efficiency`, and never below the
// launch. Nothing to do takes no time: views are free.
// Source: autoparallel's cost model.
std::int64_t compute_nanoseconds(const Topology& topology, MathClass math,
                                 double flops, double bytes);

// Where the ranks of a group sit.
struct GroupPlace {
  std::int64_t ranks = 1;
  std::int64_t ranks_per_node = 1;
  std::int64_t nodes = 1;
  friend bool operator==(const GroupPlace&, const GroupPlace&) = default;
};

// The place of every group of a mesh's dims on a topology.
//
// With g devices a node and m the ranks that one step of a mesh dim strides
// over, a dim of size n has min(n, g/m) ranks a node (at least 1) on n over
// that many nodes; groups of several dims multiply.
class MeshPlaces {
 public:
  MeshPlaces(const Topology& topology, const DeviceMesh& mesh);

  int ndim() const { return static_cast<int>(dims_.size()); }
  const GroupPlace& of(int mesh_dim) const {
    return dims_[static_cast<std::size_t>(mesh_dim)];
  }
  // The group over the mesh dims whose bits are set.
  GroupPlace of_mask(std::uint32_t mesh_dims) const;

 private:
  std::int64_t node_size_;
  InlineVector<GroupPlace, 5> dims_;
};

}  // namespace shardprop
