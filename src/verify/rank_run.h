// Runs the programs of all ranks and keeps the values that have a counterpart.
#pragma once

#include "verify/expected.h"
#include "verify/rank_groups.h"

#include <shardprop/base/result.h>
#include <shardprop/collective/local_tensor.h>
#include <shardprop/program/rank_programs.h>
#include <shardprop/program/spmd_program.h>

#include <string>
#include <unordered_map>
#include <vector>

namespace shardprop::verification {

// `MatchedValues` names the counterparts of a rank program's values.
struct MatchedValues {
  // The key is a value of the rank's program. The entry is the value of the
  // single-device program that it should equal.
  std::unordered_map<std::string, std::string> names;
  // True if the program itself states them; false if names are equal.
  bool is_stated = false;
};

// `model` is the single-device program.
MatchedValues matched_values(const RankProgram& program,
                             const SpmdProgram& model);

// `RankRun` holds the values of one rank.
struct RankRun {
  std::unordered_map<std::string, LocalTensor> values;  // by model value
  std::vector<LocalTensor> outputs;
};

// Returns the runs by row-major index on the mesh. Errors: those of
// verify_rank_programs() about inputs, operators and values.
Result<std::vector<RankRun>> run_rank_programs(const RankPrograms& programs,
                                               const RankGroups& groups,
                                               const SpmdProgram& model,
                                               const Expected::Body& expected);

}  // namespace shardprop::verification
