// Plan problems in the format of the ASPLOS/EuroSys 2025 contest on
// intra-operator parallelism (google/iopddl):
//
//   {"problem": {"name": "example",
//                "nodes": {"intervals": [[0, 2], [1, 3]],
//                          "costs":     [[15, 55], [0, 1, 2]],
//                          "usages":    [[10, 5], [1, 1, 1]]},
//                "edges": {"nodes": [[0, 1]], "costs": [[1, 2, 3, 4, 5, 6]]},
//                "usage_limit": 50}}
//
// Keys may come in any order, each once; "name", "edges" and "usage_limit" may
// be missing. 10^18 or more means forbidden. Only edges of two nodes are read.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/solver/problem.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shardprop::io {

struct ContestProblem {
  std::string name;
  solver::Problem problem;
};

// Errors: kContestSyntax at a path, as $.problem.nodes.costs[3][0]; those of
// ProblemBuilder::build().
Result<ContestProblem> parse_contest(std::string_view json);

// Reads a plain or gzipped file; a pipe until the deadline, if there is one.
// Errors besides: kContestFile when it cannot be read or holds more than
// `max_bytes` after decompression, kStopped when the deadline came first.
Result<ContestProblem> read_contest(
    const std::string& path, std::uint64_t max_bytes,
    std::optional<std::chrono::steady_clock::time_point> deadline = {});

// Pins are written as forbidden choices. Error kContestSyntax when a variable
// uses bytes over more than one interval, which the format cannot say.
Result<std::string> write_contest(const ContestProblem& contest);

}  // namespace shardprop::io
