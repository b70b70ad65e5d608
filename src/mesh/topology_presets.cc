#include <shardprop/mesh/topology.h>

#include <string>

namespace shardprop {
namespace {

constexpr const char* kNcclChannels =
    "16 channels of NCCL, each as it takes an NVLink, as in "
    "meta-pytorch/autoparallel";
constexpr const char* kNcclLinks =
    "12 NVLinks at the 20 GB/s that NCCL's graph search takes each for";
constexpr const char* kNcclTuned =
    "NCCL 2.27.5 tuned tables, published in meta-pytorch/autoparallel";
constexpr const char* kAutoparallel =
    "nccl-tests on DGX H100, published in meta-pytorch/autoparallel";
constexpr const char* kAutoparallelRule =
    "compute model of meta-pytorch/autoparallel";
constexpr const char* kArchitecture =
    "NVIDIA's whitepaper of the architecture: enabled SMs of this part";
constexpr const char* kEngineOwn = "none beyond NCCL's own constants";
constexpr const char* kFlashOnAmpere =
    "FlashAttention-2 reaches 50 to 73 % of an A100 (arXiv 2307.08691)";
constexpr const char* kFlashOnHopper =
    "FlashAttention-2 reaches 35 % of an H100 (arXiv 2407.08608)";
constexpr const char* kOverlap =
    "assumed: between nothing hidden (0) and all hidden (1)";
// An H100 80GB reports 81,559 MiB (79.6 GiB) in all and 79.1 GiB to PyTorch.
constexpr const char* kPlannedOn80 =
    "72 to 75 of 80 GiB are planned with: the driver withholds 0.9 GiB, the "
    "CUDA context and NCCL take 1 to 3 GiB, fragmentation 2 to 4 GiB";
constexpr const char* kPlannedAsOn80 =
    "assumed: the share that an H100 leaves for tensors";
constexpr const char* kSameAsF16 = "no such units: the 16-bit rate";

Topology nvidia(std::string name, std::string description) {
  Topology t;
  t.name = std::move(name);
  t.description = std::move(description);
  t.node_latency_us = {0, kEngineOwn};
  t.network_latency_us = {0, kEngineOwn};
  t.efficiency = {0.7, kAutoparallelRule};
  t.launch_us = {7, kAutoparallelRule};
  t.overlap_discount = {0.5, kOverlap};
  return t;
}

// These lines describe large messages inside one node of NVLink 4 with
// NVSwitch.
std::vector<MeasuredLine> nvlink4_lines(const std::string& source) {
  std::vector<MeasuredLine> lines;
  const auto add = [&](std::int64_t ranks, double gather_gbps, double gather_us,
                       double reduce_gbps, double reduce_us) {
    for (const CollectiveKind kind :
         {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter}) {
      lines.push_back({kind, ranks, 1, gather_us, gather_gbps, false, source});
    }
    lines.push_back({CollectiveKind::kAllReduce, ranks, 1, reduce_us,
                     reduce_gbps, false, source});
  };
  add(2, 537, 8, 324, 10);
  add(4, 434, 17, 236, 15);
  add(8, 394, 30, 267, 31);
  return lines;
}

Topology dgx_h100() {
  Topology t = nvidia("dgx-h100", "8 H100 SXM a node, NVSwitch, NDR 400 Gb/s");
  const std::string sheet = "NVIDIA H100 datasheet, dense";
  t.generation = Generation::kHopper;
  t.node_reduces = true;
  t.devices_per_node = {8, "NVIDIA DGX H100 datasheet"};
  t.node_bandwidth_gbps = {320, kNcclChannels};
  t.network_bandwidth_gbps = {48, kNcclTuned};
  t.all_to_all_gbps = {380, kAutoparallel};
  t.f64_tflops = {67, sheet + ", tensor cores"};
  t.f32_tflops = {67, sheet};
  t.tf32_tflops = {494, sheet};
  t.f16_tflops = {989, sheet};
  t.f8_tflops = {1979, sheet};
  t.memory_gbps = {3350, sheet};
  t.multiprocessors = {132, kArchitecture};
  t.memory_gib = {80, sheet};
  t.allocatable = {0.92, kPlannedOn80};
  t.attention_efficiency = {0.35, kFlashOnHopper};
  t.measured = nvlink4_lines(kAutoparallel);
  return t;
}

Topology dgx_h200() {
  Topology t = dgx_h100();
  const std::string sheet = "NVIDIA H200 datasheet, dense";
  t.name = "dgx-h200";
  t.description = "8 H200 SXM a node, NVSwitch, NDR 400 Gb/s";
  t.devices_per_node = {8, "NVIDIA DGX H200 datasheet"};
  t.f64_tflops.source = sheet + ", tensor cores";
  for (Figure Topology::* rate :
       {&Topology::f32_tflops, &Topology::tf32_tflops, &Topology::f16_tflops,
        &Topology::f8_tflops}) {
    (t.*rate).source = sheet;
  }
  t.memory_gbps = {4800, sheet};
  t.memory_gib = {141, sheet};
  t.allocatable = {0.92, kPlannedAsOn80};
  t.measured =
      nvlink4_lines(std::string(kAutoparallel) + "; H200 has the same NVLink");
  return t;
}

Topology dgx_a100() {
  Topology t = nvidia("dgx-a100", "8 A100 SXM 80 GB a node, HDR 200 Gb/s");
  const std::string sheet = "NVIDIA A100 datasheet, dense";
  t.generation = Generation::kAmpere;
  t.devices_per_node = {8, "NVIDIA DGX A100 datasheet"};
  t.node_bandwidth_gbps = {240, kNcclLinks};
  t.network_bandwidth_gbps = {25, "datasheet: 200 Gb/s a device"};
  t.all_to_all_gbps = {240, kNcclLinks};
  t.f64_tflops = {19.5, sheet + ", tensor cores"};
  t.f32_tflops = {19.5, sheet};
  t.tf32_tflops = {156, sheet};
  t.f16_tflops = {312, sheet};
  t.f8_tflops = {624, sheet + " (int8)"};
  t.memory_gbps = {2040, sheet};
  t.multiprocessors = {108, kArchitecture};
  t.attention_efficiency = {0.615, kFlashOnAmpere};
  t.memory_gib = {80, sheet};
  t.allocatable = {0.92, kPlannedOn80};
  return t;
}

Topology gb200_nvl72() {
  Topology t = nvidia("gb200-nvl72", "72 B200 in one NVLink domain, 400 Gb/s");
  const std::string sheet = "NVIDIA GB200 NVL72 datasheet, dense";
  t.generation = Generation::kBlackwell;
  t.node_reduces = true;
  t.devices_per_node = {72, "NVIDIA GB200 NVL72 datasheet"};
  t.node_bandwidth_gbps = {640, kNcclChannels};
  t.network_bandwidth_gbps = {50, "datasheet: 400 Gb/s a device"};
  t.all_to_all_gbps = {640, kNcclChannels};
  t.f64_tflops = {40, sheet};
  t.f32_tflops = {80, sheet};
  t.tf32_tflops = {1100, sheet};
  t.f16_tflops = {2250, sheet};
  t.f8_tflops = {4500, sheet};
  t.memory_gbps = {8000, sheet};
  t.multiprocessors = {148, kArchitecture};
  t.attention_efficiency = {0.35, "assumed: that of an H100"};
  t.memory_gib = {180, sheet};
  t.allocatable = {0.92, kPlannedAsOn80};
  return t;
}

// Each rank is a core: an MPI process or a thread of one program.
Topology cpu_host() {
  Topology t;
  const std::string cycles =
      "AVX-512 core at 3.5 GHz, two 256-bit FMA units (AMD Zen 4)";
  t.name = "cpu-host";
  t.description = "cores of CPU hosts, MPI between them, 25 Gb/s Ethernet";
  t.engine = Engine::kMpi;
  t.devices_per_node = {64, "assumed: one socket of 64 cores"};
  t.node_bandwidth_gbps = {
      9, "MPI_Alltoallw of 512 MiB between 2 ranks, Open MPI 4.1.4 on Zen 4"};
  t.node_latency_us = {1, "assumed: a shared-memory message of Open MPI"};
  t.network_bandwidth_gbps = {3.125, "25 Gb/s Ethernet, one rank at a time"};
  t.network_latency_us = {10, "assumed: TCP over 25 Gb/s Ethernet"};
  t.all_to_all_gbps = {9, t.node_bandwidth_gbps.source};
  t.f64_tflops = {0.056, cycles};
  t.f32_tflops = {0.112, cycles};
  t.tf32_tflops = {0.112, "no such units: the 32-bit rate"};
  t.f16_tflops = {0.112, "no such units: the 32-bit rate"};
  t.f8_tflops = {0.112, kSameAsF16};
  t.memory_gbps = {37.6, "non-temporal copy, 18.8 GB/s read plus written"};
  t.memory_gib = {4, "assumed: 256 GiB of a host over 64 cores"};
  t.allocatable = {0.95, "assumed: the operating system takes 1 in 20"};
  t.multiprocessors = {0, "a core has no tiles to wait for"};
  t.efficiency = {0.7, kAutoparallelRule};
  t.attention_efficiency = {0, "as other kernels"};
  t.launch_us = {0.1, "assumed: a function call and its loop"};
  t.overlap_discount = {0, "a core that sends does not compute"};
  return t;
}

}  // namespace

const std::vector<Topology>& topology_presets() {
  static const std::vector<Topology> presets = {
      dgx_h100(), dgx_a100(), dgx_h200(), gb200_nvl72(), cpu_host()};
  return presets;
}

}  // namespace shardprop
