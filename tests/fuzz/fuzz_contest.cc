// Fuzzes plan problems in the contest's format. A problem that is read must
// print as text that reads back as the same problem, and the solver's answer
// must be true.
#include "fuzz_input.h"

#include <shardprop/io/contest.h>
#include <shardprop/solver/checker.h>
#include <shardprop/solver/solve.h>

using namespace shardprop;  // NOLINT(google-build-using-namespace)

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const auto contest = io::parse_contest(as_text(data, size));
  if (!contest) {
    require_reason(contest);
    return 0;
  }
  const auto written = io::write_contest(*contest);
  require(written.has_value());
  const auto again = io::parse_contest(*written);
  require(again.has_value() && *io::write_contest(*again) == *written);

  solver::SolveOptions options;
  options.time_limit_seconds = 1;
  options.work_limit = 100'000;
  const solver::Solution solution = solver::solve(contest->problem, options);
  if (!solution.cost) return 0;
  const auto checked = solver::evaluate(contest->problem, solution.assignment);
  require(checked.has_value() && checked->feasible());
  require(checked->cost == *solution.cost);
  require(!solution.lower_bound || *solution.lower_bound <= *solution.cost);
  return 0;
}
