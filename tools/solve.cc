#include "cli/interruption.h"
#include "commands.h"

#include "base/budget.h"
#include "base/try.h"

#include <shardprop/io/contest.h>
#include <shardprop/report/procedure_text.h>
#include <shardprop/solver/solve.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace shardprop::cli {
namespace {

using solver::Int128;
using solver::Solution;

std::string digits_or(const std::optional<Int128>& value, const char* none) {
  return value.has_value() ? solver::to_string(*value) : none;
}

void print_json(const Solution& solution, Console& console) {
  std::string assignment = "null";
  if (solution.cost.has_value()) {
    assignment = fmt::format("[{}]", fmt::join(solution.assignment, ","));
  }
  // The JSON is written by hand, since costs may need more digits than JSON
  // libraries keep.
  console.data << fmt::format(
      "{{\"schema\": \"shardprop.solution/1\", \"status\": \"{}\", "
      "\"cost\": {}, \"lower_bound\": {}, \"gap\": {}, "
      "\"solve_seconds\": {:.3f}, \"assignment\": {}}}\n",
      solver::to_string(solution.status), digits_or(solution.cost, "null"),
      digits_or(solution.lower_bound, "null"),
      solution.gap().has_value() ? fmt::format("{}", *solution.gap()) : "null",
      solution.seconds, assignment);
}

void print_conflict(const solver::Conflict& conflict, Console& console) {
  if (!conflict.irreducible) {
    console.data << fmt::format(
        "the search ended before it knew which of these cannot hold together: "
        "{} nodes, {} edges, {} usage limits\n",
        conflict.variables.size(), conflict.edges.size(),
        conflict.memory.size());
    return;
  }
  console.data << "these cannot hold together, and none can be left out:\n";
  for (const solver::VariableId v : conflict.variables) {
    console.data << fmt::format("  the forbidden choices of node {}\n",
                                v.index());
  }
  for (const solver::EdgeId e : conflict.edges) {
    console.data << fmt::format("  the forbidden pairs of edge {}\n",
                                e.index());
  }
  for (const solver::Conflict::MemoryStep& step : conflict.memory) {
    console.data << fmt::format("  the usage limit at time {}", step.time);
    if (step.bytes_short > 0) {
      console.data << fmt::format(": {} short",
                                  solver::to_string(step.bytes_short));
    }
    console.data << '\n';
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
  if (solution.conflict.has_value())
    print_conflict(*solution.conflict, console);
  console.data << procedures_to_text(solution.procedures, CostUnit::kNone);
}

Result<int> run_solve(const Arguments& arguments, Console& console) {
  solver::SolveOptions options;
  options.start = arguments.begun();
  // A work limit alone is meant to give the same answer on every machine.
  if (arguments.has("--work-limit")) options.time_limit_seconds = 1e12;
  SP_CHECK(
      arguments.apply(solver::solve_option_table(), [&](auto name, auto text) {
        return solver::set_option(options, name, text);
      }));
  SP_ASSIGN(const auto max_input, arguments.bytes("--max-input"));
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
  SP_ASSIGN(
      const io::ContestProblem contest,
      io::read_contest(
          arguments.get("PROBLEM"), static_cast<std::uint64_t>(*max_input),
          Budget({options.time_limit_seconds}, {}, options.start).deadline()));
  const auto interruption = std::make_shared<const Interruption>();
  console.until_written = interruption;
  options.stop = interruption->token();
  const Solution solution = solver::solve(contest.problem, options);
  if (console.progress) console.messages << '\n';
  if (solution.failure && !solution.cost) return fail(*solution.failure);
  if (solution.failure) {
    console.messages << "warning: the search ended early: "
                     << solution.failure->message << '\n';
  }
  if (interruption->came()) {
    console.messages << "interrupted: this is the best so far\n";
  }
  if (arguments.get("--format") == "json") {
    print_json(solution, console);
  } else {
    print_text(solution, console);
  }
  return solution.cost.has_value() ? kDone : kFinding;
}

}  // namespace

Command solve_command() {
  std::vector<Option> options = {{.name = "PROBLEM",
                                  .help = "the problem, .json or .json.gz",
                                  .required = true,
                                  .input = input_value}};
  for (const OptionInfo& info : solver::solve_option_table()) {
    Option option = option_row(info);
    if (info.name == "threads") {
      option.fallback =
          std::to_string(std::max(1U, std::thread::hardware_concurrency()));
    }
    // Without a time limit, a work limit is the only limit.
    if (info.name == "time_limit") {
      option.help += "; " + option.fallback + " without --work-limit";
      option.fallback.clear();
    }
    options.push_back(std::move(option));
  }
  options.push_back({.name = "--max-input",
                     .value = "BYTES",
                     .help = "refuse larger problems",
                     .fallback = "2GiB"});
  options.push_back(format_option());
  options.push_back(output_option());
  return {
      .name = "solve",
      .summary = "solve a plan problem in the ASPLOS 2025 contest format",
      .example = "shardprop solve problem.json.gz --time-limit 10 --threads 2",
      .options = std::move(options),
      .run = run_solve};
}

}  // namespace shardprop::cli
