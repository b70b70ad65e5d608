// The content of `Expected`.
#pragma once

#include "verify/compare.h"

#include <shardprop/verify/verify.h>

#include <string>
#include <unordered_map>
#include <vector>

namespace shardprop {

struct Expected::Body {
  std::shared_ptr<const OpLibrary> library;
  VerifyOptions options;
  // Unsharded inputs by name, row-major, in the dtypes of the run.
  std::unordered_map<std::string, LocalTensor> inputs;
  // Every value of the unsharded program by name, row-major.
  std::unordered_map<std::string, LocalTensor> values;
  // By name, the least scale of a value's differences: rounding errors of a
  // value that cancels are larger than its elements explain (noise.h). Empty if
  // they could not be measured.
  std::unordered_map<std::string, double> least_scales;
  bool is_measured = false;

  verification::Bound bound(const std::string& name, DType dtype) const;
};

}  // namespace shardprop
