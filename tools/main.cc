#include "commands.h"

namespace cli = shardprop::cli;

int main(int argc, char** argv) {
  const cli::Command commands[] = {
      cli::emit_command(),         cli::explain_command(),
      cli::ops_command(),          cli::propagate_command(),
      cli::redistribute_command(), cli::solve_command(),
      cli::topologies_command(),
  };
  return cli::run(commands, argc, argv);
}
