// Plan: a graph laid out on a mesh: for every operator the strategy it runs
// by, for every tensor its layout, and the redistributions in between, with
// what they cost and why they are there.
//
// A Plan is plain data that stands for itself: values and nodes by name, so
// that it can be saved, read back and shown without the graph. Times are
// integer nanoseconds and bytes integers, both of the busiest rank.
//
//   mm_1: x S(0),R  w R,S(1)  ->  S(0),S(1)       on dp=2,tp=4
//   copy 0: w  S(0),S(1) -> R,S(1)   all_gather over dp, made before node 17
//
// It says how to run itself, in this order: before node i, the copies with
// `made_at` i; node i, on its inputs, by its local run; copies with `freed_at`
// i are dropped. Behind the nodes come the updates, counted on with them: the
// optimizer's step, parameter by parameter.
//
// Invariants of a plan with a status of optimal or feasible:
//   * every input of every node is laid out as its value is made, or as one of
//     the copies, which the input then names;
//   * each copy stands once, whoever shares it, and totals count it once; a
//     value may be copied to the same layout again later, when the first such
//     copy has been dropped;
//   * copies are in the order in which they are made, what they are made of is
//     there by then, and they are there by the time any node takes them;
//   * objective = compute + communication - hidden.
// Others hold no choices: nodes, copies, values and outputs are empty.
#pragma once

#include <shardprop/graph/graph.h>
#include <shardprop/mesh/collective_kind.h>
#include <shardprop/mesh/device_mesh.h>
#include <shardprop/mesh/topology.h>
#include <shardprop/placement/layout.h>
#include <shardprop/plan/local_run.h>
#include <shardprop/plan/plan_space.h>
#include <shardprop/redistribute/redistribute_plan.h>
#include <shardprop/solver/solve.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardprop {

// Of the plan over the named space: kOptimal, no assignment costs less;
// kFeasible, within `gap` of the best; kInfeasible, proven; kUnknown.
using PlanStatus = solver::Status;
std::optional<PlanStatus> parse_plan_status(std::string_view text);

// A tensor of the plan: whole shape, and how it is laid out.
struct PlannedTensor {
  Dims shape;
  DType dtype = DType::kF32;
  Layout layout;
  friend bool operator==(const PlannedTensor&, const PlannedTensor&) = default;
};

// A parameter, buffer, constant or user input.
struct PlannedValue {
  std::string name;  // its own: model.embed.weight
  InputKind kind = InputKind::kUser;
  PlannedTensor tensor;
  // Of parameters with an optimizer: how its state and the gradient lie, where
  // that is not as the parameter does.
  std::optional<Layout> state_layout;
  // Of those whose step takes several micro-batches: the gradient is added up as
  // it is made and reduced once a step; else it is reduced every time.
  bool reduced_once = false;
  friend bool operator==(const PlannedValue&, const PlannedValue&) = default;
};

// A value in a second layout, shared by all that want it so. It is made of a
// value as that was made, or of another copy, seen through views of both:
//
//   of mm_1 R -> [view_2 [permute_3]] -> permute_3  R -> S(1)   by a slice
//
// Without steps it is what it is made of, seen as another value.
struct PlannedCopy {
  std::string from;  // the value that this is a copy of
  Layout src;        // of `from`, as it is redistributed
  Layout dst;
  // The copy that it is made of; empty: the value `of` as it was made.
  std::optional<std::size_t> source;
  std::string of;  // that value, or the one that `source` is a copy of
  // Nodes of views that lead from `of` to `from`: first some to be taken back
  // (from their result to their operand), then some to be applied.
  std::vector<std::string> undone;
  std::vector<std::string> views;
  // Made before the node of this index runs, dropped after that one; the
  // number of nodes and updates stands for the end of the program.
  std::int64_t made_at = 0;
  std::int64_t freed_at = 0;
  std::string reason;
  // What the best plan without this copy, found by changing one of its users
  // alone, would cost more; empty when no user has another choice.
  std::optional<std::int64_t> alternative_nanoseconds;
  std::int64_t hidden_nanoseconds = 0;  // of its steps, behind compute
  // Where it cuts a kernel in two: the launch, the write and the read that it
  // adds. Part of the compute.
  std::int64_t cut_nanoseconds = 0;
  // Made once a step of several micro-batches; its times are the share of one.
  bool once_a_step = false;
  std::vector<RedistributeStep> steps;

  std::int64_t nanoseconds() const;
  friend bool operator==(const PlannedCopy&, const PlannedCopy&) = default;
};

struct PlannedInput {
  std::string from;
  Layout layout;
  std::optional<std::size_t> copy;  // index into Plan::copies
  friend bool operator==(const PlannedInput&, const PlannedInput&) = default;
};

// What a node makes.
struct PlannedResult {
  std::string name;  // as inputs name it
  PlannedTensor tensor;
  friend bool operator==(const PlannedResult&, const PlannedResult&) = default;
};

// What the time of an operator goes into.
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

struct PlannedNode {
  std::string name;
  std::string op;
  OpKind kind = OpKind::kOther;
  std::string module_path;
  std::string source;  // model.py:53; empty where none is recorded
  Phase phase = Phase::kForward;
  std::int64_t compute_nanoseconds = 0;
  // The strategy: what each mesh dim is given to (op_strategy.h). Empty for
  // assertions, and in plans of schema 1.
  Assignment assignment;
  LocalRun local;
  // Draws random numbers: an element's are those of its index in the whole
  // tensor, whoever holds it.
  bool is_random = false;
  std::vector<CollectiveStep> inside;  // of its local program, in order
  std::vector<PlannedResult> outputs;
  std::vector<PlannedInput> inputs;
  friend bool operator==(const PlannedNode&, const PlannedNode&) = default;
};

// What the program hands back, in the layout it is handed back in.
struct PlannedOutput {
  OutputKind kind = OutputKind::kUser;
  std::string target;  // gradients and updates: of which input
  PlannedInput value;
  friend bool operator==(const PlannedOutput&, const PlannedOutput&) = default;
};

// The optimizer's step for one parameter, in the layout of its state.
struct PlannedUpdate {
  std::string op;  // optimizer.adamw
  std::string parameter;
  std::string module_path;  // of the first node that takes the parameter
  std::int64_t compute_nanoseconds = 0;
  std::optional<PlannedInput> gradient;  // in the layout of the state
  PlannedInput value;                    // the parameter before, likewise
  PlannedResult result;                  // and after
  friend bool operator==(const PlannedUpdate&, const PlannedUpdate&) = default;
};

// An operator without a strategy, run replicated.
struct UnsupportedOp {
  std::string op;
  std::int64_t count = 0;
  std::string reason;
  friend bool operator==(const UnsupportedOp&, const UnsupportedOp&) = default;
};

// Infeasible: constraints that cannot hold together. Without any one of them
// the others can, provided `irreducible`. The recipe of the options, if any, is
// one of them.
struct PlanClash {
  struct Step {
    std::int64_t at = 0;           // index of the node that runs then
    std::string node;              // its name; empty at the end of the program
    std::int64_t bytes_short = 0;  // beyond the limit, whatever else is chosen
    friend bool operator==(const Step&, const Step&) = default;
  };
  std::vector<std::string> pins;
  std::vector<Step> memory;
  bool irreducible = false;

  bool empty() const { return pins.empty() && memory.empty(); }
  friend bool operator==(const PlanClash&, const PlanClash&) = default;
};

// A pin, and how many of the values that it matches it pins; the others its
// placements do not fit.
struct PlanPin {
  std::string pin;
  std::int64_t matched = 0;
  std::int64_t pinned = 0;
  friend bool operator==(const PlanPin&, const PlanPin&) = default;
};

// What a mesh dim is used for, and for how much of it.
struct PlanRole {
  // Of products (their arithmetic), by what of them the mesh dim cuts:
  // `batch`, `tokens`, `tensor` (features or heads), `experts`, or nothing:
  // `replicated`. Of what flows between them (its time): `between batch`,
  // `between tokens`, `between tensor`. Of `parameters`, `optimizer` state and
  // `inputs` (bytes): that they lie in shards; not of parameters that all users
  // take in the same shards, which products are split by.
  std::string use;
  std::string mesh_dim;
  std::int64_t permille = 0;
  std::vector<std::string> modules;  // where, layers folded: self_attn.q_proj
  friend bool operator==(const PlanRole&, const PlanRole&) = default;
};

// What a step does, whatever it is laid out on.
struct PlanWork {
  std::int64_t flops = 0;  // of all matmuls that run, whole tensors
  // The part that the model needs: what MFU counts (6 x active parameters but
  // the input embedding per token, and attention).
  std::int64_t model_flops = 0;
  std::int64_t tokens = 0;   // of token ids that go in; 0 where there are none
  std::int64_t samples = 0;  // in a batch; 0 where there is none
  // Floating-point operations a second of all ranks at most, in the dtype that
  // most of the arithmetic is in.
  std::int64_t peak_flops = 0;
  friend bool operator==(const PlanWork&, const PlanWork&) = default;
};

// The best plan of a recipe, priced beside this one.
struct PlanRecipe {
  std::string name;  // "fsdp=dp,megatron=tp"
  PlanStatus status = PlanStatus::kUnknown;
  std::optional<std::int64_t> objective_nanoseconds;  // empty without a plan
  std::int64_t peak_bytes = 0;
  friend bool operator==(const PlanRecipe&, const PlanRecipe&) = default;
};

struct PlanMemory {
  // Most bytes a rank holds at once; of the plan that came nearest where none
  // fits the limit.
  std::int64_t peak_bytes = 0;
  std::int64_t peak_at = 0;  // index of the node that runs then
  // What is held at the peak, by kind; 0 without a plan, but for the first two.
  std::int64_t parameter_bytes = 0;
  std::int64_t optimizer_bytes = 0;
  std::int64_t gradient_bytes = 0;    // handed back, from their making on
  std::int64_t activation_bytes = 0;  // whatever else nodes make, and inputs
  std::int64_t gathered_bytes = 0;    // copies, and what moving them takes
  std::int64_t buffer_bytes = 0;      // of the program: buffers and constants
  std::optional<std::int64_t> limit_bytes;
  friend bool operator==(const PlanMemory&, const PlanMemory&) = default;
};

struct PlanSummary {
  std::int64_t compute_nanoseconds = 0;
  std::int64_t communication_nanoseconds = 0;
  std::int64_t hidden_nanoseconds = 0;
  std::int64_t bytes_per_rank = 0;
  // Steps by CollectiveKind.
  std::array<std::int64_t, std::size(kAllCollectiveKinds)> collectives{};
  friend bool operator==(const PlanSummary&, const PlanSummary&) = default;
};

// The kernels that operators share under the plan's layouts, counted one by
// one: a group of operators falls apart where one takes what another makes in
// another layout. Its parts then read and write what the plan's prices, which
// are sums over operators, may count otherwise.
struct PlannedKernels {
  std::int64_t groups = 0;              // of operators, as found on the graph
  std::int64_t kernels = 0;             // what they are
  std::int64_t bytes = 0;               // read and written by these
  std::int64_t nanoseconds = 0;         // of these
  std::int64_t priced_nanoseconds = 0;  // as the operators are priced
  friend bool operator==(const PlannedKernels&,
                         const PlannedKernels&) = default;
};

// What ended the search before anything was proven.
enum class RanOut : std::uint8_t {
  kNothing,
  kTime,
  kWork,
  kInterrupted,
  kMemory,  // of the machine that plans
  kSize,    // the named space is more than can be counted
  // No limit: the search has made all of its attempts.
  kAttempts,
};
// "nothing", "time", "work", "interrupted", "memory", "size", "attempts".
std::string_view to_string(RanOut what);
std::optional<RanOut> parse_ran_out(std::string_view text);

struct Plan {
  std::string graph_name;
  std::string graph_hash;  // 16 hex digits
  std::size_t graph_ops = 0;
  DeviceMesh mesh;
  Topology topology;
  // Name and value of every option that shaped the plan, pins included; of the
  // command line also how the graph was read: `bound` (u0=128), `rule`.
  std::vector<std::pair<std::string, std::string>> options;

  PlanStatus status = PlanStatus::kUnknown;
  std::optional<std::int64_t> objective_nanoseconds;  // empty without a plan
  std::int64_t lower_bound_nanoseconds = 0;
  // What the bound holds for: less than the named space where `ran_out` kept
  // that from being searched.
  PlanSpace space;
  // The part of it that the plan was chosen from, which says how its copies
  // are moved: `space`, or less.
  PlanSpace made_in;
  RanOut ran_out = RanOut::kNothing;
  // Status and bound are what a file says, not proven here.
  bool is_proof_given = false;
  double solve_seconds = 0;
  PlanClash clash;

  std::vector<UnsupportedOp> unsupported;
  std::vector<Guard> guards;
  std::vector<PlanPin> pins;
  std::vector<PlanRecipe> recipes;  // where asked for
  std::vector<PlanRole> roles;
  PlanWork work;
  std::vector<std::string> notes;  // the graph's, then the plan's, in sentences
  PlanMemory memory;
  PlanSummary summary;
  PlannedKernels kernels;                  // all 0 without fusion
  std::int64_t optimizer_nanoseconds = 0;  // its steps; part of the compute
  std::vector<PlannedValue> values;
  std::vector<PlannedCopy> copies;
  std::vector<PlannedNode> nodes;
  std::vector<PlannedUpdate> updates;  // with an optimizer; counted after nodes
  std::vector<PlannedOutput> outputs;

  // Whether there is one to run.
  bool has_plan() const { return objective_nanoseconds.has_value(); }
  // (objective - bound) / objective; 0 for a plan that costs nothing.
  std::optional<double> gap() const;
  friend bool operator==(const Plan&, const Plan&) = default;
};

// Totals of what the plan lists: every copy and every inside step once.
PlanSummary summarize(const Plan& plan);

// The hash as plans carry it: 16 lower-case hex digits.
std::string hash_text(std::uint64_t hash);

}  // namespace shardprop
