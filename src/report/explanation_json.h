// Writes the explanations of a plan as JSON objects and reads them: reasons of
// copies, notes, roles of mesh dims, and the conflict of an infeasible plan.
//
//   {"cause":"cost","user":{"kind":"node","name":"mm_1"},"operand":1,
//    "wanted":["R","S(1)"],"alternative":{"placements":["S(0)","S(1)"],"us":412.0}}
//   {"code":"pipeline_dim","mesh_dim":"pp","size":2}
#pragma once

#include "io/json_text.h"
#include "report/json_cursor.h"

#include <shardprop/mesh/device_mesh.h>
#include <shardprop/plan/copy_reason.h>
#include <shardprop/plan/plan_conflict.h>
#include <shardprop/plan/plan_note.h>
#include <shardprop/plan/plan_role.h>

#include <cstdint>

namespace shardprop {

void write_reason(JsonText& json, const CopyReason& reason);
void write_note(JsonText& json, const PlanNote& note);
void write_role(JsonText& json, const PlanRole& role);
void write_conflict(JsonText& json, const PlanConflict& conflict);

// The readers report what is malformed as a problem of the cursor.
CopyReason read_reason(const JsonCursor& at, const DeviceMesh& mesh);
PlanNote read_note(const JsonCursor& at, const DeviceMesh& mesh);
PlanRole read_role(const JsonCursor& at, const DeviceMesh& mesh);
// `end` is the slot that represents the end of the program.
PlanConflict read_conflict(const JsonCursor& at, std::int64_t end);

// Reads a role of schemas 1 and 2, in which a module is a text: "part of mlp".
PlanRole read_role_of_text(const JsonCursor& at, const DeviceMesh& mesh);

// Reads one placement per mesh dim.
Layout read_layout(const JsonCursor& at, const DeviceMesh& mesh);
Pin read_pin(const JsonCursor& at);
Recipe read_recipe(const JsonCursor& at);

}  // namespace shardprop
