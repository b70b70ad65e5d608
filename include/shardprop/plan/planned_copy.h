// `PlannedCopy` is a redistribution of a plan (plan.h):
//
//   copy 0: w  S(0),S(1) -> R,S(1)   all_gather over dp, made before node 17
#pragma once

#include <shardprop/placement/layout.h>
#include <shardprop/plan/copy_reason.h>
#include <shardprop/redistribute/redistribute_plan.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardprop {

// `PlannedFlight` is the time of a transfer that overlaps with nodes. It starts
// before node `issued_at`, and the program waits for it before node `waited_at`,
// which comes later:
//
//   layer 4     issued_at: its first node      gather of a weight of layer 5
//   layer 5     waited_at: its first node
struct PlannedFlight {
  std::int64_t issued_at = 0;
  std::int64_t waited_at = 0;
  friend bool operator==(const PlannedFlight&, const PlannedFlight&) = default;
};

// `PlannedCopy` is a redistributed copy: a value in a second layout, shared by
// all consumers that need that layout. Its source is the value as produced, or
// another copy. Views may lead from the source to the value:
//
//   of mm_1 R -> [view_2 [permute_3]] -> permute_3  R -> S(1)   by a slice
//
// Without steps the copy is its source, viewed as another value.
struct PlannedCopy {
  std::string from;  // the value that is copied
  Layout src;        // layout of `from` at the start of the steps
  Layout dst;
  // The copy that is the source; empty if the source is `of` as produced.
  std::optional<std::size_t> source;
  std::string of;  // the source, or the value of which `source` is a copy
  // Nodes of views that lead from `of` to `from`. The views of `undone` are
  // inverted first (from their result to their operand), then those of `views`
  // are applied.
  std::vector<std::string> undone;
  std::vector<std::string> views;
  // The copy is produced before the node of index `produced_at` and freed after
  // that of `freed_at`. The number of nodes and updates means the end of the
  // program.
  std::int64_t produced_at = 0;
  std::int64_t freed_at = 0;
  // Empty if the program waits for the steps before it goes on. A gather after
  // an update is listed without it: its price overlaps with the next step, and
  // the program of one step waits for it.
  std::optional<PlannedFlight> in_flight;
  // The index of the first copy of its bucket, which may be this copy. The steps
  // of all copies of a bucket run as one over a flat buffer, so that they start
  // together. Empty if the steps of this copy run alone.
  std::optional<std::size_t> bucket;
  CopyReason reason;
  std::int64_t overlapped_nanoseconds = 0;  // overlapped with compute
  // If the copy splits a kernel: the added launch, write and read. They are
  // part of the compute.
  std::int64_t cut_nanoseconds = 0;
  // Made once per step of several micro-batches; its times are one
  // micro-batch's share.
  bool once_a_step = false;
  std::vector<RedistributeStep> steps;

  std::int64_t nanoseconds() const;
  friend bool operator==(const PlannedCopy&, const PlannedCopy&) = default;
};

}  // namespace shardprop
