// Reads the program of a plan from its JSON: values, copies, nodes, updates and
// outputs.
#pragma once

#include "report/json_cursor.h"

#include <shardprop/plan/plan.h>

#include <cstdint>

namespace shardprop {

// `PlanSchema` is the number of a file's schema: 3 for "shardprop.plan/3".
struct PlanSchema {
  int number = 0;
  // Whether the file has all that a run of the plan needs.
  bool is_runnable() const { return number > 1; }
  // Whether reasons, notes and roles are objects; they are texts if not.
  bool is_typed() const { return number > 2; }
};

// Fills values, copies, nodes, updates and outputs. Reads the mesh of `plan`.
// `end` is the slot that represents the end of the program. A malformed member
// becomes the problem of the cursor.
void read_program(const JsonCursor& root, PlanSchema schema, std::int64_t end,
                  Plan& plan);

}  // namespace shardprop
