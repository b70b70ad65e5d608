// Which values share a storage, what their users want of it, and the states in
// between.
#pragma once

#include "plan/problem_data.h"
#include "plan/storage_forest.h"

#include <cstdint>

namespace shardprop {

// Nodes without a use after which a storage may be held in other states, or be
// made anew.
inline constexpr std::int64_t kLongPause = 128;

// Fills values[].storage, values[].place and storages of a problem whose
// variables are complete and whose values know their tensors. Errors:
// kProblemTooLarge, kStopped.
Result<void> build_storages(ProblemData& data, const StorageForest& forest);

}  // namespace shardprop
