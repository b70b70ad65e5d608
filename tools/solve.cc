#include "commands.h"

#include "base/try.h"

#include <shardprop/io/contest.h>
#include <shardprop/solver/solve.h>

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>

namespace shardprop::cli {
namespace {

using solver::Int128;
using solver::Solution;

// Ctrl-C asks for the best so far; a second one ends the program.
std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);

extern "C" void on_interrupt(int signal) {
  interrupted.store(true, std::memory_order_relaxed);
  std::signal(signal, SIG_DFL);
}

std::string digits_or(const std::optional<Int128>& value, const char* none) {
  return value.has_value() ? solver::to_string(*value) : none;
}

void print_json(const Solution& solution, Console& console) {
  std::string assignment = "null";
  if (solution.cost.has_value()) {
    assignment = fmt::format("[{}]", fmt::join(solution.assignment, ","));
  }
  // Written out, since costs may need more digits than JSON libraries keep.
  console.data << fmt::format(
      "{{\"schema\": \"shardprop.solution/1\", \"status\": \"{}\", "
      "\"cost\": {}, \"lower_bound\": {}, \"gap\": {}, "
      "\"solve_seconds\": {:.3f}, \"assignment\": {}}}\n",
      solver::to_string(solution.status), digits_or(solution.cost, "null"),
      digits_or(solution.lower_bound, "null"),
      solution.gap().has_value() ? fmt::format("{}", *solution.gap()) : "null",
      solution.seconds, assignment);
}

void print_clash(const solver::Clash& clash, Console& console) {
  console.data << (clash.irreducible
                       ? "these cannot hold together, and none can be left "
                         "out:\n"
                       : "these cannot hold together (time ran out before "
                         "every one was tried):\n");
  for (const solver::VariableId v : clash.variables) {
    console.data << fmt::format("  the forbidden choices of node {}\n",
                                v.index());
  }
  for (const solver::EdgeId e : clash.edges) {
    console.data << fmt::format("  the forbidden pairs of edge {}\n",
                                e.index());
  }
  for (const solver::Clash::MemoryStep& step : clash.memory) {
    console.data << fmt::format("  the usage limit at time {}: {} short\n",
                                step.time, solver::to_string(step.bytes_short));
  }
}

void print_text(const Solution& solution, Console& console) {
  console.data << fmt::format("{} in {:.2f} s: cost {}, lower bound {}",
                              to_string(solution.status), solution.seconds,
                              digits_or(solution.cost, "none"),
                              digits_or(solution.lower_bound, "none"));
  if (const auto gap = solution.gap(); gap.has_value()) {
    console.data << fmt::format(", gap {:.4f} %", 100 * *gap);
  }
  console.data << '\n';
  if (solution.clash.has_value()) print_clash(*solution.clash, console);
  for (const solver::PassStats& pass : solution.passes) {
    console.data << fmt::format("  {:<18} {:>7} runs {:>9.3f} s\n",
                                pass_name(pass.pass), pass.runs, pass.seconds);
  }
}

Result<int> run_solve(const Arguments& arguments, Console& console) {
  solver::SolveOptions options;
  options.start = std::chrono::steady_clock::now();
  SP_ASSIGN(const auto seconds, arguments.number("--time-limit", 0, 1e9));
  SP_ASSIGN(const auto work,
            arguments.integer("--work-limit", 1, std::int64_t{1} << 62));
  SP_ASSIGN(const auto threads, arguments.integer("--threads", 1, 1024));
  SP_ASSIGN(const auto seed,
            arguments.integer("--seed", 0, std::int64_t{1} << 62));
  SP_ASSIGN(const auto max_input, arguments.bytes("--max-input"));
  options.work_limit = static_cast<std::uint64_t>(work.value_or(0));
  // A work limit alone is meant to give the same answer on every machine.
  const bool timed = !work.has_value() || arguments.has("--time-limit");
  options.time_limit_seconds = timed ? seconds.value_or(60) : 1e12;
  options.threads = static_cast<int>(threads.value_or(1));
  options.seed = static_cast<std::uint64_t>(seed.value_or(0));
  options.cancelled = &interrupted;
  if (console.progress) {
    options.progress = [&console,
                        next = 0.0](const solver::Progress& now) mutable {
      if (now.seconds < next) return;
      next = now.seconds + 0.25;
      console.messages << fmt::format("\r{:8.1f} s  cost {}  bound {}    ",
                                      now.seconds, digits_or(now.cost, "-"),
                                      digits_or(now.lower_bound, "-"))
                       << std::flush;
    };
  }
  SP_ASSIGN(const io::ContestProblem contest,
            io::read_contest(arguments.get("PROBLEM"),
                             static_cast<std::uint64_t>(*max_input)));
  interrupted = false;
  const auto before = std::signal(SIGINT, on_interrupt);
  const Solution solution = solver::solve(contest.problem, options);
  std::signal(SIGINT, before);
  if (console.progress) console.messages << '\n';
  if (arguments.get("--format") == "json") {
    print_json(solution, console);
  } else {
    print_text(solution, console);
  }
  return solution.cost.has_value() ? kDone : kFinding;
}

}  // namespace

Command solve_command() {
  const std::string cores =
      std::to_string(std::max(1U, std::thread::hardware_concurrency()));
  return {
      .name = "solve",
      .summary = "Solve a plan problem in the ASPLOS 2025 contest format",
      .example = "shardprop solve problem.json.gz --time-limit 10 --threads 2",
      .options = {{.name = "PROBLEM",
                   .help = "the problem, .json or .json.gz",
                   .required = true},
                  {.name = "--time-limit",
                   .value = "S",
                   .help =
                       "seconds, reading included; 60 without --work-limit"},
                  {.name = "--work-limit",
                   .value = "N",
                   .help =
                       "table entries to touch; the same answer every time"},
                  {.name = "--threads",
                   .value = "N",
                   .help = "threads to search with",
                   .fallback = cores},
                  {.name = "--seed",
                   .value = "N",
                   .help = "of the search",
                   .fallback = "0"},
                  {.name = "--max-input",
                   .value = "BYTES",
                   .help = "refuse larger problems",
                   .fallback = "2GiB"},
                  format_option(),
                  output_option()},
      .run = run_solve};
}

}  // namespace shardprop::cli
