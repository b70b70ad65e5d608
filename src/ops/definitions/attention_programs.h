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
  // Arguments between `value` and `dropout_p`: "attn_bias, ".
  std::string_view bias;
  // Arguments between `is_causal` and `scale`: ", return_debug_mask".
  std::string_view options;
  // Results behind the log-sum-exp: ", state".
  std::string_view others;
  // What a block's output weighs, `w / s` as the log-sum-exp lies.
  std::string_view weight = "unsqueeze(w / s, -1)";
  // The log-sum-exp `n` of all blocks, as the kernel pads it.
  std::string_view of_blocks = "n";
  // A log-sum-exp [batch, heads, queries] where a kernel does not say otherwise:
  // of the rows behind the first, of which there are `d`, by the first call
  // (`l1`) and by the second (`l2`), and what those two come to (`b`), as the
  // first one lies.
  std::string_view behind_first = "slice(l1, 2, 1)";
  std::string_view of_second = "l2";
  std::string_view of_rows = "slice_scatter(l1, b, 2, 1)";
};

std::string forward_program(const ForwardKernel& kernel);

// Over rows.
struct BackwardKernel {
  std::string_view name;
  // Arguments between `value` and `out`: "attn_bias, ".
  std::string_view before_out;
  // Arguments between the log-sum-exp and `scale`, where the lengths of queries
  // and keys are $Q and $K and what `is_causal` is told is $CAUSAL.
  std::string_view after_sums = "dropout_p, $CAUSAL";
  std::string_view gradient = "grad_out";
  // The log-sum-exp of the rows behind the first.
  std::string_view behind_first = "slice(logsumexp, 2, 1)";
};

std::string backward_program(const BackwardKernel& kernel);

// The composite operator has no log-sum-exp. Where `is_causal`, a rank's rows
// see the keys up to their own, by a mask. Over blocks of keys the scores are
// written out, so that they should be few.
std::string composite_program();

}  // namespace shardprop::attention
