// `RunControl` limits one run of the planner, and states where it starts and
// when a plan is good enough. It does not change which plan is asked for.
//
//   RunControl run;
//   run.work_limit = 1'000'000;          // every machine makes the same plan
//   run.gap = kDefaultGap;               // 1 % above the bound is enough
//   run.start_from = std::make_shared<const Plan>(yesterday);
//   run.stop = source.get_token();       // another thread may end the search
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>

namespace shardprop {

struct Plan;

// `PlanProgress` is the state of a plan while it is made.
struct PlanProgress {
  enum class Phase : std::uint8_t {
    kSetUp,   // strategies, layouts, costs of redistributions
    kSearch,  // the solver
    kReport,  // steps, reasons and alternatives of the plan
  };
  Phase phase = Phase::kSetUp;
  double seconds = 0;  // since make_plan() was called
  // In nanoseconds. The objective is that of the best assignment so far; the
  // memory of running redistributions is not checked yet.
  std::optional<std::int64_t> objective;
  std::optional<std::int64_t> lower_bound;
};

// The gap of the command line, of Python and of C, if the user gives none. A
// default RunControl has a gap of 0: its search ends with a proof or at a
// limit.
inline constexpr double kDefaultGap = 0.01;

struct RunControl {
  // Limits make_plan() in seconds: set-up, search and reasons. Time is counted
  // from `start`, which may be before a file is read, or from the call if it is
  // empty.
  double time_limit_seconds = 30;
  std::optional<std::chrono::steady_clock::time_point> start;
  // Limits the table entries that the solver touches, which is deterministic.
  // If it is empty, this limit does not apply, as in solver::SolveOptions.
  std::optional<std::uint64_t> work_limit;
  // The search ends once the cost of its plan exceeds the lower bound by at
  // most this share of the cost.
  double gap = 0;
  int threads = 1;
  std::uint64_t seed = 0;
  // A plan that the search starts from: of this graph, or of a graph whose
  // names mostly agree. Operators are matched by name and kind, tensors by
  // name. It changes which plan is found first, not which plans are allowed.
  std::shared_ptr<const Plan> start_from;
  // If true, the plan keeps what its search learned about the lower bound, for
  // the search that starts from it (Plan::warm_start).
  bool keeps_warm_start = false;
  // Share of the remaining limits that the search may use once it knows that the
  // memory limit excludes a cheaper plan (SearchFacts::limit_binds). The same holds
  // while the limit does so in all parts of the space. plan() leaves the rest to other
  // rules of recomputation. Above 0, at most 1.
  double share_if_limit_binds = 1;
  // Whether a proof that no plan with equal layers fits comes with a bound of those
  // without. plan() needs it to bound all rules of recomputation together.
  bool bounds_free_layers_if_infeasible = false;

  // The cost of a known answer in nanoseconds, as of another rule of recomputation;
  // null if there is none. A plan that costs as much is only a figure to compare, so
  // the search does not break ties, and mixes no plans that cannot cost less.
  std::optional<std::int64_t> known_cost;

  // Once any thread requests a stop, the search ends with the best plan so far.
  // Before the search starts, planning fails with kStopped.
  std::stop_token stop;
  // Called by the thread that called make_plan(), at the start of each phase
  // and at most a few times a second during the search.
  std::function<void(const PlanProgress&)> progress;
};

}  // namespace shardprop
