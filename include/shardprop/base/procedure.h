// `Procedure` is the record of one search procedure: how often it ran, how long
// it took, and what it gained.
//
//   {.name = "layer-mix", .runs = 12, .seconds = 0.4, .work = 81'000'000,
//    .improvements = 3, .gap_closed = 1'250'000}
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace shardprop {

struct Procedure {
  std::string name;
  bool enabled = true;  // its switch
  std::uint64_t runs = 0;
  // The clock, summed over threads. Clock, work and gains include those of
  // procedures that this one calls.
  double seconds = 0;
  std::uint64_t work = 0;  // table entries touched
  // Runs that found a cheaper solution or raised the lower bound.
  std::uint64_t improvements = 0;
  // The fall of (best cost - lower bound) in these runs, in units of cost.
  // Before both are known, nothing is counted.
  std::int64_t gap_closed = 0;

  // Compares everything but the clock, which differs from run to run.
  friend bool operator==(const Procedure& a, const Procedure& b) {
    return a.name == b.name && a.enabled == b.enabled && a.runs == b.runs &&
           a.work == b.work && a.improvements == b.improvements &&
           a.gap_closed == b.gap_closed;
  }
};

// Adds the runs of `more` to the procedures of the same names. Other procedures
// are appended.
void add_runs(std::vector<Procedure>& to, std::span<const Procedure> more);

}  // namespace shardprop
