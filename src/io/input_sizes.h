// Finds the sizes of a program in the shapes of the user's inputs.
#pragma once

#include <shardprop/base/result.h>

#include "io/pt2_program.h"
#include "io/size_forms.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace shardprop::pt2 {

// Returns the sizes on which the numbers of the program may depend, with the wanted
// values of those that `sizes` names, which are removed from it:
//
// * with further exports, all sizes that the exports vary;
// * with one export, the sizes that are given.
//
// The names of symbols are left in `sizes`. Errors: those of rebind_sizes().
Result<std::vector<FreeSize>> free_sizes(
    const std::vector<const Program*>& exports,
    std::map<std::string, std::int64_t>& sizes);

}  // namespace shardprop::pt2
