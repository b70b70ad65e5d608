// read_preset() reads the text of a preset: the TOML that topology_to_toml()
// writes, and a table of measured matmuls. Every line is one of
//
//   # a comment
//   name = "dgx-h100"
//   [device]
//   f16_tflops = {value = 989.0, source = "NVIDIA H100 datasheet"}  # TFLOP/s
//   [[measured]]
//   collective = "all_gather"
//   [samples]
//   source = "aiconfigurator-core 0.12.0"
//   matmuls = """
//   16 4096 4096 16.6
//   """
//
// The reader of a user's files (io/topology_file.h) accepts all of TOML. It is
// in a module above this one, so presets have their own reader.
#pragma once

#include <shardprop/mesh/kernel_fit.h>
#include <shardprop/mesh/topology.h>

#include <string_view>

namespace shardprop {

struct Preset {
  Topology topology;
  PresetSamples samples;
};

// Error: kTopologyFile, at the line that is none of the above or that lacks a
// figure.
Result<Preset> read_preset(std::string_view text);

}  // namespace shardprop
