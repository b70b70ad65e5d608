// The subcommands, one file each. Listed here and in main.cc.
#pragma once

#include "cli/command.h"

namespace shardprop::cli {

Command emit_command();
Command explain_command();
Command ops_command();
Command propagate_command();
Command redistribute_command();
Command solve_command();
Command topologies_command();

}  // namespace shardprop::cli
