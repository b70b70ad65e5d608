// `PlanOptions` are the user's settings other than graph, mesh and topology.
//
//   PlanOptions options;
//   Result<void> set = set_option(options, "memory", "80GiB");
//   options.stop = source.get_token();   // another thread may end the search
#pragma once

#include <shardprop/base/option.h>
#include <shardprop/graph/graph.h>
#include <shardprop/graph/node.h>
#include <shardprop/placement/layout.h>
#include <shardprop/plan/pin.h>
#include <shardprop/plan/recipe.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {

// `Optimizer` is the optimizer whose state is stored for each parameter that
// has a gradient: none for sgd (without momentum), two tensors for adamw.
// Precision defines their dtype. Their layout is the parameter's or a finer
// one, as the plan chooses.
enum class Optimizer : std::uint8_t { kNone, kSgd, kAdamW };
std::string_view to_string(Optimizer optimizer);  // "none", "sgd", "adamw"
std::optional<Optimizer> parse_optimizer(std::string_view text);

// `Fusion` says whether elementwise operators, casts and reductions share
// kernels, as in compiled programs, or each has a kernel of its own.
enum class Fusion : std::uint8_t { kCompiler, kNone };
std::string_view to_string(Fusion fusion);  // "compiler", "none"

// `Precision` is the dtype of parameters, gradients and state in training:
//
//   * kMixed: a 16-bit parameter and its optimizer's state are stored in f32,
//     and its gradient is reduced and accumulated in f32. The program reads a
//     16-bit copy.
//   * kOwn: all of them have the parameter's dtype.
enum class Precision : std::uint8_t { kMixed, kOwn };
std::string_view to_string(Precision precision);  // "mixed", "own"

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

// `ForcedStrategy` requires one operator to use the strategy with these
// layouts.
struct ForcedStrategy {
  NodeId node;
  std::vector<Layout> takes;  // by input
  std::vector<Layout> makes;  // by result
};

struct PlanOptions {
  // Bytes per rank; no limit if empty.
  std::optional<std::int64_t> memory_limit;
  // Empty: adamw if the graph trains (see trains()), else none.
  std::optional<Optimizer> optimizer;
  // Empty: mixed with adamw, own with others.
  std::optional<Precision> precision;
  Fusion fusion = Fusion::kCompiler;
  // Micro-batches whose gradients one optimizer step accumulates. Costs are
  // those of one micro-batch plus its share of the step.
  int accumulate = 1;
  // Overlap multiplier, 0 to 1: the fraction of an overlappable transfer that
  // may overlap with the compute of its window (docs/planning.md). Gathers of
  // parameters and reductions of gradients are overlappable.
  double overlap = 0;
  std::vector<Pin> pins;
  // Restricts the plan to this recipe if operators can follow it.
  std::optional<Recipe> recipe;
  // If true, the cost of every known recipe is reported too (Plan::recipes).
  bool compare = false;
  // Error: kPinNoStrategy if the operator has no strategy with these layouts.
  std::optional<ForcedStrategy> forced;
  // If true, an operator without a strategy is an error (kNoStrategy);
  // otherwise it runs replicated.
  bool strict = false;

  // Limits make_plan() in seconds: set-up, search and reasons. Time is counted
  // from `start`, which may be before a file is read, or from the call if it is
  // empty.
  double time_limit_seconds = 60;
  std::optional<std::chrono::steady_clock::time_point> start;
  // Limits the table entries that the solver touches, which is deterministic.
  // If it is empty, this limit does not apply, as in solver::SolveOptions.
  std::optional<std::uint64_t> work_limit;
  int threads = 1;
  std::uint64_t seed = 0;

  // The search procedures that are switched off, by name (`layer-mix`), to
  // measure what they gain. Plan::procedures lists all names.
  std::vector<std::string> switched_off;

  // Once any thread requests a stop, the search ends with the best plan so far.
  // Before the search starts, planning fails with kStopped.
  std::stop_token stop;
  // Called by the thread that called make_plan(), at the start of each phase
  // and at most a few times a second during the search.
  std::function<void(const PlanProgress&)> progress;
};

// Returns whether an output of the graph is the gradient of a parameter.
bool trains(const Graph& graph);
// Returns the options with the defaults that depend on the graph.
PlanOptions resolved(PlanOptions options, const Graph& graph);

// Returns whether 16-bit parameters are stored in f32; false without an
// optimizer.
bool keeps_f32(const PlanOptions& options);

// Returns the options that have a text form: all except `forced`, `start`,
// `stop` and `progress`. Flags of the command line are these names, with `-`
// for `_`.
std::span<const OptionInfo> plan_option_table();
// Error: kInvalidArgument (an unknown name, a value out of bounds) and those of
// Pin::parse().
Result<void> set_option(PlanOptions& options, std::string_view name,
                        std::string_view text);
// Returns the value as text; empty if the option is unset. Error:
// kInvalidArgument (an unknown name).
Result<std::string> get_option(const PlanOptions& options,
                               std::string_view name);
// Checks that every option is within its bounds; make_plan() calls this first.
// Error: kInvalidArgument.
Result<void> validate(const PlanOptions& options);

}  // namespace shardprop
