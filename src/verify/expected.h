// The content of `Expected`.
#pragma once

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
};

}  // namespace shardprop
