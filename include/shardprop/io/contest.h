// This header reads and writes plan problems in the format of the
// ASPLOS/EuroSys 2025 contest on intra-operator parallelism (google/iopddl):
//
//   {"problem": {"name": "example",
//                "nodes": {"intervals": [[0, 2], [1, 3]],
//                          "costs":     [[15, 55], [0, 1, 2]],
//                          "usages":    [[10, 5], [1, 1, 1]]},
//                "edges": {"nodes": [[0, 1]], "costs": [[1, 2, 3, 4, 5, 6]]},
//                "usage_limit": 50}}
//
// Keys may be in any order, each at most once. "name", "edges" and
// "usage_limit" are optional. A cost of 10^18 or more is forbidden. Every edge
// must have two nodes.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/solver/problem.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shardprop::io {

// `ContestProblem` is a plan problem with its name in the file.
struct ContestProblem {
  std::string name;
  solver::Problem problem;
};

// Errors: kContestSyntax at a path such as $.problem.nodes.costs[3][0], and
// those of ProblemBuilder::build().
Result<ContestProblem> parse_contest(std::string_view json);

// Reads a plain or gzipped file, or a pipe until the deadline. Additional
// errors: kContestFile if the file cannot be read or has more than `max_bytes`
// after decompression, kStopped if the deadline passed.
Result<ContestProblem> read_contest(
    const std::string& path, std::uint64_t max_bytes,
    std::optional<std::chrono::steady_clock::time_point> deadline = {});

// Writes a problem; pins become forbidden choices. Error: kContestSyntax if a
// variable uses bytes over more than one interval, which the format cannot
// express.
Result<std::string> write_contest(const ContestProblem& contest);

}  // namespace shardprop::io
