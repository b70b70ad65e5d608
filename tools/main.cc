#include "cli/interruption.h"
#include "commands.h"

int main(int argc, char** argv) {
  shardprop::cli::announce_signals();
  return shardprop::cli::run(argc, argv);
}
