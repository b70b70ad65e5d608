#include "ops/definitions/nn/attention_results.h"

#include "base/quantities.h"

namespace shardprop::attention {
namespace {

DType log_sum_dtype(DType dtype) {
  return dtype == DType::kF64 ? DType::kF64 : DType::kF32;
}

// Number of queries to which kernels pad the length of a log-sum-exp.
constexpr std::int64_t kLogSumAlignment = 32;

}  // namespace

// The results are output, logsumexp, cum_seq_q, cum_seq_k, rng_state, unused,
// debug_attn_mask.
Results flash(const OpCall&, const Attention& a) {
  const Dims heads{size_of(a.query, 0), size_of(a.query, 1),
                   size_of(a.query, 2)};
  return {
      AttentionResult{heads, &kLogSumDims, {}, log_sum_dtype(a.query.dtype())},
      std::nullopt,
      std::nullopt,
      AttentionResult{Dims{2}, nullptr, {}, DType::kU64},
      AttentionResult{Dims{}, nullptr, {}, DType::kU64},
      AttentionResult{Dims{0}, nullptr, {}, a.query.dtype()}};
}

Results flash_for_cpu(const OpCall&, const Attention& a) {
  // The kernel writes it as [batch, length, heads].
  const Dims shape{size_of(a.query, 0), size_of(a.query, 1),
                   size_of(a.query, 2)};
  const DType dtype = log_sum_dtype(a.query.dtype());
  const Dims rows =
      make_meta(Dims{shape[0], shape[2], shape[1]}, dtype).strides();
  return {AttentionResult{shape, &kLogSumDims, Dims{rows[0], rows[2], rows[1]},
                          dtype}};
}

// A rank's part is a multiple of the padding, so that the rank pads nothing.
std::int64_t tile_of(const Attention& a) {
  const std::int64_t length = size_of(a.query, 2);
  return length > 0 && length % kLogSumAlignment == 0 ? kLogSumAlignment : 1;
}

// The results are logsumexp (its length padded to 32, or 0 if it is not
// requested), philox seed and offset.
Results efficient(const OpCall& call, const Attention& a) {
  const std::int64_t padded =
      add_sizes(size_of(a.query, 2), kLogSumAlignment - 1) / kLogSumAlignment *
      kLogSumAlignment;
  const std::int64_t length = call.boolean("compute_log_sumexp") ? padded : 0;
  return {
      AttentionResult{Dims{size_of(a.query, 0), size_of(a.query, 1), length},
                      &kLogSumDims,
                      {},
                      DType::kF32},
      AttentionResult{Dims{}, nullptr, {}, DType::kI64},
      AttentionResult{Dims{}, nullptr, {}, DType::kI64}};
}

// The results are logsumexp, cum_seq_q, cum_seq_k, philox seed and offset,
// debug_attn_mask.
Results cudnn(const OpCall& call, const Attention& a) {
  Results results(6);
  if (call.boolean("compute_log_sumexp")) {
    results[0] = AttentionResult{
        Dims{size_of(a.query, 0), size_of(a.query, 1), size_of(a.query, 2), 1},
        &kLogSumColumn,
        {},
        DType::kF32};
  }
  for (const std::size_t seed : {std::size_t{3}, std::size_t{4}}) {
    results[seed] = AttentionResult{Dims{}, nullptr, {}, DType::kI64};
  }
  return results;
}

// The results are those of cuDNN, except that the log-sum-exp has no last dim
// of size 1.
Results overrideable(const OpCall&, const Attention& a) {
  Results results(6);
  results[0] = AttentionResult{
      Dims{size_of(a.query, 0), size_of(a.query, 1), size_of(a.query, 2)},
      &kLogSumDims,
      {},
      DType::kF32};
  for (const std::size_t seed : {std::size_t{3}, std::size_t{4}}) {
    results[seed] = AttentionResult{Dims{}, nullptr, {}, DType::kI64};
  }
  return results;
}

}  // namespace shardprop::attention
