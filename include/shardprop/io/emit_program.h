// An SpmdProgram as PyTorch reads it: exported programs of aten and
// _c10d_functional operators on the tensors of one rank.
//
//   std::string bytes = *emit_program(program, *library, 3, EmitFormat::kPt2);
//   // written to rank3.pt2, torch.export.load("rank3.pt2") in Python
//
// Collectives name their groups by mesh dims (shardprop_dp_tp), which whoever
// runs the program registers; `wait_tensor` stands behind each. Every node has
// {"shardprop": {"node": "mm_1", "copy": 3}} in its metadata `custom`: the node
// of the graph that it runs for, and the copy of the plan that it helps to
// make. Random numbers are drawn in integer operators (program/random_bits.h).
//
// Parameters, buffers and optimizer state are those of the program; their
// values are not in the file: each stands there with its sizes and one zero
// element, strides 0, and is given when the program runs. The seed, the
// learning rate and the number of the step are inputs of the user's.
//
// Local views are aten.reshape: local strides may ask for a copy where those of
// whole tensors do not.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/ops/op_library.h>
#include <shardprop/program/spmd_program.h>

#include <cstdint>
#include <string>

namespace shardprop {

enum class EmitFormat : std::uint8_t { kPt2, kJsonGz };

// The JSON of rank's exported program. Errors: kMeshCoordinate (a rank outside
// the mesh); kNotLowered (an operator that is not declared, such as control
// flow); kNoShapeInference (local sizes that are not known); kPlanStep.
Result<std::string> exported_program_json(const SpmdProgram& program,
                                          const OpLibrary& library,
                                          std::int64_t rank);

// The same as a file. Errors: as above, kOutOfMemory.
Result<std::string> emit_program(const SpmdProgram& program,
                                 const OpLibrary& library, std::int64_t rank,
                                 EmitFormat format);

// How inputs and outputs lie on the mesh, and the groups that collectives name:
//
//   {"schema": "shardprop.shardings/1",
//    "mesh": {"dims": [{"name": "dp", "size": 2}], "ranks": [0, 1]},
//    "groups": [{"name": "shardprop_dp", "mesh_dims": ["dp"],
//                "ranks": [[0, 1]]}],
//    "inputs": [{"name": "w", "kind": "parameter", "argument": "p_w",
//                "dtype": "f32", "shape": [8, 4], "mesh_dims": ["dp"],
//                "placements": ["S(0)"], "shard_order": {"0": ["dp"]},
//                "local_shapes": [[4, 4], [4, 4]]}],
//    "outputs": [...]}
//
// `argument` is the name in the exported program; `local_shapes` has one entry
// per rank in mesh order, or one where all are alike. Outputs stand in the
// order in which the exported program hands them back. `files` are the names of
// the programs' files, listed under "files" if there are any.
Result<std::string> shardings_json(const SpmdProgram& program,
                                   const OpLibrary& library,
                                   const std::vector<std::string>& files = {});

// The "files" of such a text; empty if the text is not one, or lists none.
std::vector<std::string> emitted_files(std::string_view shardings);

}  // namespace shardprop
