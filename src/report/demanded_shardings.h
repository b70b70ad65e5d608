// Writes and reads the demanded factor shardings of a plan.
#pragma once

#include "io/json_text.h"
#include "report/json_cursor.h"

#include <shardprop/mesh/device_mesh.h>
#include <shardprop/plan/demanded_shardings.h>

#include <string>

namespace shardprop {

// {"most_of_factor": 8, "most_of_value": 8, "left_out_of_factors": 0,
//  "left_out_of_values": 0, "split_operators": 0,
//  "demanded": [{"op": "aten.mm.default", "rule": "ab,bc->ac", "factor": "a",
//                "sharding": ["SS(0,2)"], "operators": 12}]}
void write_demanded_shardings(JsonText& json, const DemandedShardings& all);

// The cursor records each malformed member.
DemandedShardings read_demanded_shardings(const JsonCursor& at,
                                          const DeviceMesh& mesh);

// Returns lines of text with the list and the caps. Precondition: not empty.
std::string demanded_shardings_text(const DemandedShardings& all);

}  // namespace shardprop
