// `verify` tests a plan on one run. It compares its program on simulated ranks,
// with real redistributions, with the unsharded program, value by value.
//
//   VerifyReport report = *verify(plan, graph, library, {});
//   report.ok;               // true
//   report.compared;         // values that were compared, on every rank
//   report.mismatch->node;   // the first node whose result differs
//
// The reference (shardprop/reference) evaluates both programs. Inputs are
// sampled in range: indices below the size of their table, and positive values
// for a logarithm or root. Random operators draw by element, so that shards
// equal the unsharded draw.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/collective/communicator.h>
#include <shardprop/graph/graph.h>
#include <shardprop/mesh/collective_kind.h>
#include <shardprop/ops/op_library.h>
#include <shardprop/plan/plan.h>
#include <shardprop/plan/plan_options.h>
#include <shardprop/program/spmd_program.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace shardprop {

// `VerifyOptions` are the precision, seed and tolerance of a run.
struct VerifyOptions {
  // If true, floats are computed in their own dtypes instead of f64.
  bool own_dtypes = false;
  std::uint64_t seed = 0;
  // Maximum difference, relative to the largest of the values and of the terms
  // that sum to them. Rounding errors of values that cancel may be larger. If it
  // is empty, the dtype defines it.
  std::optional<double> tolerance;
};

// `VerifyMismatch` is the first difference between the ranks and the unsharded
// program, in program order.
struct VerifyMismatch {
  std::string node;
  std::string op;
  std::string value;     // that differs; "mm_1.0" for a copy
  std::string strategy;  // "S(0),R -> S(0)"
  std::int64_t rank = 0;
  std::string element;  // index in the full value: [3,0]
  double expected = 0;
  double found = 0;
  // The error if no values could be compared: an operator's error, or a value
  // that was freed before.
  std::string error;
};

// `VerifiedOutput` is an output of the program with its largest error.
struct VerifiedOutput {
  std::string name;
  double max_error = 0;  // relative, in the same way as the tolerance
};

// `VerifiedCollective` is a collective as planned and as run.
struct VerifiedCollective {
  std::string value;  // the value that it produces
  std::string node;   // the node for which, or before which, it runs
  CollectiveKind kind = CollectiveKind::kSlice;
  std::int64_t planned_bytes = 0;  // of the busiest rank
  std::int64_t counted_bytes = 0;
};

// `VerifyReport` is the result for one plan, over all ranks.
struct VerifyReport {
  bool ok = true;
  std::int64_t nodes = 0;     // number of nodes of the program
  std::int64_t compared = 0;  // values compared, summed over ranks
  std::optional<VerifyMismatch> mismatch;
  std::vector<VerifiedOutput> outputs;
  std::vector<VerifiedCollective> collectives;  // in the order of the program
  // Steps by CollectiveKind: in the program, and as counted by communicators. A
  // step ran if some rank made calls for it; a slice ran if none did.
  std::array<std::int64_t, std::size(kAllCollectiveKinds)> planned{};
  std::array<std::int64_t, std::size(kAllCollectiveKinds)> counted{};
  std::int64_t planned_bytes = 0;
  std::int64_t counted_bytes = 0;
  std::int64_t peak_bytes = 0;  // of values at any time, on the busiest rank
  std::int64_t planned_peak_bytes = 0;
  // Sentences on traffic or memory that the plan predicted wrongly.
  std::vector<std::string> findings;
};

// `Expected` is the unsharded program, run once, with which all ranks compare.
class Expected {
 public:
  // Errors: those of lower_unsharded(), kNoReference (an operator that the
  // reference lacks), kReferenceCall, kOutOfMemory.
  static Result<Expected> create(const Graph& graph,
                                 std::shared_ptr<const OpLibrary> library,
                                 Optimizer optimizer,
                                 const VerifyOptions& options);
  struct Body;
  const Body& body() const { return *body_; }

 private:
  explicit Expected(std::shared_ptr<const Body> body);
  std::shared_ptr<const Body> body_;
};

// `RankFindings` are the findings of one rank. Every rank of the program's mesh
// calls verify_rank().
struct RankFindings {
  // Reason why the rank could not continue, if it does not concern the plan,
  // such as a lack of memory.
  std::optional<Error> refused;
  std::int64_t compared = 0;
  std::optional<VerifyMismatch> mismatch;
  std::size_t mismatch_step = 0;
  std::vector<double> output_errors;             // by program.outputs
  std::vector<std::int64_t> step_payload_bytes;  // by step
  std::vector<std::int64_t> step_calls;          // by step
  std::int64_t peak_bytes = 0;
};
// Runs this rank's part of the program and compares its values.
RankFindings verify_rank(const SpmdProgram& program, const Expected& expected,
                         Communicator& communicator);

// Returns the report of all ranks; `ok` is false if there is a mismatch or
// another finding.
VerifyReport verify_report(const SpmdProgram& program,
                           const std::vector<RankFindings>& ranks);
// Returns the report, and compares memory with the plan's prediction per rank.
VerifyReport verify_report(const SpmdProgram& program,
                           const std::vector<RankFindings>& ranks,
                           const Plan& plan);

// Returns the optimizer whose step is part of a plan.
Optimizer optimizer_of(const Plan& plan);

// Verifies a plan on threads. Errors: those of lower() and Expected::create().
Result<VerifyReport> verify(const Plan& plan, const Graph& graph,
                            std::shared_ptr<const OpLibrary> library,
                            const VerifyOptions& options = {});
// Verifies a plan on the ranks of `communicator`, such as processes. All ranks
// of the world make the call; the first returns the report. Errors: those of
// verify() and of collectives, and kInvalidArgument (fewer processes than
// ranks).
Result<std::optional<VerifyReport>> verify_on(
    Communicator& communicator, const Plan& plan, const Graph& graph,
    std::shared_ptr<const OpLibrary> library,
    const VerifyOptions& options = {});
// Verifies a lowered program.
Result<VerifyReport> verify(const SpmdProgram& program,
                            const Expected& expected);

}  // namespace shardprop
