// Measures the rounding errors of the values of an unsharded program.
#pragma once

#include "verify/expected.h"

#include <shardprop/base/result.h>
#include <shardprop/collective/local_tensor.h>
#include <shardprop/program/spmd_program.h>

#include <vector>

namespace shardprop::verification {

// Runs the program a second time, with floats in their own dtypes if
// `body.values` are f64, and in f64 otherwise. Sets `body.least_scales` from the
// distances of both runs. `inputs` have the dtypes of the second run.
Result<void> measure_noise(const SpmdProgram& program,
                           std::vector<LocalTensor> inputs,
                           Expected::Body& body);

}  // namespace shardprop::verification
