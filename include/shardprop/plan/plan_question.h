// `PlanQuestion` asks for a plan of a graph on a mesh. It states which costs
// count, how programs run, and which layouts are fixed. Two runs of the planner
// with the same question look for the same plan.
//
//   PlanQuestion question;
//   question.memory_limit = std::int64_t{80} << 30;
//   question.pins.push_back(Pin::parse("lm_head.weight=S(0),R").value());
#pragma once

#include <shardprop/graph/graph.h>
#include <shardprop/graph/node.h>
#include <shardprop/graph/recompute.h>
#include <shardprop/placement/layout.h>
#include <shardprop/plan/pin.h>
#include <shardprop/plan/recipe.h>

#include <cstdint>
#include <optional>
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
// kernels, as in compiled programs. A value that only its own kernel reads then
// takes no memory. Without fusion, each operator of the program has a kernel of
// its own, as in eager PyTorch. The operators of one decomposition
// (Node::decomposed_from) then have one kernel.
enum class Fusion : std::uint8_t { kCompiler, kNone };
std::string_view to_string(Fusion fusion);  // "compiler", "none"
// Returns the name of the execution that has these kernels: "compiled", "eager".
std::string_view execution_of(Fusion fusion);

// `Precision` is the dtype of parameters, gradients and state in training:
//
//   * kMixed: a 16-bit parameter and its optimizer's state are stored in f32,
//     and its gradient is reduced and accumulated in f32. The program reads a
//     16-bit copy.
//   * kOwn: all of them have the parameter's dtype.
enum class Precision : std::uint8_t { kMixed, kOwn };
std::string_view to_string(Precision precision);  // "mixed", "own"

// `Layers` says whether equal layers have equal plans: the same layouts of
// parameters and states, the same strategies and the same copies. Layers are
// the repeated blocks of the graph. An operator at the end of a row of layers
// chooses alone if its producers or readers are not counterparts. A tensor or
// an operator to which a pin leaves other choices also chooses alone.
enum class Layers : std::uint8_t { kAlike, kFree };
std::string_view to_string(Layers layers);  // "alike", "free"

// `ForcedStrategy` requires one operator to use the strategy with these
// layouts.
struct ForcedStrategy {
  NodeId node;
  std::vector<Layout> takes;  // by input
  std::vector<Layout> makes;  // by result
};

struct PlanQuestion {
  // Bytes per rank; no limit if empty.
  std::optional<std::int64_t> memory_limit;
  // Empty: adamw if the graph trains (see trains()), else none.
  std::optional<Optimizer> optimizer;
  // Empty: mixed with adamw, own with others.
  std::optional<Precision> precision;
  Fusion fusion = Fusion::kCompiler;
  // The rule by which operators run again in the backward phase. make_plan()
  // expects a graph that follows it (running_graph()). Empty: plan_graph() takes
  // the cheapest rule that fits the memory limit, and make_plan() none.
  std::optional<Recompute> recompute = Recompute{};
  Layers layers = Layers::kAlike;
  // One optimizer step accumulates the gradients of this many micro-batches.
  // Costs are those of one micro-batch plus its share of the step.
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
};

// Returns whether an output of the graph is the gradient of a parameter.
bool trains(const Graph& graph);
// Returns whether 16-bit parameters are stored in f32; false without an
// optimizer.
bool keeps_f32(const PlanQuestion& question);

}  // namespace shardprop
