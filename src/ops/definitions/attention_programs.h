// What each rank runs of an attention whose keys, or whose causal queries, are
// sharded: texts in the language of src/ops/program_text.h.
//
// A block of keys has a log-sum-exp of its own, and those of all ranks say what
// each block weighs.
//
// A rank's rows of a causal mask begin at an offset that no kernel takes. They
// all see the keys up to the first row's own, in a first call without a mask;
// the rows behind it see, in a second call, the keys beside themselves, whose
// mask begins at its corner:
//
//   rows 2 to 4 of 6:   x x x . . .      first    x x x
//                       x x x x . .               x x x   second  x .
//                       x x x x x .               x x x           x x
#pragma once

#include <string>
#include <string_view>

namespace shardprop::attention {

// Over blocks of keys, or where `is_causal`, over rows.
struct ForwardKernel {
  std::string_view name;
  // Arguments between `is_causal` and `scale`: ", return_debug_mask".
  std::string_view options;
  // Results behind the log-sum-exp: ", state".
  std::string_view others;
};

std::string forward_program(const ForwardKernel& kernel);

// Over rows.
struct BackwardKernel {
  std::string_view name;
  // Lengths of queries and keys are told.
  bool takes_lengths = false;
};

std::string backward_program(const BackwardKernel& kernel);

}  // namespace shardprop::attention
