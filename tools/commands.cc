#include "commands.h"

namespace shardprop::cli {

namespace {

std::vector<Command> commands() {
  return {
      diff_command(),   emit_command(),       explain_command(),
      ops_command(),    propagate_command(),  redistribute_command(),
      solve_command(),  topologies_command(), why_command(),
#ifdef SHARDPROP_WITH_VERIFY
      verify_command(),
#endif
  };
}

}  // namespace

int run(int argc, const char* const* argv) { return run(commands, argc, argv); }

}  // namespace shardprop::cli
