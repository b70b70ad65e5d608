// `load_rank_programs` reads a folder with a program for each rank.
//
//   DIR/shardings.json    layouts of inputs and outputs, groups, the mesh
//   DIR/rank0.pt2 ...     a program for each rank, or
//   DIR/program.pt2       one program for all ranks
//
// Programs may also be .json.gz or .json. `shardprop emit` writes such a
// folder. A hand-written shardings.json needs the inputs alone:
//
//   {"schema": "shardprop.shardings/1",
//    "groups": [{"name": "1", "ranks": [[0, 1]]}],
//    "inputs": [{"name": "x", "placements": ["S(0)"]}],
//    "outputs": [{"name": "mm", "placements": ["S(0)"]}]}
//
// `name` is the value in the single-device graph and `argument` the one in the
// programs; without `argument` they are equal. Outputs are in the order of the
// programs. An output without `placements` may have any layout.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/io/load_graph.h>
#include <shardprop/program/rank_programs.h>

#include <memory>
#include <optional>
#include <string>

namespace shardprop {

// An empty `mesh` stands for the mesh of shardings.json. Errors:
//
//   * kFileUnreadable: shardings.json is missing, or the folder has no program;
//   * kInvalidArgument: another number of programs than ranks, another mesh
//     than that of shardings.json, no mesh at all, or one that cannot be
//     simulated (check_simulated());
//   * kFieldMissing, kFieldType, kSchemaVersion, kPlacementCount and errors of
//     layouts: shardings.json is malformed;
//   * kGroup: a group has a rank that is not on the mesh, or has a rank twice;
//   * those of load_graph().
Result<RankPrograms> load_rank_programs(
    const std::string& folder, const std::optional<DeviceMesh>& mesh,
    const std::shared_ptr<const OpLibrary>& library,
    const LoadOptions& options = {});

}  // namespace shardprop
