// These functions return the subcommands, one file each. commands.cc lists them
// too.
#pragma once

#include "cli/command.h"

namespace shardprop::cli {

Command diff_command();
Command emit_command();
Command explain_command();
Command ops_command();
Command propagate_command();
Command redistribute_command();
Command solve_command();
Command topologies_command();
Command verify_command();  // if the reference is built
Command why_command();

// Runs the command that the arguments name, the program's own name first, and
// returns its exit code.
int run(int argc, const char* const* argv);

}  // namespace shardprop::cli
