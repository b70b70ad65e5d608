// This header reads and writes topology files: a Topology as TOML.
//
// A file names the preset on which it is based and lists the differences. A
// figure is a number or a table {value, source}. The source of a plain number
// is the file:
//
//   name = "lab"
//   base = "dgx-h100"             # default: dgx-h100
//   engine = "nccl"               # nccl, mpi, threads
//   generation = "hopper"         # ampere, hopper, blackwell
//   node_reduces = false
//   [network]
//   bandwidth_gbps = {value = 24.0, source = "ib_write_bw, 2026-11"}
//   [device]
//   memory_gib = 141
//   [[measured]]
//   collective = "all_gather"
//   ranks_per_node = 8
//   nodes = 2
//   latency_us = 44.1
//   bandwidth_gbps = 310.0
//   complete = true               # default; see MeasuredLine
//   source = "nccl-tests, 2026-11"
//
// `measured` entries replace those of the base. Keys are those of
// topology_fields(); an unknown key is an error. The files of the presets
// (src/mesh/presets) have the same form. Their table [samples] of measured
// matmuls is checked and has no effect.
#pragma once

#include <shardprop/mesh/topology.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace shardprop {

// Parses a topology. `origin` appears in errors and is the source of figures
// without one. Errors: kTopologyFile (syntax, unknown key, wrong type),
// kTopologyUnknown (the base), kTopologyFigure.
Result<Topology> parse_topology_toml(std::string_view text,
                                     const std::string& origin);

// Loads a preset by its name, or a file by a path that ends in .toml; a fifo is
// read until the deadline. Errors: as above; kTopologyFile also if the file
// cannot be read, kStopped if the deadline passed.
Result<Topology> load_topology(
    const std::string& name_or_path,
    std::optional<std::chrono::steady_clock::time_point> deadline = {});

// Writes every figure with its source; the text reads back as an equal
// topology.
std::string topology_to_toml(const Topology& topology);

}  // namespace shardprop
