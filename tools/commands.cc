#include "commands.h"

namespace shardprop::cli {

int run(int argc, const char* const* argv) {
  const Command commands[] = {
      emit_command(),       explain_command(),      ops_command(),
      propagate_command(),  redistribute_command(), solve_command(),
      topologies_command(),
  };
  return run(commands, argc, argv);
}

}  // namespace shardprop::cli
