// How a graph is to be read: rules for operators of the user's own, sizes that
// depend on data, and which program of a file, each with where it was said.
//
//   --bound u0=128       bounds {{"u0=128", "--bound u0=128"}}
//   --plan a.json        bounds {{"u0=128", "--plan a.json"}}, as the file says
#pragma once

#include "cli/command.h"
#include "io/input_file.h"

#include <shardprop/plan/plan.h>

#include <string>
#include <vector>

namespace shardprop::cli {

struct Said {
  std::string text;   // NAME=VALUE
  std::string place;  // of errors: the flag, or the plan that says it
};

struct GraphReading {
  std::vector<Said> rules;   // OP=ROW
  std::vector<Said> bounds;  // NAME=N
  Said program;              // NAME; empty: the file holds one
  Deadline deadline;         // of waiting for what comes through a pipe
};

// The operator that a rule is of: "mylib.swiglu" of
// "torch.ops.mylib::swiglu = pointwise()".
std::string operator_of(std::string_view rule);

// As the flags say.
GraphReading reading_of(const Arguments& arguments);

// Adds how the graph of a saved plan was read. What the flags say of the same
// operator or size must be the same. Error: kInvalidArgument.
Result<void> add_saved(GraphReading& reading, const Plan& plan,
                       const std::string& path);

// Writes into a plan how its graph was read, so that it stands alone.
void save(const GraphReading& reading, Plan& plan);

}  // namespace shardprop::cli
