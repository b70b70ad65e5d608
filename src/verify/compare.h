// Compares a rank's part of a value with the unsharded value.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/collective/communicator.h>
#include <shardprop/collective/local_tensor.h>
#include <shardprop/mesh/device_mesh.h>
#include <shardprop/placement/dtype.h>
#include <shardprop/placement/layout.h>

#include <cstdint>
#include <string>

namespace shardprop::verification {

// Masks have such values; they are not a scale of rounding errors.
inline constexpr double kLargestScale = 1e30;

// Returns the largest relative difference that rounding explains. It is larger
// if the rounding errors of the value were not measured (noise.h).
double tolerance_of(DType dtype, bool is_measured);

// `Bound` is the largest difference of a float: `tolerance` times the largest
// element of the value and of its terms, or times `least_scale` if that is
// larger. Integers must be equal.
struct Bound {
  double tolerance = 1e-8;
  double least_scale = 0;
};

// Returns "[3,0]" for a row-major index.
std::string place_in(std::int64_t element, const Dims& shape);

struct Difference {
  double error = 0;     // the largest, relative to the scale
  bool beyond = false;  // the tolerance, or unequal where all must be equal
  std::int64_t element = 0;  // of the whole value, row-major: the first beyond
  double expected = 0;
  double found = 0;
};

// Reduces terms of partials over their mesh dims first, so all ranks must make
// the call. Errors: the errors of collectives.
Result<Difference> compare(const LocalTensor& held, const LocalTensor& whole,
                           const Layout& layout, const DeviceMesh& mesh,
                           Communicator& communicator, const Bound& bound);

}  // namespace shardprop::verification
