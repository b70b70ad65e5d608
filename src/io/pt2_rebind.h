// Changes the sizes of a program that was exported with fixed sizes.
//
//   batch 5, seq 37:    view(x, [185, 8])     arange(37)
//   batch 11, seq 101:  view(x, [1111, 8])    arange(101)
//   batch 64, seq 8192: view(x, [524288, 8])  arange(8192)
//
// Every number of the program follows the sizes (io/size_forms.h): the sizes and
// strides of tensors, and the numbers among arguments. Further exports of the same
// program at other sizes determine how. Without one, a size must divide no number
// that belongs to the model.
#pragma once

#include <shardprop/ops/op_library.h>

#include "io/pt2_program.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace shardprop::pt2 {

// Returns whether a dim of the user's inputs is symbolic.
bool has_symbolic_inputs(const Program& program);

// Sets the sizes that the user's inputs have, and removes them from `sizes`. A
// size is named `batch` (dim 0 of the inputs), `seq` (dim 1) or INPUT.DIM, as in
// image.2. The names of symbols are left in `sizes`. `others` are further exports
// of the program; they stay as they are. Errors: kInvalidArgument (a size that the
// program does not have, or that the exports do not vary; other programs; a
// number that is ambiguous or is no function of the sizes).
Result<void> rebind_sizes(Program& program,
                          const std::vector<const Program*>& others,
                          const OpLibrary& library,
                          std::map<std::string, std::int64_t>& sizes);

}  // namespace shardprop::pt2
