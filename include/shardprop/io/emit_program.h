// `emit_program` writes an SpmdProgram for PyTorch: exported programs of aten
// and _c10d_functional operators on the tensors of one rank.
//
//   std::string bytes = *emit_program(program, *library, 3, EmitFormat::kPt2);
//   // written to rank3.pt2, torch.export.load("rank3.pt2") in Python
//
// Collectives name their groups by mesh dims (shardprop_dp_tp); the caller of
// the program registers these groups. A `wait_tensor` follows each collective.
// The metadata `custom` of every node has {"shardprop": {"node": "mm_1",
// "copy": 3}}: the graph node that it implements, and the copy of the plan that
// it helps to produce. Random numbers are drawn in integer operators
// (program/random_bits.h).
//
// Parameters, buffers and optimizer state are those of the program, without
// their values. The file has each with its sizes and one zero element (strides
// 0); the values are supplied when the program runs. The seed, the learning
// rate and the step number are user inputs.
//
// Local views are aten.reshape, since local strides may need a copy where the
// strides of full tensors do not.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/ops/op_library.h>
#include <shardprop/program/spmd_program.h>

#include <cstdint>
#include <string>

namespace shardprop {

// `EmitFormat` is the file format: a .pt2 archive, or the gzip of its JSON.
enum class EmitFormat : std::uint8_t { kPt2, kJsonGz };

// Returns the JSON of the rank's exported program. Errors: kMeshCoordinate (a
// rank outside the mesh), kNotLowered (an undeclared operator, such as control
// flow), kNoShapeInference (unknown local sizes), kPlanStep.
Result<std::string> exported_program_json(const SpmdProgram& program,
                                          const OpLibrary& library,
                                          std::int64_t rank);

// Returns the bytes of a .pt2 or JSON file. Errors: as above, kOutOfMemory.
Result<std::string> emit_program(const SpmdProgram& program,
                                 const OpLibrary& library, std::int64_t rank,
                                 EmitFormat format);

// Returns the layouts of inputs and outputs on the mesh, and the groups that
// collectives name:
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
// `argument` is the name in the exported program. `local_shapes` has one entry
// per rank in mesh order, or a single entry if all are equal. Outputs are in
// the order in which the exported program returns them. `files` are the names
// of the programs' files, listed under "files" if there are any.
Result<std::string> shardings_json(const SpmdProgram& program,
                                   const OpLibrary& library,
                                   const std::vector<std::string>& files = {});

// Returns the "files" of the text of shardings_json(); empty if the text is
// invalid or has none.
std::vector<std::string> emitted_files(std::string_view shardings);

}  // namespace shardprop
