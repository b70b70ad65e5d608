#include "ops/definitions/nn/attention_programs.h"

#include <utility>

namespace shardprop::attention {
namespace {

// Appends ` if CONDITION` to each line of the text.
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

// Replaces each occurrence of `word`.
std::string with(std::string text, std::string_view word,
                 std::string_view replacement) {
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos;
       at += replacement.size()) {
    text.replace(at, word.size(), replacement);
  }
  return text;
}

// A rank with a part of all query heads has the `count` key heads from `first`.
// If the parts are not aligned with the groups, it has a key head for each of
// its query heads.
constexpr std::string_view kHeads = R"(
heads = by_program(query, 1)
rows = by_program(query, 2)
blocks = by_program(key, 2)
keys = key
values = value
group = quotient(size(query, 1), size(key, 1)) if heads
first = quotient(offset(query, 1), group) if heads
count = quotient_up(local_size(query, 1), group) if heads
head = floor_divide(places(query, 1), group) - offset(key, 1) if heads
sk = slice(slice(key, 1, first), 1, 0, count) if heads
sv = slice(slice(value, 1, first), 1, 0, count) if heads
key = if_joined(query, 1, if_unaligned(query, 1, index_select(keys, 1, head), sk), keys) if heads
value = if_joined(query, 1, if_unaligned(query, 1, index_select(values, 1, head), sv), values) if heads
)";

constexpr std::string_view kItself = R"(
o, l$OTHERS = itself()
r = o
n = l
)";

// Without `compute_log_sumexp`, the kernel does not produce the second result.
constexpr std::string_view kItselfOrNoSums = R"(
o, l$OTHERS = itself() if compute_log_sumexp
o$OTHERS = itself() if not compute_log_sumexp
r = o
n = l if compute_log_sumexp
)";

constexpr std::string_view kOverBlocks = R"(
m = all_reduce_max(l)
w = exp(l - m)
s = all_reduce_sum(w)
r = if_cut(keys, 2, cast(all_reduce_sum(o * $WEIGHT), dtype(out)), o)
n = m + log(s)
n = if_cut(keys, 2, $OF_BLOCKS, l)
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
o1, l1$FIRSTS = $KERNEL(query, k1, v1, $BIASdropout_p, False$OPTIONS, scale=scale)
o2, l2 = $KERNEL(slice(query, 2, 1), k2, v2, $BIASdropout_p, True$OPTIONS, scale=scale)
a = $BEHIND_FIRST
e = $OF_SECOND
b = logaddexp(a, e)
t = slice(o1, 2, 1) * unsqueeze(exp(a - b), -1) + o2 * unsqueeze(exp(e - b), -1)
r = if_cut(query, 2, slice_scatter(o1, cast(t, dtype(out)), 2, 1), r)
n = if_cut(query, 2, $OF_ROWS, n)
)";

// Both calls get the log-sum-exp of full rows, so their gradients add up. The
// keys and values of the second call follow those of the first; the keys after
// them get no gradient.
constexpr std::string_view kGradientsOverRows = R"(
dq1, dk1, dv1 = $KERNEL($GRADIENT, query, k1, v1, $BEFORE_OUTout, logsumexp, $FIRST, scale=scale)
dq2, dk2, dv2 = $KERNEL(slice($GRADIENT, 2, 1), slice(query, 2, 1), k2, v2, $BEFORE_OUTslice(self=out, dim=2, start=1), $BEHIND_FIRST, $SECOND, scale=scale)
ek = slice_scatter(zeros_like(key), dk1, 2, 0, h)
ev = slice_scatter(zeros_like(value), dv1, 2, 0, h)
dq = if_cut(query, 2, slice_scatter(dq1, slice(dq1, 2, 1) + dq2, 2, 1), dq)
dk = if_cut(query, 2, slice_scatter(ek, slice_scatter(slice(ek, 2, h), dk2, 2, 0, d), 2, h), dk)
dv = if_cut(query, 2, slice_scatter(ev, slice_scatter(slice(ev, 2, h), dv2, 2, 0, d), 2, h), dv)
)";

// The gradients of selected key heads add up, and other heads get none.
constexpr std::string_view kGradientsOfHeads = R"(
zk = zeros_like(keys)
zv = zeros_like(values)
pk = slice_scatter(slice(zk, 1, first), slice(dk, 1, 0, count), 1, 0, count)
pv = slice_scatter(slice(zv, 1, first), slice(dv, 1, 0, count), 1, 0, count)
ak = slice_scatter(zk, pk, 1, first)
av = slice_scatter(zv, pv, 1, first)
dk = if_joined(query, 1, if_unaligned(query, 1, index_add(zk, 1, head, dk), ak), dk)
dv = if_joined(query, 1, if_unaligned(query, 1, index_add(zv, 1, head, dv), av), dv)
)";

constexpr std::string_view kOverMaskedRows = R"(
h = offset(query, 2)
d = local_size(query, 2)
places = arange(size(key, 2))
up = cat([slice(places, 0, 0, h), slice(slice(places, 0, h), 0, 0, d)])
k1 = cat([slice(key, 2, 0, h), slice(slice(key, 2, h), 2, 0, d)], 2)
v1 = cat([slice(value, 2, 0, h), slice(slice(value, 2, h), 2, 0, d)], 2)
seen = unsqueeze(arange(d) + h, -1) >= up
r = if_cut(query, 2, scaled_dot_product_attention(query, k1, v1, seen, dropout_p, False, scale=scale, enable_gqa=enable_gqa), r)
)";

// A row whose mask excludes every key gets zeros. The key of a query head is
// that of its group, and a rank may have a part of the group's heads.
constexpr std::string_view kOverScores = R"(
grouped = enable_gqa if blocks
parts = heads if blocks
mask = attn_mask if blocks
k = key if blocks
v = value if blocks
own = floor_divide(arange(local_size(query, 1)) * local_size(keys, 1), local_size(query, 1)) if grouped
k = index_select(keys, 1, own) if grouped
v = index_select(values, 1, own) if grouped
k = if_joined(query, 1, index_select(keys, 1, head), k) if parts
v = if_joined(query, 1, index_select(values, 1, head), v) if parts
s = matmul(upcast(query), transpose(upcast(k), 2, 3)) if blocks
s = s * default(scale, rsqrt(full([1], size(query, 3), dtype=dtype(s)))) if blocks
s = s + additive(attn_mask) if mask
m = nan_to_num(all_reduce_max(amax(s, [-1], True))) if blocks
e = exp(s - m) if blocks
z = all_reduce_sum(sum(e, [-1], True)) if blocks
o = all_reduce_sum(matmul(e, upcast(v))) if blocks
r = if_cut(keys, 2, cast(o / masked_fill(z, (z == 0), 1), dtype(out)), r) if blocks
)";

// Returns `X = if_cut(query, 2, first_X, X)` for each name of ", X, Y".
std::string choices_of(std::string_view names) {
  std::string out;
  while (!names.empty()) {
    names.remove_prefix(2);
    const std::string name(names.substr(0, names.find(',')));
    out += name + " = if_cut(query, 2, first_" + name + ", " + name + ")\n";
    names.remove_prefix(name.size());
  }
  return out;
}

}  // namespace

std::string forward_program(const ForwardKernel& kernel) {
  std::string text =
      std::string(kHeads) +
      std::string(kernel.may_omit_sums ? kItselfOrNoSums : kItself) +
      where("blocks", kOverBlocks) + where("rows", kKeysOfRows) +
      where("rows", kOverRows) + where("rows", choices_of(kernel.others)) +
      "return r, n$OTHERS";
  const std::string firsts = with(std::string(kernel.others), ", ", ", first_");
  const std::pair<std::string_view, std::string_view> words[] = {
      {"$KERNEL", kernel.name},
      {"$BIAS", kernel.bias},
      {"$OPTIONS", kernel.options},
      {"$FIRSTS", firsts},
      {"$OTHERS", kernel.others},
      {"$WEIGHT", kernel.weight},
      {"$BEHIND_FIRST", kernel.behind_first},
      {"$OF_SECOND", kernel.of_second},
      {"$OF_ROWS", kernel.of_rows},
      {"$OF_BLOCKS", kernel.of_blocks}};
  for (const auto& [word, replacement] : words) {
    text = with(std::move(text), word, replacement);
  }
  return text;
}

std::string backward_program(const BackwardKernel& kernel) {
  const auto told = [&](std::string_view queries, std::string_view keys,
                        std::string_view causal) {
    std::string text(kernel.after_sums);
    text = with(std::move(text), "$Q", queries);
    text = with(std::move(text), "$K", keys);
    return with(std::move(text), "$CAUSAL", causal);
  };
  std::string text = std::string(kHeads) + "dq, dk, dv = itself()\n" +
                     where("rows", kKeysOfRows) +
                     where("rows", kGradientsOverRows) +
                     where("heads", kGradientsOfHeads) + "return dq, dk, dv";
  text = with(std::move(text), "$KERNEL", kernel.name);
  text = with(std::move(text), "$GRADIENT", kernel.gradient);
  text = with(std::move(text), "$BEFORE_OUT", kernel.before_out);
  text = with(std::move(text), "$BEHIND_FIRST", kernel.behind_first);
  text = with(std::move(text), "$FIRST",
              told("local_size(query, 2)", "h", "False"));
  return with(std::move(text), "$SECOND", told("d", "d", "True"));
}

std::string composite_program() {
  return std::string(kHeads) + "r = itself()\n" +
         where("rows", kOverMaskedRows) + std::string(kOverScores) + "return r";
}

}  // namespace shardprop::attention
