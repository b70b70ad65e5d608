// PlanOptions are the wishes of a user beyond graph, mesh and topology.
//
//   PlanOptions options;
//   Result<void> set = set_option(options, "memory", "80GiB");
//   options.stop = source.get_token();   // another thread may end the search
#pragma once

#include <shardprop/base/option.h>
#include <shardprop/graph/graph.h>
#include <shardprop/graph/node.h>
#include <shardprop/mesh/topology.h>
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

// The optimizer whose state is held beside each parameter that has a gradient:
// nothing for sgd (without momentum), two tensors for adamw. Their dtype follows
// Precision; their layout is the parameter's or a finer one, as the plan says.
enum class Optimizer : std::uint8_t { kNone, kSgd, kAdamW };
std::string_view to_string(Optimizer optimizer);  // "none", "sgd", "adamw"
std::optional<Optimizer> parse_optimizer(std::string_view text);

// Fusion tells whether elementwise operators, casts and reductions share
// kernels, as in compiled programs, or each is a kernel of its own.
enum class Fusion : std::uint8_t { kCompiler, kNone };
std::string_view to_string(Fusion fusion);  // "compiler", "none"

// Precision is the dtype of parameters, gradients and state in training. Mixed:
// a parameter of 16 bits and its optimizer's state are kept in f32, its gradient
// is reduced and accumulated in f32, and the program reads a 16-bit copy. Own:
// all of them have the parameter's dtype.
enum class Precision : std::uint8_t { kMixed, kOwn };
std::string_view to_string(Precision precision);  // "mixed", "own"

// PlanProgress is the state of a plan that is being made.
struct PlanProgress {
  enum class Phase : std::uint8_t {
    kSetUp,   // strategies, layouts, the prices of redistributions
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

// One operator is to use the strategy with these layouts.
struct ForcedStrategy {
  NodeId node;
  std::vector<Layout> takes;  // by input
  std::vector<Layout> makes;  // by result
};

struct PlanOptions {
  std::optional<std::int64_t> memory_limit;  // bytes a rank; none when empty
  // Empty: adamw if the graph trains (see trains()), else none.
  std::optional<Optimizer> optimizer;
  // Empty: mixed with adamw, own with others.
  std::optional<Precision> precision;
  Fusion fusion = Fusion::kCompiler;
  // Micro-batches whose gradients a step of the optimizer adds up. Costs are the
  // costs of one micro-batch with its share of the work of the step.
  int accumulate = 1;
  // Share of an overlappable transfer (gathers of parameters, reductions of
  // gradients) that may overlap with the compute of its window, 0 to 1
  // (docs/planning.md).
  double overlap = 0;
  std::vector<Pin> pins;
  // Restricts the plan to this recipe wherever operators can follow it.
  std::optional<Recipe> recipe;
  // Price every recipe that is known beside the plan (Plan::recipes).
  bool compare = false;
  // Error: kPinNoStrategy where the operator has no such strategy.
  std::optional<ForcedStrategy> forced;
  // Fails with kNoStrategy where an operator has no strategy, instead of
  // running it replicated.
  bool strict = false;

  // Limits make_plan(): setting up, search and reasons. Time is counted from
  // `start`, which may be before a file is read, or from the call if it is empty.
  double time_limit_seconds = 60;
  std::optional<std::chrono::steady_clock::time_point> start;
  // Limits the table entries that the solver touches, which is deterministic.
  // There is no limit if it is empty, as in solver::SolveOptions.
  std::optional<std::uint64_t> work_limit;
  int threads = 1;
  std::uint64_t seed = 0;

  // Once a stop is requested, by any thread, the search ends with the best plan
  // so far; before there is a search, planning fails with kStopped.
  std::stop_token stop;
  // Called by the thread that called make_plan(), a few times a second at most
  // during the search and once as each phase begins.
  std::function<void(const PlanProgress&)> progress;
};

// The options of a user who states none: the memory limit is what a process can
// allocate on the topology's device, and the overlap is the topology's. With a
// work limit there is no time limit, so that every machine makes the same plan.
PlanOptions default_plan_options(const Topology& topology,
                                 bool has_work_limit = false);

// Whether the graph has a gradient of a parameter among its outputs.
bool trains(const Graph& graph);
// The options with the defaults filled in that depend on the graph.
PlanOptions resolved(PlanOptions options, const Graph& graph);

// Whether parameters of 16 bits are kept in f32; without an optimizer none are.
bool keeps_f32(const PlanOptions& options);

// The options that have a text form: all but `forced`, `start`, `stop` and
// `progress`.
// Flags of the command line are these names, with `-` for `_`.
std::span<const OptionInfo> plan_option_table();
// Error: kInvalidArgument (an unknown name, a value out of bounds) and those of
// Pin::parse().
Result<void> set_option(PlanOptions& options, std::string_view name,
                        std::string_view text);
// Empty where the option is unset. Error: kInvalidArgument (an unknown name).
Result<std::string> get_option(const PlanOptions& options,
                               std::string_view name);
// Whether every option is within its bounds; make_plan() asks this first.
// Error: kInvalidArgument.
Result<void> validate(const PlanOptions& options);

}  // namespace shardprop
