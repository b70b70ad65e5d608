#include "plan/evaluate/buckets.h"

#include "base/index.h"
#include "base/saturating.h"
#include "plan/evaluate/live_memory.h"
#include "plan/problem/transfer_costs.h"
#include "plan/tuning.h"
#include "redistribute/flat_move.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace shardprop {
namespace {

// The first three members are equal for the copies of a bucket.
struct Member {
  std::int64_t filled_at = 0;
  std::int64_t emptied_at = 0;
  bool once_a_step = false;
  std::vector<CollectiveStep> steps;  // as sent
  FlatMove move;
  std::optional<LateSource> late_source;
};

class BucketFinder {
 public:
  BucketFinder(const PlanProblem& problem, const PlanAssignment& plan)
      : problem_(problem),
        plan_(plan),
        nodes_(static_cast<std::int64_t>(problem.graph().nodes().size())),
        bucket_bytes_(bucket_bytes(problem.graph())),
        times_(copy_times(problem, plan)),
        once_a_step_(copies_once_a_step(problem, plan)),
        is_source_(plan.copies.size(), false) {
    for (const AssignedCopy& copy : plan.copies) {
      if (copy.source) is_source_[*copy.source] = true;
    }
    for (std::size_t c = 0; c < plan.copies.size(); ++c) {
      by_buffer_[plan.copies[c].buffer].push_back(c);
    }
  }

  std::vector<Bucket> run() {
    for (std::size_t c = 0; c < plan_.copies.size(); ++c) {
      if (auto member = member_of(c)) add(c, *std::move(member));
    }
    std::vector<Bucket> out;
    for (Open& open : open_) {
      if (open.bucket.copies.size() > 1) out.push_back(std::move(open.bucket));
    }
    return out;
  }

 private:
  struct Open {
    Member first;
    Bucket bucket;
    std::int64_t message_bytes = 0;  // of the members' first steps
  };

  std::optional<Member> member_of(std::size_t c) const {
    const AssignedCopy& copy = plan_.copies[c];
    const PlanBuffer& buffer = problem_.buffer(copy.buffer);
    const ValueId value = buffer.values[copy.value];
    if (copy.source || is_source_[c] || !problem_.value(value).overlappable) {
      return std::nullopt;
    }
    const std::vector<LayoutId>& layouts = buffer.kind->layouts[copy.value];
    const LayoutId src = layouts[problem_.layout_produced(
        buffer, plan_.choices[buffer.producer.index()])];
    const LayoutId dst = layouts[copy.state];
    if (!src.valid() || !dst.valid() || src == dst ||
        problem_.move_nanoseconds(value, src, dst) >= kUnreachable ||
        problem_.cut_nanoseconds(buffer, value, src, dst) > 0) {
      return std::nullopt;
    }
    const std::vector<RedistributeStep>& steps =
        problem_.redistribution_steps(value, src, dst);
    const TensorMeta& meta = problem_.graph().value(value).meta;
    auto move = flat_move(problem_.mesh(), meta, steps);
    if (!move || steps[0].message_bytes >= tuning::kBucketBytes) {
      return std::nullopt;
    }
    Member member;
    set_slots(c, member);
    if (is_beside_another(c, member)) return std::nullopt;
    member.once_a_step = once_a_step_[c];
    for (const RedistributeStep& step : steps) {
      member.steps.push_back(step);
      // Only reductions are sent in another dtype than the value's.
      if (!step.reduce_op) member.steps.back().dtype = meta.dtype();
    }
    member.move = *std::move(move);
    if (member.filled_at > copy.produced_at) {
      member.late_source = {copy.produced_at, problem_.local_bytes(value, src)};
    }
    return member;
  }

  void set_slots(std::size_t c, Member& member) const {
    const AssignedCopy& copy = plan_.copies[c];
    const auto window = times_[c].window;
    const bool is_in_flight =
        window &&
        copy_cost(problem_, plan_, c, once_a_step_[c]).overlappable > 0;
    if (is_in_flight) {
      member.filled_at = problem_.windows().first_slot(*window);
      member.emptied_at = std::min(times_[c].complete_from, nodes_);
      return;
    }
    member.filled_at = waits_for_end(c)
                           ? nodes_
                           : problem_.ready_slot(problem_.buffer(copy.buffer),
                                                 copy.produced_at);
    member.emptied_at = member.filled_at;
  }

  // Returns whether the copy, if it is made when the bucket is filled, exists next
  // to an earlier copy in its layout.
  bool is_beside_another(std::size_t c, const Member& member) const {
    const AssignedCopy& copy = plan_.copies[c];
    if (member.filled_at < member.emptied_at) return false;
    const std::vector<std::size_t>& of_buffer = by_buffer_.at(copy.buffer);
    return std::any_of(of_buffer.begin(), of_buffer.end(),
                       [&](std::size_t other) {
                         const AssignedCopy& before = plan_.copies[other];
                         return other != c && before.state == copy.state &&
                                before.produced_at < copy.produced_at &&
                                before.freed_at >= member.filled_at;
                       });
  }

  bool waits_for_end(std::size_t c) const {
    const PlanBuffer& buffer = problem_.buffer(plan_.copies[c].buffer);
    const std::int64_t slot = buffer.uses.back().slot;
    return buffer.in_flight == InFlight::kLater &&
           plan_.copies[c].produced_at == slot &&
           plan_.copies[c].freed_at == nodes_ &&
           !problem_.windows().of_reduction(slot);
  }

  static bool fit(const Member& a, const Member& b) {
    return a.filled_at == b.filled_at && a.emptied_at == b.emptied_at &&
           a.once_a_step == b.once_a_step &&
           std::equal(a.steps.begin(), a.steps.end(), b.steps.begin(),
                      b.steps.end(), share_buffer);
  }

  void add(std::size_t c, Member member) {
    const std::int64_t item = item_size(member.steps[0].dtype);
    const auto bytes = [&](const Dims& sizes) {
      std::int64_t product = item;
      for (const std::int64_t size : sizes) product = sat_mul(product, size);
      return product;
    };
    const std::int64_t source = bytes(member.move.source);
    // Results of reductions stay in the buffer.
    const bool is_copied = member.steps[0].kind == CollectiveKind::kAllGather;
    const std::int64_t result = is_copied ? bytes(member.move.result) : 0;
    const std::optional<LateSource> late_source = member.late_source;
    const std::int64_t message = member.steps[0].message_bytes;
    auto& open = by_slots_[{member.filled_at, member.emptied_at}];
    auto at = std::find_if(open.begin(), open.end(), [&](std::size_t o) {
      return fit(open_[o].first, member) &&
             sat_add(open_[o].message_bytes, message) <= bucket_bytes_;
    });
    if (at == open.end()) {
      open.push_back(open_.size());
      at = open.end() - 1;
      Bucket bucket;
      bucket.filled_at = member.filled_at;
      bucket.emptied_at = member.emptied_at;
      open_.push_back({std::move(member), std::move(bucket)});
    }
    open_[*at].message_bytes = sat_add(open_[*at].message_bytes, message);
    Bucket& bucket = open_[*at].bucket;
    bucket.copies.push_back(c);
    if (late_source) bucket.late_sources.push_back(*late_source);
    bucket.source_bytes = sat_add(bucket.source_bytes, source);
    bucket.result_bytes = sat_add(bucket.result_bytes, result);
  }

  const PlanProblem& problem_;
  const PlanAssignment& plan_;
  std::int64_t nodes_;
  std::int64_t bucket_bytes_;
  std::vector<CopyTimes> times_;   // by copy
  std::vector<bool> once_a_step_;  // by copy
  std::vector<bool> is_source_;    // by copy
  std::map<PlanBufferId, std::vector<std::size_t>> by_buffer_;
  std::vector<Open> open_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::size_t>>
      by_slots_;  // indices into open_
};

// Leaves out buckets that exceed the limit next to `held` and the buckets before
// them.
void leave_out_too_large(std::int64_t limit, std::vector<std::int64_t> held,
                         std::vector<Bucket>& buckets) {
  std::erase_if(buckets, [&](const Bucket& bucket) {
    for (std::int64_t s = bucket.begins_at(); s <= bucket.emptied_at; ++s) {
      if (sat_add(held[index(s)], buffer_bytes(bucket, s)) > limit) return true;
    }
    for (std::int64_t s = bucket.begins_at(); s <= bucket.emptied_at; ++s) {
      held[index(s)] = sat_add(held[index(s)], buffer_bytes(bucket, s));
    }
    return false;
  });
}

}  // namespace

std::int64_t Bucket::begins_at() const {
  std::int64_t slot = filled_at;
  for (const LateSource& source : late_sources) {
    slot = std::min(slot, source.from);
  }
  return slot;
}

std::int64_t buffer_bytes(const Bucket& bucket, std::int64_t slot) {
  if (slot > bucket.emptied_at) return 0;
  std::int64_t late = 0;
  if (slot <= bucket.filled_at) {
    for (const LateSource& source : bucket.late_sources) {
      if (source.from <= slot) late = sat_add(late, source.bytes);
    }
  }
  if (slot < bucket.filled_at) return late;
  // In flight, the result is counted as the copies. When they leave the buffer,
  // both exist.
  const std::int64_t buffers =
      slot < bucket.emptied_at
          ? bucket.source_bytes
          : sat_add(bucket.source_bytes, bucket.result_bytes);
  return sat_add(late, buffers);
}

std::vector<Bucket> buckets_of(const PlanProblem& problem,
                               const PlanAssignment& assignment) {
  std::vector<Bucket> out = BucketFinder(problem, assignment).run();
  if (problem.options().memory_limit && !out.empty()) {
    leave_out_too_large(*problem.options().memory_limit,
                        bytes_without_buckets(problem, assignment), out);
  }
  return out;
}

std::vector<Bucket> buckets_of(const PlanProblem& problem,
                               const PlanAssignment& assignment,
                               const std::vector<std::int64_t>& held) {
  std::vector<Bucket> out = BucketFinder(problem, assignment).run();
  if (problem.options().memory_limit && !out.empty()) {
    leave_out_too_large(*problem.options().memory_limit, held, out);
  }
  return out;
}

}  // namespace shardprop
