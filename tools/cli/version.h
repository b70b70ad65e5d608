// version_text() describes this build.
#pragma once

#include <string>

namespace shardprop::cli {

// Returns the version, the build options (CUDA, NCCL, MPI) and the compiler,
// one line each.
std::string version_text();

}  // namespace shardprop::cli
