// `Plan` assigns a strategy to every operator of a graph and a layout to every
// tensor on a mesh. It lists the redistributions in between, with their costs
// and reasons.
//
// A Plan is plain data and needs no other object. It identifies values and
// nodes by name, so it can be saved, read back and shown without the graph.
// Times are integer nanoseconds and bytes are integers, both of the busiest
// rank.
//
//   mm_1: x S(0),R  w R,S(1)  ->  S(0),S(1)       on dp=2,tp=4
//   copy 0: w  S(0),S(1) -> R,S(1)   all_gather over dp, made before node 17
//
// The plan runs in this order:
//
// 1. before node i, it waits for the copies whose `in_flight->waited_at` is i;
// 2. the copies with `in_flight->issued_at` i start, and others with
// `produced_at` i are produced;
// 3. node i, on its inputs, by its local run;
// 4. the copies with `freed_at` i are freed.
//
// The updates follow the nodes and continue their numbering. They are the
// optimizer's step, one update per parameter.
//
// Invariants of a plan with status optimal or feasible:
//   * every input of every node has the layout in which its value is produced,
//     or the layout of a copy, which the input then names;
//   * each copy is listed once, even if several nodes share it, and totals
//     count it once; a value may be copied to the same layout again later, once
//     the first copy is freed;
//   * copies are in the order of `produced_at`; their sources exist by then or
//     are in flight in the same interval, and they are complete before any node
//     reads them;
//   * objective = compute + communication - overlapped communication (hidden);
//   * overlapped communication is the sum over windows of the smaller one of
//     compute and overlappable time.
// A plan with another status has no choices: nodes, copies, values and outputs
// are empty.
#pragma once

#include <shardprop/graph/graph.h>
#include <shardprop/mesh/collective_kind.h>
#include <shardprop/mesh/device_mesh.h>
#include <shardprop/mesh/topology.h>
#include <shardprop/placement/layout.h>
#include <shardprop/plan/demanded_shardings.h>
#include <shardprop/plan/local_run.h>
#include <shardprop/plan/pin.h>
#include <shardprop/plan/plan_conflict.h>
#include <shardprop/plan/plan_note.h>
#include <shardprop/plan/plan_recipe.h>
#include <shardprop/plan/plan_role.h>
#include <shardprop/plan/plan_space.h>
#include <shardprop/plan/planned_copy.h>
#include <shardprop/plan/ran_out.h>
#include <shardprop/solver/solve.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardprop {

// `PlannedTensor` is a tensor of the plan: its full shape and its layout.
struct PlannedTensor {
  Dims shape;
  DType dtype = DType::kF32;
  Layout layout;
  friend bool operator==(const PlannedTensor&, const PlannedTensor&) = default;
};
// Returns the bytes of the whole tensor: 32768 for bf16[8,2048].
double full_bytes(const PlannedTensor& tensor);

// `PlannedValue` is a parameter, buffer, constant or user input.
struct PlannedValue {
  std::string name;  // its own: model.embed.weight
  InputKind kind = InputKind::kUser;
  PlannedTensor tensor;
  // Parameters with an optimizer: the layout of its state and the gradient, if
  // it differs from the parameter's.
  std::optional<Layout> state_layout;
  // Parameters whose step has several micro-batches: if true, the gradient is
  // accumulated as produced and reduced once per step. If false, it is reduced
  // in every micro-batch.
  bool reduced_once = false;
  friend bool operator==(const PlannedValue&, const PlannedValue&) = default;
};

// `kMostDividedMicroBatches` is the largest number of micro-batches whose windows
// have several loads. Then overlappable time is a multiple of the number, so that
// each transfer loses less than 256 ns of overlap. With more micro-batches a load
// of its own matters little: in the mean of all micro-batches, a transfer once a
// step counts as less than 1/256 of its time.
inline constexpr std::int64_t kMostDividedMicroBatches = 256;

// Returns the number of micro-batches among which the time of a window is
// divided. It is 1 if the window has one load for all of them.
constexpr std::int64_t divided_micro_batches(std::int64_t micro_batches) {
  return micro_batches <= kMostDividedMicroBatches ? micro_batches : 1;
}

// `MicroBatches` is the set of micro-batches in which a window has the same load.
// A step of one micro-batch has kAll, and one of two has kFirst and kLast. A step
// of more than kMostDividedMicroBatches has kAll too.
enum class MicroBatches : std::uint8_t { kAll, kFirst, kBetween, kLast };
std::string_view to_string(MicroBatches set);  // "between"
// Empty for kAll, too: a plan file does not state it.
std::optional<MicroBatches> parse_micro_batches(std::string_view text);

// `PlannedWindow` is an overlap window: the nodes from `begins_at` to the next
// window. It takes as long as its nodes compute or as the transfers in flight,
// whichever is longer. Gathers after an update are in flight in the next step.
//
// A step of several micro-batches runs each window several times. The plan then
// lists it for the first micro-batch, for those between and for the last one, or
// once for all if they are more than kMostDividedMicroBatches.
struct PlannedWindow {
  std::int64_t begins_at = 0;  // index of a node of the graph
  std::int64_t compute_nanoseconds = 0;
  std::int64_t overlappable_nanoseconds = 0;  // of the transfers in flight
  MicroBatches micro_batches = MicroBatches::kAll;
  friend bool operator==(const PlannedWindow&, const PlannedWindow&) = default;
};

// `PlannedInput` is an input of a node: a value or a copy of it, in the layout
// that the node reads.
struct PlannedInput {
  std::string from;
  Layout layout;
  std::optional<std::size_t> copy;  // index into Plan::copies
  friend bool operator==(const PlannedInput&, const PlannedInput&) = default;
};

// `PlannedResult` is a result of a node.
struct PlannedResult {
  std::string name;  // name by which inputs refer to it
  PlannedTensor tensor;
  friend bool operator==(const PlannedResult&, const PlannedResult&) = default;
};

// `OpKind` is the category under which the time of an operator is reported.
enum class OpKind : std::uint8_t {
  kMatmul,
  kAttention,
  kConvolution,
  kPointwise,
  kReduction,
  kOther,  // gathers, scatters, copies, sorts, ...
};
inline constexpr OpKind kAllOpKinds[] = {
    OpKind::kMatmul,    OpKind::kAttention, OpKind::kConvolution,
    OpKind::kPointwise, OpKind::kReduction, OpKind::kOther};
std::string_view to_string(OpKind kind);  // "matmul"
std::optional<OpKind> parse_op_kind(std::string_view text);

// `PlannedNode` is a node of the graph with its strategy and its times.
struct PlannedNode {
  std::string name;
  std::string op;
  OpKind kind = OpKind::kOther;
  std::string module_path;
  std::string source;  // model.py:53; empty if none is recorded
  Phase phase = Phase::kForward;
  // The node that it runs again; empty if it runs for the first time.
  std::string second_run_of;
  std::int64_t compute_nanoseconds = 0;
  // The strategy: the target of each mesh dim (op_strategy.h). It is empty for
  // assertions and in plans of schema 1.
  Assignment assignment;
  FactorShardings shardings;  // of the factors of the assignment
  LocalRun local;
  // True if it draws random numbers. The numbers of an element depend on its
  // index in the full tensor, not on the rank that holds it.
  bool is_random = false;
  // Collectives of its local program, in order.
  std::vector<CollectiveStep> inside;
  std::vector<PlannedResult> outputs;
  std::vector<PlannedInput> inputs;
  friend bool operator==(const PlannedNode&, const PlannedNode&) = default;
};

// `PlannedOutput` is an output of the program with its layout.
struct PlannedOutput {
  OutputKind kind = OutputKind::kUser;
  std::string target;  // gradients and updates: the input to which it belongs
  PlannedInput value;
  friend bool operator==(const PlannedOutput&, const PlannedOutput&) = default;
};

// `PlannedUpdate` is the optimizer's step for one parameter, in the layout of
// its state.
struct PlannedUpdate {
  std::string op;  // optimizer.adamw
  std::string parameter;
  std::string module_path;  // module of the first node that reads the parameter
  std::int64_t compute_nanoseconds = 0;
  std::optional<PlannedInput> gradient;  // in the layout of the state
  PlannedInput value;    // the parameter before, in the same layout
  PlannedResult result;  // the parameter afterwards
  friend bool operator==(const PlannedUpdate&, const PlannedUpdate&) = default;
};

// `UnsupportedOp` is an operator without a strategy; it runs replicated.
struct UnsupportedOp {
  std::string op;
  std::int64_t count = 0;
  std::string reason;
  friend bool operator==(const UnsupportedOp&, const UnsupportedOp&) = default;
};

// `PlanPin` is a pin, the number of values that it matches, and the number that
// it pins. Its placements do not fit the other values.
struct PlanPin {
  Pin pin;
  std::int64_t matched = 0;
  std::int64_t pinned = 0;
  friend bool operator==(const PlanPin&, const PlanPin&) = default;
};

// `PlanWork` is the work of a step, independent of layouts.
struct PlanWork {
  std::int64_t flops = 0;  // of all matmuls that run, unsharded
  // The part that the model needs, as MFU counts it: 6 x active parameters
  // (without the input embedding) per token, plus attention.
  std::int64_t model_flops = 0;
  std::int64_t tokens = 0;   // number of token ids in the inputs; 0 if none
  std::int64_t samples = 0;  // batch size; 0 if unknown
  // Peak rate of all ranks in floating-point operations per second, in the
  // dtype of most of the arithmetic.
  std::int64_t peak_flops = 0;
  friend bool operator==(const PlanWork&, const PlanWork&) = default;
};

// `PlanMemory` is the predicted memory of the busiest rank, in bytes.
struct PlanMemory {
  // Maximum bytes that a rank holds at any time. If no plan fits the limit, it
  // is that of the plan that came nearest.
  std::int64_t peak_bytes = 0;
  std::int64_t peak_at = 0;  // index of the node that runs then
  // Bytes at the peak, by kind. Without a plan all but the first two are 0.
  std::int64_t parameter_bytes = 0;
  std::int64_t optimizer_bytes = 0;
  // Gradients that are outputs, from when they are produced.
  std::int64_t gradient_bytes = 0;
  std::int64_t activation_bytes = 0;  // other results of nodes, and inputs
  // Copies, and temporary memory of redistributions.
  std::int64_t gathered_bytes = 0;
  std::int64_t buffer_bytes = 0;  // buffers and constants of the program
  std::optional<std::int64_t> limit_bytes;
  // The peak if each operator runs alone, so that every value takes memory. At
  // least `peak_bytes`, which counts no values inside kernels.
  std::int64_t unfused_peak_bytes = 0;
  friend bool operator==(const PlanMemory&, const PlanMemory&) = default;
};

// `PlanSummary` is the predicted time, traffic and number of steps of a plan.
struct PlanSummary {
  std::int64_t compute_nanoseconds = 0;
  std::int64_t communication_nanoseconds = 0;
  std::int64_t overlapped_nanoseconds = 0;
  // The part of compute and communication that second runs take.
  std::int64_t recompute_nanoseconds = 0;
  std::int64_t bytes_per_rank = 0;
  // Number of steps by CollectiveKind. The copies of a bucket share theirs.
  std::array<std::int64_t, std::size(kAllCollectiveKinds)> collectives{};
  friend bool operator==(const PlanSummary&, const PlanSummary&) = default;
};

// `PlannedKernels` counts the kernels that operators share under the plan's
// layouts. A group of operators splits if one reads a result of another in
// another layout. The bytes of its parts may then differ from those in the
// plan's cost, which is a sum over operators.
struct PlannedKernels {
  std::int64_t groups = 0;       // groups of operators, as found on the graph
  std::int64_t kernels = 0;      // number of kernels that the groups become
  std::int64_t bytes = 0;        // read and written by these kernels
  std::int64_t nanoseconds = 0;  // time of these kernels
  // The sum over operators in the plan's cost.
  std::int64_t priced_nanoseconds = 0;
  friend bool operator==(const PlannedKernels&,
                         const PlannedKernels&) = default;
};

// `KeptWarmStart` holds the knowledge of a finished search about the lower bound.
// A search that starts from the plan uses it. It is no part of the plan: files
// do not contain it, and comparisons of plans ignore it.
struct KeptWarmStart {
  std::shared_ptr<const struct WarmStart> data;  // null if it was not kept
  friend bool operator==(const KeptWarmStart& /*a*/,
                         const KeptWarmStart& /*b*/) {
    return true;
  }
};

// `SearchFacts` is knowledge of the search about the question, not about the plan:
// files do not contain it, and comparisons of plans ignore it.
struct SearchFacts {
  // True if plans over the memory limit may cost less, by more than the gap.
  bool limit_binds = false;
  std::uint64_t work = 0;  // table entries, as of RunControl::work_limit
  friend bool operator==(const SearchFacts& /*a*/, const SearchFacts& /*b*/) {
    return true;
  }
};

struct Plan {
  std::string graph_name;
  std::string graph_hash;  // 16 hex digits
  std::size_t graph_ops = 0;
  DeviceMesh mesh;
  Topology topology;
  // Name and value of every option that shaped the plan, including pins. A
  // PlanRequest adds how the graph was read: `bound` (u0=128), `size`, `rule`.
  std::vector<std::pair<std::string, std::string>> options;

  PlanStatus status = PlanStatus::kUnknown;
  std::optional<std::int64_t> objective_nanoseconds;  // empty without a plan
  std::int64_t lower_bound_nanoseconds = 0;
  // No plan takes less, whether its equal layers have equal layouts or not. Empty
  // if `lower_bound_nanoseconds` says so, and if the bound is not known.
  std::optional<std::int64_t> free_lower_bound_nanoseconds;
  // The space for which the bound holds. It is smaller than the named space if
  // `ran_out` prevented a search of the latter.
  PlanSpace space;
  // The space from which the plan was chosen: `space` or a part of it. It
  // determines how the copies are redistributed.
  PlanSpace made_in;
  // The demanded factor shardings of the space.
  DemandedShardings demanded_shardings;
  RanOut ran_out = RanOut::kNothing;
  // The overlap multipliers of the best bound, in parts of 1024. They are in the
  // order of the windows, each with the loads that PlannedWindow describes.
  std::vector<std::int64_t> overlap_multipliers;
  // True if status and bound were read from a file and are not proven here.
  bool is_proof_given = false;
  double solve_seconds = 0;
  PlanConflict conflict;

  std::vector<UnsupportedOp> unsupported;
  std::vector<Guard> guards;
  std::vector<PlanPin> pins;
  std::vector<PlanRecipe> recipes;  // if requested by PlanQuestion::compare
  // The search procedures, those of the solver last. Costs are nanoseconds.
  // A plan that is read from a file has no clocks.
  std::vector<Procedure> procedures;
  std::vector<PlanRole> roles;
  PlanWork work;
  std::vector<PlanNote> notes;  // the graph's, then the plan's
  PlanMemory memory;
  PlanSummary summary;
  PlannedKernels kernels;                  // all 0 without fusion
  std::int64_t optimizer_nanoseconds = 0;  // of its steps; part of the compute
  std::vector<PlannedValue> values;
  std::vector<PlannedCopy> copies;
  std::vector<PlannedWindow> windows;  // empty if nothing overlaps
  std::vector<PlannedNode> nodes;
  std::vector<PlannedUpdate> updates;  // with an optimizer; counted after nodes
  std::vector<PlannedOutput> outputs;
  KeptWarmStart warm_start;  // if RunControl::keeps_warm_start
  SearchFacts search;

  // Returns whether there is a plan to run.
  bool has_plan() const { return objective_nanoseconds.has_value(); }
  // Returns (objective - bound) / objective; 0 for a plan with cost 0.
  std::optional<double> gap() const;
  friend bool operator==(const Plan&, const Plan&) = default;
};

// Returns totals of the plan's lists; each copy and each inside step counts
// once.
PlanSummary summarize(const Plan& plan);

// Returns the hash as plans print it: 16 lower-case hex digits.
std::string hash_text(std::uint64_t hash);

}  // namespace shardprop
