#include "ops/definitions/attention_programs.h"

namespace shardprop::attention {
namespace {

// Each line of the text with ` if CONDITION` behind it.
std::string where(std::string_view condition, std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    if (!line.empty()) {
      out += std::string(line) + " if " + std::string(condition) + '\n';
    }
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return out;
}

// The text with each occurrence of `word` replaced.
std::string with(std::string text, std::string_view word,
                 std::string_view replacement) {
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos;
       at += replacement.size()) {
    text.replace(at, word.size(), replacement);
  }
  return text;
}

constexpr std::string_view kOverBlocks = R"(
o, l$OTHERS = $KERNEL(query, key, value, dropout_p, is_causal$OPTIONS, scale=scale)
m = all_reduce_max(l)
w = exp(l - m)
s = all_reduce_sum(w)
r = cast(all_reduce_sum(o * unsqueeze(w / s, -1)), dtype(out))
n = m + log(s)
)";

constexpr std::string_view kKeysOfRows = R"(
h = offset(query, 2) + 1
d = local_size(query, 2) - 1
k1 = slice(key, 2, 0, h)
v1 = slice(value, 2, 0, h)
k2 = slice(slice(key, 2, h), 2, 0, d)
v2 = slice(slice(value, 2, h), 2, 0, d)
)";

constexpr std::string_view kOverRows = R"(
o1, l1$OTHERS = $KERNEL(query, k1, v1, dropout_p, False$OPTIONS, scale=scale)
o2, l2 = $KERNEL(slice(query, 2, 1), k2, v2, dropout_p, True$OPTIONS, scale=scale)
a = slice(l1, 2, 1)
b = logaddexp(a, l2)
t = slice(o1, 2, 1) * unsqueeze(exp(a - b), -1) + o2 * unsqueeze(exp(l2 - b), -1)
r = slice_scatter(o1, cast(t, dtype(out)), 2, 1)
n = slice_scatter(l1, b, 2, 1)
)";

// Both calls know the log-sum-exp of whole rows: their gradients add up. Those
// of keys and values lie one behind another, and nothing behind them.
constexpr std::string_view kGradientsOverRows = R"(
dq1, dk1, dv1 = $KERNEL(grad_out, query, k1, v1, out, logsumexp$FIRST)
dq2, dk2, dv2 = $KERNEL(slice(grad_out, 2, 1), slice(query, 2, 1), k2, v2, slice(self=out, dim=2, start=1), slice(logsumexp, 2, 1)$SECOND)
dq = slice_scatter(dq1, slice(dq1, 2, 1) + dq2, 2, 1)
ek = slice_scatter(zeros_like(key), dk1, 2, 0, h)
ev = slice_scatter(zeros_like(value), dv1, 2, 0, h)
dk = slice_scatter(ek, slice_scatter(slice(ek, 2, h), dk2, 2, 0, d), 2, h)
dv = slice_scatter(ev, slice_scatter(slice(ev, 2, h), dv2, 2, 0, d), 2, h)
)";

}  // namespace

std::string forward_program(const ForwardKernel& kernel) {
  std::string text = where("not is_causal", kOverBlocks) +
                     where("is_causal", kKeysOfRows) +
                     where("is_causal", kOverRows) + "return r, n$OTHERS";
  text = with(std::move(text), "$KERNEL", kernel.name);
  text = with(std::move(text), "$OPTIONS", kernel.options);
  return with(std::move(text), "$OTHERS", kernel.others);
}

std::string backward_program(const BackwardKernel& kernel) {
  std::string text = std::string(kKeysOfRows) +
                     std::string(kGradientsOverRows) + "return dq, dk, dv";
  const std::string_view first =
      kernel.takes_lengths
          ? ", cum_seq_q, cum_seq_k, local_size(query, 2), h, dropout_p, "
            "False, philox_seed, philox_offset, scale=scale"
          : ", dropout_p, False, scale=scale";
  const std::string_view second =
      kernel.takes_lengths
          ? ", cum_seq_q, cum_seq_k, d, d, dropout_p, True, philox_seed, "
            "philox_offset, scale=scale"
          : ", dropout_p, True, scale=scale";
  text = with(std::move(text), "$KERNEL", kernel.name);
  text = with(std::move(text), "$FIRST", first);
  return with(std::move(text), "$SECOND", second);
}

}  // namespace shardprop::attention
