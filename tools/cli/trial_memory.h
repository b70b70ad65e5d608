// check_trial_memory() checks that this machine has the memory for a trial
// whose ranks are threads.
#pragma once

#include "cli/trial.h"

#include <cstddef>

namespace shardprop::cli {

// Compares the least memory of the trial with the memory of the machine. A
// trial of `ranks` ranks needs their tensors and the views in their messages.
// Errors are kOutOfMemory, with both sizes, and those of the programs.
Result<void> check_trial_memory(const TensorSpec& src, const TensorSpec& dst,
                                std::size_t ranks, const ProgramOf& program_of);

}  // namespace shardprop::cli
