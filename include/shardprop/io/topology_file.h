// Topology files: a Topology as TOML.
//
// A file names the preset it starts from and says what differs; every figure
// may carry its source, as a table or behind the number's key:
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
// topology_fields(); an unknown key is an error.
#pragma once

#include <shardprop/mesh/topology.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace shardprop {

// `origin` stands in errors and as the source of figures that name none.
// Errors: kTopologyFile (syntax, unknown key, wrong type), kTopologyUnknown
// (the base), kTopologyFigure.
Result<Topology> parse_topology_toml(std::string_view text,
                                     const std::string& origin);

// A preset's name, or the path of a file that ends in .toml; a fifo is waited
// for until the deadline, if there is one. Errors: as above; kTopologyFile also
// when the file cannot be read, kStopped when the deadline came first.
Result<Topology> load_topology(
    const std::string& name_or_path,
    std::optional<std::chrono::steady_clock::time_point> deadline = {});

// Every figure with its source; reads back equal.
std::string topology_to_toml(const Topology& topology);

}  // namespace shardprop
