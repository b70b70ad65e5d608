// `buckets_of()` groups the transfers that the program runs as one collective over
// a flat buffer.
//
//   layer 5     norm.weight, wq, wk, wv, wo   all_gather over dp, bf16   1 bucket
//               norm.weight, wq, ...          reduce_scatter over dp     1 bucket
//
// The members of a bucket are small transfers of parameters or of gradients that
// 1. start in one slot, and are waited for in one slot;
// 2. have equal collectives: kind, mesh dims, reduction and dtype;
// 3. are flat moves (redistribute/flat_move.h) of no other copy, from which no
//    other copy is made;
// 4. run both once a step, or both in every micro-batch;
// 5. send at most bucket_bytes() together (problem/transfer_costs.h).
//
// Because of the last rule, no bucket takes less time than its members are
// charged, apart from 1 ns of rounding per member.
//
// Reductions whose producers are in the last window overlap nothing. They wait
// for each other until the end of the program.
#pragma once

#include "plan/evaluate/copy_times.h"
#include "plan/evaluate/plan_assignment.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardprop {

// LateSource is the source of a member that waits for others: it is kept from the
// slot after its producer until the bucket is filled.
struct LateSource {
  std::int64_t from = 0;
  std::int64_t bytes = 0;
};

struct Bucket {
  std::vector<std::size_t> copies;  // at least 2, ascending
  // The slot before which the buffer is filled, and that before which the
  // results leave it. They differ if the bucket is in flight.
  std::int64_t filled_at = 0;
  std::int64_t emptied_at = 0;
  // The buffers before and after the collective, of one rank. Results that are
  // views of the buffer are not counted here.
  std::int64_t source_bytes = 0;
  std::int64_t result_bytes = 0;
  std::vector<LateSource> late_sources;

  // Returns the first slot in which the bucket takes memory.
  std::int64_t begins_at() const;
};

// Returns the buckets by their first copy. A bucket whose buffers exceed the
// memory limit is left out, so that a plan that fits without buckets fits with
// them.
std::vector<Bucket> buckets_of(const PlanProblem& problem,
                               const PlanAssignment& assignment);
// Does the same. `held` is bytes_without_buckets() of the assignment, with fused
// kernels.
std::vector<Bucket> buckets_of(const PlanProblem& problem,
                               const PlanAssignment& assignment,
                               const std::vector<std::int64_t>& held);

// Returns the bytes of the buffers and late sources of a bucket in a slot.
std::int64_t buffer_bytes(const Bucket& bucket, std::int64_t slot);

}  // namespace shardprop
