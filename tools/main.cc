#include "commands.h"

int main(int argc, char** argv) {
  using namespace shardprop::cli;
  const Command commands[] = {
      propagate_command(),
      redistribute_command(),
      topologies_command(),
  };
  return run(commands, argc, argv);
}
