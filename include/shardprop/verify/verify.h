// verify(): a plan proven on one run: its program on simulated ranks, with real
// redistributions, against the unsharded program, value by value.
//
//   VerifyReport report = *verify(plan, graph, library, {});
//   report.ok;               // true
//   report.compared;         // values that were compared, on every rank
//   report.mismatch->node;   // the first node that comes out otherwise
//
// Both programs are evaluated by the reference (shardprop/reference). Inputs
// are drawn in range: indices below what they look up, positive where a
// logarithm or a root follows. Random operators draw by element, so that shards
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

struct VerifyOptions {
  // Floats run in their own dtypes instead of f64.
  bool own_dtypes = false;
  std::uint64_t seed = 0;
  // The largest difference, relative to the largest of the values and of the
  // terms that make them up, or 1; by dtype when empty.
  std::optional<double> tolerance;
};

// Where ranks and the unsharded program differ first, in the order of the
// program.
struct VerifyMismatch {
  std::string node;
  std::string op;
  std::string value;     // that differs; of a copy "mm_1.0"
  std::string strategy;  // "S(0),R -> S(0)"
  std::int64_t rank = 0;
  std::string element;  // of the whole value: [3,0]
  double expected = 0;
  double found = 0;
  // What went wrong where no values could be compared: an operator's error, a
  // value that had been freed.
  std::string error;
};

struct VerifiedOutput {
  std::string name;
  double max_error = 0;  // relative, as the tolerance is
};

// A collective as it was planned and as it ran.
struct VerifiedCollective {
  std::string value;  // what it makes
  std::string node;   // for which, or before which
  CollectiveKind kind = CollectiveKind::kSlice;
  std::int64_t planned_bytes = 0;  // of the busiest rank
  std::int64_t counted_bytes = 0;
};

struct VerifyReport {
  bool ok = true;
  std::int64_t nodes = 0;     // of the program
  std::int64_t compared = 0;  // values, summed over the ranks
  std::optional<VerifyMismatch> mismatch;
  std::vector<VerifiedOutput> outputs;
  std::vector<VerifiedCollective> collectives;  // in the order of the program
  // Steps by CollectiveKind, as the program has them and as communicators
  // counted them: a step ran if some rank made calls for it, a slice if none did.
  std::array<std::int64_t, std::size(kAllCollectiveKinds)> planned{};
  std::array<std::int64_t, std::size(kAllCollectiveKinds)> counted{};
  std::int64_t planned_bytes = 0;
  std::int64_t counted_bytes = 0;
  std::int64_t peak_bytes = 0;  // values held at once, on the busiest rank
  std::int64_t planned_peak_bytes = 0;
  // Where the plan predicted otherwise what was sent or held, in sentences.
  std::vector<std::string> findings;
};

// What all ranks compare with: the unsharded program, run once.
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

// What one rank found. Every rank of the program's mesh makes the call.
struct RankFindings {
  // Why the rank could not go on, where that says nothing of the plan: memory
  // that ran out.
  std::optional<Error> refused;
  std::int64_t compared = 0;
  std::optional<VerifyMismatch> mismatch;
  std::size_t mismatch_step = 0;
  std::vector<double> output_errors;             // by program.outputs
  std::vector<std::int64_t> step_payload_bytes;  // by step
  std::vector<std::int64_t> step_calls;          // likewise
  std::int64_t peak_bytes = 0;
};
RankFindings verify_rank(const SpmdProgram& program, const Expected& expected,
                         Communicator& communicator);

// The findings of all ranks together; `ok` says whether there is a mismatch or
// any other finding.
VerifyReport verify_report(const SpmdProgram& program,
                           const std::vector<RankFindings>& ranks);
// The same beside what the plan predicts that a rank holds at most.
VerifyReport verify_report(const SpmdProgram& program,
                           const std::vector<RankFindings>& ranks,
                           const Plan& plan);

// The optimizer whose step is part of a plan.
Optimizer optimizer_of(const Plan& plan);

// On threads. Errors: those of lower() and Expected::create().
Result<VerifyReport> verify(const Plan& plan, const Graph& graph,
                            std::shared_ptr<const OpLibrary> library,
                            const VerifyOptions& options = {});
// On ranks that are processes, say: all of the world make the call; the first
// gets the report. Errors: those of verify(), of collectives, and
// kInvalidArgument (fewer processes than ranks).
Result<std::optional<VerifyReport>> verify_on(
    Communicator& communicator, const Plan& plan, const Graph& graph,
    std::shared_ptr<const OpLibrary> library,
    const VerifyOptions& options = {});
// The same as verify() of a program that has been lowered.
Result<VerifyReport> verify(const SpmdProgram& program,
                            const Expected& expected);

}  // namespace shardprop
