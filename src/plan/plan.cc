#include <shardprop/plan/plan.h>

#include "base/saturating.h"

#include <array>

#include "base/index.h"

namespace shardprop {

std::optional<PlanStatus> parse_plan_status(std::string_view text) {
  for (const PlanStatus s : {PlanStatus::kOptimal, PlanStatus::kFeasible,
                             PlanStatus::kInfeasible, PlanStatus::kUnknown}) {
    if (to_string(s) == text) return s;
  }
  return std::nullopt;
}

double full_bytes(const PlannedTensor& tensor) {
  auto bytes = static_cast<double>(item_size(tensor.dtype));
  for (const std::int64_t size : tensor.shape) {
    bytes *= static_cast<double>(size);
  }
  return bytes;
}

std::string_view to_string(OpKind kind) {
  switch (kind) {
    case OpKind::kMatmul:
      return "matmul";
    case OpKind::kAttention:
      return "attention";
    case OpKind::kConvolution:
      return "convolution";
    case OpKind::kPointwise:
      return "pointwise";
    case OpKind::kReduction:
      return "reduction";
    case OpKind::kOther:
      return "other";
  }
  return "other";
}

std::optional<OpKind> parse_op_kind(std::string_view text) {
  for (const OpKind kind : kAllOpKinds) {
    if (to_string(kind) == text) return kind;
  }
  return std::nullopt;
}

std::string_view to_string(MicroBatches set) {
  switch (set) {
    case MicroBatches::kAll:
      return "all";
    case MicroBatches::kFirst:
      return "first";
    case MicroBatches::kBetween:
      return "between";
    case MicroBatches::kLast:
      return "last";
  }
  return "all";
}

std::optional<MicroBatches> parse_micro_batches(std::string_view text) {
  for (const MicroBatches set :
       {MicroBatches::kFirst, MicroBatches::kBetween, MicroBatches::kLast}) {
    if (to_string(set) == text) return set;
  }
  return std::nullopt;
}

std::string_view to_string(RanOut what) {
  switch (what) {
    case RanOut::kNothing:
      break;
    case RanOut::kTime:
      return "time";
    case RanOut::kWork:
      return "work";
    case RanOut::kInterrupted:
      return "interrupted";
    case RanOut::kMemory:
      return "memory";
    case RanOut::kSize:
      return "size";
    case RanOut::kAttempts:
      return "attempts";
    case RanOut::kGap:
      return "gap";
  }
  return "nothing";
}

std::optional<RanOut> parse_ran_out(std::string_view text) {
  for (const RanOut what :
       {RanOut::kNothing, RanOut::kTime, RanOut::kWork, RanOut::kInterrupted,
        RanOut::kMemory, RanOut::kSize, RanOut::kAttempts, RanOut::kGap}) {
    if (to_string(what) == text) return what;
  }
  return std::nullopt;
}

std::int64_t PlannedCopy::nanoseconds() const {
  std::int64_t sum = 0;
  for (const CollectiveStep& step : steps) sum = sat_add(sum, step.nanoseconds);
  return sum;
}

std::optional<double> Plan::gap() const {
  if (!objective_nanoseconds) return std::nullopt;
  if (*objective_nanoseconds == 0) return 0.0;
  return static_cast<double>(*objective_nanoseconds - lower_bound_nanoseconds) /
         static_cast<double>(*objective_nanoseconds);
}

PlanSummary summarize(const Plan& plan) {
  PlanSummary sum;
  sum.compute_nanoseconds = plan.optimizer_nanoseconds;
  const auto add = [&](const CollectiveStep& step, bool is_shared = false) {
    sum.communication_nanoseconds =
        sat_add(sum.communication_nanoseconds, step.nanoseconds);
    sum.bytes_per_rank = sat_add(sum.bytes_per_rank, step.bytes_per_rank);
    if (!is_shared) ++sum.collectives[index(step.kind)];
  };
  for (std::size_t c = 0; c < plan.copies.size(); ++c) {
    const PlannedCopy& copy = plan.copies[c];
    const bool is_shared = copy.bucket && *copy.bucket != c;
    for (const CollectiveStep& step : copy.steps) add(step, is_shared);
    sum.compute_nanoseconds =
        sat_add(sum.compute_nanoseconds, copy.cut_nanoseconds);
    sum.overlapped_nanoseconds =
        sat_add(sum.overlapped_nanoseconds, copy.overlapped_nanoseconds);
  }
  for (const PlannedNode& node : plan.nodes) {
    sum.compute_nanoseconds =
        sat_add(sum.compute_nanoseconds, node.compute_nanoseconds);
    for (const CollectiveStep& step : node.inside) add(step);
    if (node.second_run_of.empty()) continue;
    sum.recompute_nanoseconds =
        sat_add(sum.recompute_nanoseconds, node.compute_nanoseconds);
    for (const CollectiveStep& step : node.inside) {
      sum.recompute_nanoseconds =
          sat_add(sum.recompute_nanoseconds, step.nanoseconds);
    }
  }
  // A copy belongs to the node before which it is made.
  for (const PlannedCopy& copy : plan.copies) {
    const auto at = static_cast<std::size_t>(copy.produced_at);
    if (at >= plan.nodes.size() || plan.nodes[at].second_run_of.empty()) {
      continue;
    }
    sum.recompute_nanoseconds =
        sat_add(sum.recompute_nanoseconds,
                sat_add(copy.nanoseconds() - copy.overlapped_nanoseconds,
                        copy.cut_nanoseconds));
  }
  return sum;
}

std::string hash_text(std::uint64_t hash) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text(16, '0');
  for (std::size_t i = text.size(); i-- > 0; hash >>= 4) {
    text[i] = kDigits[hash & 15U];
  }
  return text;
}

}  // namespace shardprop
