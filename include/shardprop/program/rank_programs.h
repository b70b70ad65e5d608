// `RankPrograms` is one program for each rank of a mesh, as graphs of local
// tensors and collectives. `shardprop emit` writes such programs, and so do
// other tools and people.
//
//   RankPrograms programs = *load_rank_programs("out", mesh, library);
//   programs.ranks[1]->graph->nodes().size();   // the program of rank 1
//   programs.inputs[0].layout;                  // S(0),R
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/graph/graph.h>
#include <shardprop/graph/output_kind.h>
#include <shardprop/mesh/device_mesh.h>
#include <shardprop/ops/op_library.h>
#include <shardprop/placement/layout.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace shardprop {

// `NamedGroups` is the groups of ranks that have one name in the programs. Each
// rank is in at most one of them.
struct NamedGroups {
  std::string name;
  std::vector<std::vector<std::int64_t>> ranks;
};

// `ShardedTensor` is an input or output of the programs.
struct ShardedTensor {
  std::string name;      // of the value in the single-device graph
  std::string argument;  // its name in the programs
  // Outputs that replace an input, or are its gradient: the input's name.
  std::string target = {};
  std::optional<OutputKind> kind = {};  // of outputs
  std::optional<Layout> layout = {};
};

// `RankProgram` is the program of one rank, or of several equal ones.
struct RankProgram {
  std::string file;
  std::shared_ptr<const Graph> graph;
  // The node of the single-device graph for which a node of this program runs,
  // by the name of this program's value. Only programs of `emit` state it, and
  // redistributed copies are left out.
  std::unordered_map<std::string, std::string> planned_nodes;
};

struct RankPrograms {
  DeviceMesh mesh;
  std::vector<NamedGroups> groups;
  std::vector<ShardedTensor> inputs;
  std::vector<ShardedTensor> outputs;  // in the order of the programs
  // The library with the operators of PyTorch's collectives.
  std::shared_ptr<const OpLibrary> library;
  // By row-major index on the mesh.
  std::vector<std::shared_ptr<const RankProgram>> ranks;
};

// Each simulated rank is a thread with two memory mappings, and a process may
// have 65,530 of them by default.
inline constexpr std::int64_t kMostSimulatedRanks = 30'000;

// Checks that the ranks of a mesh can be simulated. Error: kInvalidArgument, if
// the mesh has more ranks than that, or numbers a rank beyond.
Result<void> check_simulated(const DeviceMesh& mesh);

}  // namespace shardprop
