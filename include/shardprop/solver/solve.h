// `solve` solves a plan problem. It finds a feasible assignment early and
// improves it, has a lower bound at any time, and returns a status that is
// proven.
//
//   SolveOptions options;
//   options.time_limit_seconds = 10;
//   options.threads = 2;
//   Solution solution = solve(problem, options);
//   // solution.status == Status::kOptimal: cost == lower_bound, proven
//
// The result is reproducible: with the same problem, seed, passes and work
// limit, assignment, bound and status are bit-identical on any number of
// threads. This holds if no time limit ends the search first. With a work limit
// the search has a fixed number of workers, which synchronise after counted
// work and not after elapsed time. Without a work limit there are as many
// workers as threads.
#pragma once

#include <shardprop/base/option.h>
#include <shardprop/base/procedure.h>
#include <shardprop/base/result.h>
#include <shardprop/base/stopped_by.h>
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

// `Status` is the state of the problem when the search ends.
enum class Status : std::uint8_t {
  kOptimal,     // proven: no assignment costs less
  kFeasible,    // within `gap` of the optimum
  kInfeasible,  // proven; `conflict` is the conflict
  kUnknown,     // neither an assignment nor a proof was found
};

// Returns "optimal", "feasible", "infeasible" or "unknown".
std::string_view to_string(Status status);

// `Conflict` is a conflict: parts of the problem that cannot hold together. If
// `irreducible`, the conflict is minimal: without any one part (a pin, the
// costs of a variable, an edge, the limit at a time) the other parts can hold.
struct Conflict {
  std::vector<Pin> pins;
  std::vector<VariableId> variables;  // whose forbidden choices matter
  std::vector<EdgeId> edges;          // whose forbidden entries matter
  struct MemoryStep {
    std::int64_t time = 0;
    // Bytes over the limit at this time that the parts of the conflict force; 0
    // if time ran out before it was computed.
    Int128 bytes_short = 0;
  };
  std::vector<MemoryStep> memory;
  // False if time ran out before every part was tried.
  bool irreducible = false;
};

using shardprop::StoppedBy;

// `Solution` is the best assignment found, its bound and its proof.
struct Solution {
  Status status = Status::kUnknown;
  // Null if no limit ended the search: there is a proof, the caller's goal is
  // reached, or no pass can make progress.
  std::optional<StoppedBy> stopped_by;
  // Computed by the independent checker; absent without an assignment.
  std::optional<Int128> cost;
  // No assignment costs less; absent if infeasible or if no bound is known.
  std::optional<Int128> lower_bound;
  Assignment assignment;
  std::optional<Conflict> conflict;  // unless SolveOptions::explains is off
  // The records of all passes, in the order of Pass.
  std::vector<Procedure> procedures;
  double seconds = 0;
  std::uint64_t work = 0;  // table entries touched
  // Reason why the search ended before its limits: memory ran out, or the
  // options are invalid. The other fields have the results until then.
  std::optional<Error> failure;

  // Returns (cost - lower_bound) / |cost|; absent unless both are known.
  std::optional<double> gap() const;
};

// `Messages` are the messages of the dual bound of one solve. Another solve
// with the same variables and edges but other costs can start from them and
// then converges sooner. A key is a sender and a receiver; the values are
// indexed by the receiver's choices. Any messages give a valid bound.
struct Messages {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<double>> told;
};

// `Progress` is the state of a running search.
struct Progress {
  double seconds = 0;
  std::optional<Int128> cost;
  std::optional<Int128> lower_bound;
};

// `SolveOptions` are the limits, goals and starting points of a search.
struct SolveOptions {
  // Seconds from `start`, which may be before a file is read.
  double time_limit_seconds = 60;
  std::chrono::steady_clock::time_point start =
      std::chrono::steady_clock::now();
  // Maximum number of table entries that all workers together touch; unlimited
  // if empty. Workers check it when they synchronise, so a run may exceed it by
  // one round. With 0 only the passes before the search run.
  std::optional<std::uint64_t> work_limit;
  // The search ends once the best cost is within this fraction of the bound.
  double enough_gap = 0;
  // The search ends once an assignment costs at most this much.
  std::optional<Int128> enough_cost;
  // The search ends once the bound is at least this much. The solution then may
  // have no assignment.
  std::optional<Int128> enough_bound;
  // Number of search threads. If a thread cannot be started, the others
  // continue: the answer is the same but takes longer.
  int threads = 1;
  std::uint64_t seed = 0;
  PassSet passes;
  // If true, an infeasible problem is explained by `conflict`.
  bool explains = true;
  // Initial assignments, used if they are feasible; they must outlive the call.
  std::span<const Assignment> known;
  // The search starts from these messages and stores its own in them.
  Messages* messages = nullptr;
  // Called by the thread that called solve(), when workers synchronise.
  std::function<void(const Progress&)> progress;
  // Returns whether to continue. It is called between rounds with the best
  // assignment and the spent fraction of the limits. The fraction is of the
  // work limit if there is one, and otherwise of the time limit.
  std::function<bool(const Assignment&, double spent)> go_on;
  // Once any thread requests a stop, the best assignment so far is returned.
  std::stop_token stop;
};

// Returns the options with a text form: limits, threads and seed.
std::span<const OptionInfo> solve_option_table();
// Error: kInvalidArgument (an unknown name, a value out of bounds).
Result<void> set_option(SolveOptions& options, std::string_view name,
                        std::string_view text);
// Checks that every option is within its bounds. Error: kInvalidArgument.
Result<void> validate(const SolveOptions& options);

// Solves the problem. A lack of memory or threads does not throw: see
// Solution::failure.
Solution solve(const Problem& problem, const SolveOptions& options);

}  // namespace shardprop::solver
