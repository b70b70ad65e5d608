// nothing_wrong() is the success result of a check that runs often.
//
//   if (placements <= kMaxMeshDims) return nothing_wrong();
//
// `return {}` has the same meaning but zeroes the storage of the error first.
// GCC does this with an instruction that takes longer than the check itself.
#pragma once

#include <shardprop/base/result.h>

namespace shardprop {

inline Result<void> nothing_wrong() {
  static const Result<void> kWell;
  return kWell;
}

}  // namespace shardprop
