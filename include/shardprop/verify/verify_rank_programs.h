// `verify_rank_programs` runs programs of ranks that shardprop did not plan on
// simulated ranks, and compares their values with the single-device graph.
//
//   RankPrograms programs = *load_rank_programs("out", mesh, library);
//   RankProgramsReport report =
//       *verify_rank_programs(programs, graph, library);
//   report.ok;                       // false
//   report.wrong->where.value;       // "relu": the first wrong value
//   report.wrong->sentences[0];      // "It is right in the layout P(sum): ..."
//
// Two kinds of values are compared:
//
//   * Outputs. A stated layout must hold; otherwise any layout may.
//   * Values of nodes, in any layout. Programs of `emit` state the node of the
//     graph for which a node runs. In other programs, nodes with the name and
//     operator of a node of the graph are compared. Such names may be chance.
//     They therefore only locate the error of a wrong output.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/graph/graph.h>
#include <shardprop/mesh/collective_kind.h>
#include <shardprop/ops/op_library.h>
#include <shardprop/placement/layout.h>
#include <shardprop/program/rank_programs.h>
#include <shardprop/verify/verify.h>

#include <array>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace shardprop {

// `ComparedOutput` is an output of the programs. `layout` is the layout in
// which it is right; it is empty if it is wrong in every layout.
struct ComparedOutput {
  std::string name;
  bool ok = true;
  double max_error = 0;  // in its layout, relative as the tolerance
  std::optional<Layout> stated;
  std::optional<Layout> layout;
};

// `LaidOutValue` is a right value that a wrong one depends on.
struct LaidOutValue {
  std::string name;
  Layout layout;
};

// `WrongValue` is a value that differs from the single-device graph.
struct WrongValue {
  // The place and an element. `strategy` and `error` are empty; `element` is
  // empty if the sizes differ.
  VerifyMismatch where;
  std::string module_path;
  SourceLocation source;
  std::optional<Layout> stated;
  // The layout in which the value is right, or in which it is `factor` times
  // the value; empty if there is none.
  std::optional<Layout> layout;
  double factor = 1;
  std::vector<std::string> sentences;  // the findings in words
  std::vector<LaidOutValue> reads;     // the nearest right values before it
};

struct RankProgramsReport {
  bool ok = true;
  std::int64_t values = 0;    // of the graph that were compared
  std::int64_t compared = 0;  // the same, summed over ranks
  std::vector<ComparedOutput> outputs;
  std::optional<WrongValue> wrong;        // the first, in program order
  std::vector<std::string> wrong_values;  // all, in program order
  // Calls of the busiest rank, by CollectiveKind.
  std::array<std::int64_t, std::size(kAllCollectiveKinds)> collectives{};
};

// Errors:
//
//   * those of Expected::create();
//   * kFieldMissing: an input without layout, or outputs without names;
//   * kDanglingName: the graph has no input or value of that name;
//   * kLocalTensor: an input has another size or dtype than its layout gives;
//   * kInvalidArgument: an input with terms, another number of outputs, or a
//     mesh that cannot be simulated (check_simulated());
//   * kUnknownOperator, kReduction, kGroup, kNotInGroup, kCollectiveMismatch,
//     kTimeout: collectives that cannot run (see the error's notes);
//   * kNoReference: an operator that the reference lacks, or that draws random
//     numbers on a rank.
Result<RankProgramsReport> verify_rank_programs(
    const RankPrograms& programs, const Graph& graph,
    const std::shared_ptr<const OpLibrary>& library,
    const VerifyOptions& options = {});

}  // namespace shardprop
