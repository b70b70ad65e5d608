#include "commands.h"

int main(int argc, char** argv) { return shardprop::cli::run(argc, argv); }
