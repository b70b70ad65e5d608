// GraphReading is how a graph is to be read: rules for the user's own
// operators, sizes, and which program of a file, each with the place that
// specified it.
//
//   --bound u0=128       bounds {{"u0=128", "--bound u0=128"}}
//   --size s0=8,s1=4     sizes {{"s0=8", "--size s0=8,s1=4"}, {"s1=4", ...}}
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
  std::string place;  // of errors: the flag, or the plan's file
};

struct GraphReading {
  std::vector<Said> rules;   // OP=ROW, DECLARATION=ROW
  std::vector<Said> bounds;  // NAME=N
  std::vector<Said> sizes;   // NAME=N
  Said program;              // NAME; empty: the file holds one
  Deadline deadline;         // for input that comes through a pipe
};

// The operator that a rule is of: "mylib.swiglu" of
// "torch.ops.mylib::swiglu = pointwise()", and "acme.accum" of
// "acme::accum(Tensor x, Tensor(a!) y, int n=1) -> ()=batch(0)".
std::string operator_of(std::string_view rule);
// The operator definition: the text after the last `=`. Empty if there is none.
std::string_view row_of(std::string_view rule);
// The declaration of the operator; empty if the rule has only its name.
std::string_view declaration_of(std::string_view rule);

// Adds the sizes of one flag: "s0=8,s1=4".
void add_sizes(GraphReading& reading, std::string_view text,
               const std::string& place);

// Returns the reading that the flags specify.
GraphReading reading_of(const Arguments& arguments);

// Adds how the graph of a saved plan was read. If a flag names the same
// operator or size, it must specify the same rule or value. Error:
// kInvalidArgument.
Result<void> add_saved(GraphReading& reading, const Plan& plan,
                       const std::string& path);

// Writes into a plan how its graph was read, so that the plan is complete
// without the flags.
void save(const GraphReading& reading, Plan& plan);

}  // namespace shardprop::cli
