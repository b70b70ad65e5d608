// Solves a plan problem: a feasible assignment early, a better one later, a
// lower bound at any moment, and a status that does not lie.
//
//   SolveOptions options;
//   options.time_limit_seconds = 10;
//   options.threads = 2;
//   Solution solution = solve(problem, options);
//   // solution.status == Status::kOptimal: cost == lower_bound, proven
//
// Reproducible: with the same problem, seed, passes and work limit, and no time
// limit that strikes first, assignment, bound and status are the same to the
// bit on any number of threads. The search is then divided among a fixed number
// of workers, which meet after counted work, never after elapsed time. Without
// a work limit there are as many workers as threads.
#pragma once

#include <shardprop/base/option.h>
#include <shardprop/base/result.h>
#include <shardprop/solver/checker.h>
#include <shardprop/solver/cost.h>
#include <shardprop/solver/pass.h>
#include <shardprop/solver/problem.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <stop_token>
#include <string_view>
#include <utility>
#include <vector>

namespace shardprop::solver {

enum class Status : std::uint8_t {
  kOptimal,     // proven over all assignments
  kFeasible,    // within `gap` of the best there is
  kInfeasible,  // proven; `clash` says why
  kUnknown,     // nothing found, nothing proven
};

// "optimal", "feasible", "infeasible", "unknown".
std::string_view to_string(Status status);

// What cannot hold together. Dropping any one part of it (a pin, the costs of
// a variable, an edge, the limit at a time) leaves parts that do not clash,
// provided `irreducible`.
struct Clash {
  std::vector<Pin> pins;
  std::vector<VariableId> variables;  // whose forbidden choices matter
  std::vector<EdgeId> edges;          // whose forbidden entries matter
  struct MemoryStep {
    std::int64_t time = 0;
    // What the parts of the clash make necessary beyond the limit at this
    // time; 0 when time ran out before it was counted.
    Int128 bytes_short = 0;
  };
  std::vector<MemoryStep> memory;
  // False when time ran out before every part was tried.
  bool irreducible = false;
};

// The limit that ended a search before its proof.
enum class StoppedBy : std::uint8_t { kTime, kWork, kRequest };

struct Solution {
  Status status = Status::kUnknown;
  // Null if no limit ended the search: there is a proof, the caller has enough, or
  // no pass has anything left to do.
  std::optional<StoppedBy> stopped_by;
  // By the independent checker; absent without an assignment.
  std::optional<Int128> cost;
  // No assignment costs less; absent when infeasible or nothing is known.
  std::optional<Int128> lower_bound;
  Assignment assignment;
  std::optional<Clash> clash;  // unless SolveOptions::explains is off
  std::vector<PassStats> passes;
  double seconds = 0;
  std::uint64_t work = 0;  // table entries touched
  // Why the search ended before its limits: there was no memory left, or the
  // options are not valid. What was known by then stands in the other fields.
  std::optional<Error> failure;

  // (cost - lower_bound) / |cost|; absent unless both are known.
  std::optional<double> gap() const;
};

// What the dual bound of one solve leaves to that of another with the same
// variables and edges at other costs, which then begins nearly where it would
// end: by two variables, what the first tells the second, by choices of the
// second. Any messages give a bound.
struct Messages {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<double>> told;
};

struct Progress {
  double seconds = 0;
  std::optional<Int128> cost;
  std::optional<Int128> lower_bound;
};

struct SolveOptions {
  // Counted from `start`, so that reading a file can be made part of it.
  double time_limit_seconds = 60;
  std::chrono::steady_clock::time_point start =
      std::chrono::steady_clock::now();
  // Table entries to touch at most, all workers together; no such limit when
  // empty. It is looked at when workers meet, so a run may exceed it by one
  // round; with 0 there is no search behind the passes that come before it.
  std::optional<std::uint64_t> work_limit;
  // Ends once the best known cost is within this share of the bound.
  double enough_gap = 0;
  // Ends once some assignment costs no more than this.
  std::optional<Int128> enough_cost;
  // Threads to search with. A thread that cannot be started is done without:
  // the answer is the same, later.
  int threads = 1;
  std::uint64_t seed = 0;
  PassSet passes;
  // Whether `clash` is looked for where nothing holds.
  bool explains = true;
  // To begin with, where they hold; they outlive the call.
  std::span<const Assignment> known;
  // Begins with these, and leaves its own.
  Messages* messages = nullptr;
  // Called by the thread that called solve(), when workers meet.
  std::function<void(const Progress&)> progress;
  // Whether to go on: asked between rounds about the best assignment, with the
  // share of the limits that is spent: of work where that is limited, or else
  // of time.
  std::function<bool(const Assignment&, double spent)> go_on;
  // Once a stop is requested, by any thread, the best so far is returned.
  std::stop_token stop;
};

// The options that have a text form: limits, threads and seed.
std::span<const OptionInfo> solve_option_table();
// Error: kInvalidArgument (an unknown name, a value out of bounds).
Result<void> set_option(SolveOptions& options, std::string_view name,
                        std::string_view text);
// Whether every option is within its bounds. Error: kInvalidArgument.
Result<void> validate(const SolveOptions& options);

// Never throws for lack of memory or threads: see Solution::failure.
Solution solve(const Problem& problem, const SolveOptions& options);

}  // namespace shardprop::solver
