// Measures the rounding errors of the values of an unsharded program.
#pragma once

#include "verify/expected.h"

#include <shardprop/base/result.h>
#include <shardprop/collective/local_tensor.h>
#include <shardprop/program/spmd_program.h>

#include <vector>

namespace shardprop::verification {

// Runs the program again and sets `body.least_scales` from the distances to
// `body.values`. If these are f64, one run has floats in their own dtypes, and
// another one has f64 inputs that differ in the last place. Otherwise one run is
// in f64. `inputs` have the dtypes of the first of these runs.
Result<void> measure_noise(const SpmdProgram& program,
                           std::vector<LocalTensor> inputs,
                           Expected::Body& body);

}  // namespace shardprop::verification
