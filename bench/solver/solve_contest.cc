// Solves contest files and prints cost, bound, gap and time of each, with a
// trace of the search:
//
//   solve_contest SECONDS THREADS SEED FILE...
#include <shardprop/io/contest.h>
#include <shardprop/report/procedure_text.h>
#include <shardprop/solver/solve.h>

#include <fmt/format.h>

#include <cstdlib>
#include <string>

namespace {

using shardprop::solver::Int128;

std::string text(const std::optional<Int128>& value) {
  return value.has_value() ? shardprop::solver::to_string(*value) : "-";
}

int solve_file(const std::string& path, double seconds, int threads,
               std::uint64_t seed) {
  shardprop::solver::SolveOptions options;
  options.time_limit_seconds = seconds;
  options.threads = threads;
  options.seed = seed;
  const auto contest =
      shardprop::io::read_contest(path, std::uint64_t{1} << 31);
  if (!contest.has_value()) {
    fmt::print(stderr, "{}", shardprop::to_string(contest.error()));
    return 3;
  }
  double shown = 0;
  options.progress = [&](const shardprop::solver::Progress& p) {
    if (p.seconds < shown) return;
    shown = std::max(p.seconds * 1.25, p.seconds + 0.5);
    fmt::print("  {:8.2f} s  cost {}  bound {}\n", p.seconds, text(p.cost),
               text(p.lower_bound));
  };
  const auto solution = shardprop::solver::solve(contest->problem, options);
  fmt::print("{} {}: cost {} bound {} gap {:.4f} % in {:.2f} s, work {:.3g}\n",
             contest->name, to_string(solution.status), text(solution.cost),
             text(solution.lower_bound), 100 * solution.gap().value_or(1),
             solution.seconds, static_cast<double>(solution.work));
  fmt::print("{}", shardprop::procedures_to_text(solution.procedures,
                                                 shardprop::CostUnit::kNone));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    fmt::print(stderr, "usage: solve_contest SECONDS THREADS SEED FILE...\n");
    return 2;
  }
  int status = 0;
  for (int i = 4; i < argc; ++i) {
    status |= solve_file(argv[i], std::atof(argv[1]), std::atoi(argv[2]),
                         static_cast<std::uint64_t>(std::atoll(argv[3])));
  }
  return status;
}
