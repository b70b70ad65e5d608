#include "commands.h"

int main(int argc, char** argv) {
  using namespace shardprop::cli;
  const Command commands[] = {
      explain_command(),      ops_command(),   propagate_command(),
      redistribute_command(), solve_command(), topologies_command(),
  };
  return run(commands, argc, argv);
}
