// Whether this machine has the memory for a trial whose ranks are threads.
#pragma once

#include "cli/trial.h"

#include <cstddef>

namespace shardprop::cli {

// What such a trial is sure to take is compared with what is to be had: the
// ranks' tensors, and the views of each other's that their messages list.
// `ranks` take part. Errors: kOutOfMemory, with both sizes; those of the
// programs.
Result<void> check_trial_memory(const TensorSpec& src, const TensorSpec& dst,
                                std::size_t ranks, const ProgramOf& program_of);

}  // namespace shardprop::cli
