// The per-rank programs of attention with sharded keys, or with sharded queries
// and a causal mask. They are texts in the language of src/ops/program/program_text.h.
//
// Each block of keys has a log-sum-exp of its own. The log-sum-exps of all
// ranks determine the weight of each block.
//
// If ranks share the heads of a group, keys and values are on every rank. Each
// rank selects the key head of each of its query heads, and adds up the
// gradients of a key head.
//
// A rank's rows of a causal mask begin at an offset that no kernel accepts. A
// first call without a mask covers the keys up to the position of the rank's
// first row, for all rows. A second call covers the following keys, for the
// rows after the first. The mask of the second call begins at its corner:
//
//   rows 2 to 4 of 6:   x x x . . .      first    x x x
//                       x x x x . .               x x x   second  x .
//                       x x x x x .               x x x           x x
#pragma once

#include <string>
#include <string_view>

namespace shardprop::attention {

// `ForwardKernel` describes a forward kernel that runs over blocks of keys, or
// over rows if `is_causal`.
struct ForwardKernel {
  std::string_view name;
  // Arguments between `value` and `dropout_p`, such as "attn_bias, ".
  std::string_view bias;
  // Arguments between `is_causal` and `scale`, such as ", return_debug_mask".
  std::string_view options;
  // Results after the log-sum-exp, such as ", state".
  std::string_view others;
  // The log-sum-exp is not produced without `compute_log_sumexp`.
  bool may_omit_sums = false;
  // The weight of a block's output: `w / s`, with the dims that the output has.
  std::string_view weight = "unsqueeze(w / s, -1)";
  // The log-sum-exp `n` of all blocks, padded as the kernel pads it.
  std::string_view of_blocks = "n";
  // These texts are for a kernel with a log-sum-exp [batch, heads, queries].
  // `behind_first` is the part of the first call's log-sum-exp (`l1`) for the
  // `d` rows after the first. `of_second` is that of the second call (`l2`).
  // `of_rows` writes their combination (`b`) into `l1`.
  std::string_view behind_first = "slice(l1, 2, 1)";
  std::string_view of_second = "l2";
  std::string_view of_rows = "slice_scatter(l1, b, 2, 1)";
};

std::string forward_program(const ForwardKernel& kernel);

// `BackwardKernel` describes a backward kernel that runs over rows.
struct BackwardKernel {
  std::string_view name;
  // Arguments between `value` and `out`, such as "attn_bias, ".
  std::string_view before_out;
  // Arguments between the log-sum-exp and `scale`. $Q and $K are the lengths of
  // queries and keys, and $CAUSAL is the value of `is_causal`.
  std::string_view after_sums = "dropout_p, $CAUSAL";
  std::string_view gradient = "grad_out";
  // The log-sum-exp of the rows after the first.
  std::string_view behind_first = "slice(logsumexp, 2, 1)";
};

std::string backward_program(const BackwardKernel& kernel);

// Returns the program of the composite operator, which has no log-sum-exp. If
// `is_causal`, a mask limits a rank's rows to the keys up to their position.
// Over blocks of keys, the program materializes the scores, so there should be
// few.
std::string composite_program();

}  // namespace shardprop::attention
