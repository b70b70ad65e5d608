// What this build is.
#pragma once

#include <string>

namespace shardprop::cli {

// Version, build options (CUDA, NCCL, MPI) and compiler, a line each.
std::string version_text();

}  // namespace shardprop::cli
