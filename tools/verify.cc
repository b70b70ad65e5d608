// verify: runs a plan, or given programs of ranks, on simulated ranks and
// compares them with the unsharded program.

#include "base/printable.h"
#include "base/quantities.h"
#include "base/try.h"
#include "cli/graph_plan.h"
#include "cli/plan_options.h"
#include "cli/rank_programs.h"
#include "commands.h"
#include "io/json_text.h"

#include <shardprop/lower/lower.h>
#include <shardprop/plan/judge_plan.h>
#include <shardprop/program/rank_programs.h>
#include <shardprop/verify/verify.h>
#ifdef SHARDPROP_WITH_MPI
#include <shardprop/mpi/mpi_world.h>
#endif

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace shardprop::cli {
namespace {

void write_mismatch(JsonText& json, const VerifyMismatch& found) {
  json.open('{').member("node", found.node).member("op", found.op);
  json.member("strategy", found.strategy).member("rank", found.rank);
  if (!found.error.empty()) {
    json.member("error", found.error);
  } else {
    json.member("value", found.value).member("element", found.element);
    json.member("expected", found.expected).member("found", found.found);
  }
  json.close('}');
}

// `status` says why no program ran; it is empty if one ran.
std::string report_json(const VerifyReport& report, bool trace,
                        std::string_view status = {}) {
  JsonText json(JsonText::Form::kIndented);
  json.open('{').member("schema", "shardprop.verify/1");
  json.member("ok", report.ok).member("nodes", report.nodes);
  json.member("values_compared", report.compared);
  json.key("outputs").list(report.outputs, [&](const VerifiedOutput& output) {
    json.open('{').member("name", output.name);
    json.member("max_error", output.max_error).close('}');
  });
  json.key("collectives").open('{');
  for (const CollectiveKind kind : kAllCollectiveKinds) {
    json.member(to_string(kind),
                report.counted[static_cast<std::size_t>(kind)]);
  }
  json.close('}').member("bytes_per_rank", report.counted_bytes);
  json.member("planned_bytes_per_rank", report.planned_bytes);
  json.member("peak_bytes_per_rank", report.peak_bytes);
  json.member("planned_peak_bytes_per_rank", report.planned_peak_bytes);
  if (report.mismatch) {
    json.key("mismatch");
    write_mismatch(json, *report.mismatch);
  }
  json.member("findings", report.findings);
  if (trace) {
    json.key("trace").list(
        report.collectives, [&](const VerifiedCollective& one) {
          json.open('{').member("value", one.value).member("node", one.node);
          json.member("collective", to_string(one.kind));
          json.member("bytes_per_rank", one.counted_bytes);
          json.member("planned_bytes_per_rank", one.planned_bytes).close('}');
        });
  }
  if (!status.empty()) json.member("status", status);
  return json.close('}').take();
}

std::string mismatch_text(const VerifyMismatch& found) {
  std::string out = fmt::format("first difference at `{}`", found.node);
  if (!found.op.empty()) {
    out += fmt::format("   {}   {}", printable(found.op), found.strategy);
  }
  if (!found.error.empty()) {
    return out +
           fmt::format("\n  rank {}: {}\n", found.rank, printable(found.error));
  }
  return out + fmt::format(
                   "\n  rank {}: `{}` {} is {} unsharded and comes out as {}\n",
                   found.rank, printable(found.value), found.element,
                   found.expected, found.found);
}

void print_report(const VerifyReport& report, bool trace, Console& console) {
  double most = 0;
  for (const VerifiedOutput& output : report.outputs) {
    most = std::max(most, output.max_error);
  }
  if (report.mismatch) {
    console.data << mismatch_text(*report.mismatch);
  } else {
    console.data << fmt::format(
        "{} {}: {} compared on the ranks, {}, largest difference {:.1e}\n",
        counted(report.nodes, "node"), report.nodes == 1 ? "agrees" : "agree",
        counted(report.compared, "value"),
        counted(report.outputs.size(), "output"), most);
  }
  console.data << "collectives that ran:";
  for (const CollectiveKind kind : kAllCollectiveKinds) {
    const std::int64_t count = report.counted[static_cast<std::size_t>(kind)];
    if (count > 0)
      console.data << fmt::format("  {} {}", to_string(kind), count);
  }
  console.data << fmt::format(
      "\n{} bytes sent by the busiest ranks, {} planned; at most {} bytes "
      "held, {} planned\n",
      report.counted_bytes, report.planned_bytes, report.peak_bytes,
      report.planned_peak_bytes);
  for (const std::string& finding : report.findings) {
    console.data << "not as planned: " << printable(finding) << '\n';
  }
  if (!trace) return;
  for (const VerifiedCollective& one : report.collectives) {
    console.data << fmt::format("  {:<15} {:>12} of {:>12} bytes  {}\n",
                                to_string(one.kind), one.counted_bytes,
                                one.planned_bytes, printable(one.value));
  }
}

Result<void> check_ranks(const DeviceMesh& mesh, const std::string& location) {
  return placed(check_simulated(mesh), location);
}

// Checks the mesh before the graph is read, if --mesh is given.
Result<void> check_given_mesh(const Arguments& arguments) {
  if (!arguments.has("--mesh")) return {};
  SP_ASSIGN(const DeviceMesh mesh, mesh_option(arguments));
  return check_ranks(mesh, "--mesh " + to_string(mesh));
}

int report_no_plan(const Plan& plan, const Arguments& arguments,
                   Console& console) {
  const std::string_view status = solver::to_string(plan.status);
  if (arguments.get("--format") == "json") {
    const VerifyReport nothing{.ok = false};
    console.data << report_json(nothing, arguments.has("--trace"), status)
                 << '\n';
  } else {
    console.data << fmt::format("no plan to verify: {}\n", status);
  }
  return kFinding;
}

// A saved plan may hold more than the limit that it was made for.
// Operators run one by one here and hold values that stay inside kernels, so the
// peak of the plan is computed again if they hold too much.
Result<void> check_limit(const GraphPlan& given, VerifyReport& report) {
  SP_ASSIGN(const PlanOptions options, options_of(given.plan));
  std::int64_t held = given.plan.memory.peak_bytes;
  if (options.memory_limit && held <= *options.memory_limit &&
      report.peak_bytes > *options.memory_limit) {
    SP_ASSIGN(const JudgedPlan judged,
              judge_plan(given.plan, *given.graph, *given.library));
    held = judged.plan.memory.peak_bytes;
  }
  if (!options.memory_limit || held <= *options.memory_limit) return {};
  report.ok = false;
  report.findings.push_back(
      fmt::format("{} bytes are held on a rank, and the plan's own limit is {}",
                  held, *options.memory_limit));
  return {};
}

Result<int> run_verify(const Arguments& arguments, Console& console) {
  const bool on_threads = arguments.get("--backend") != "mpi";
  if (on_threads) SP_CHECK(check_given_mesh(arguments));
  VerifyOptions options;
  options.own_dtypes = arguments.get("--dtype") == "own";
  SP_ASSIGN(const auto seed, arguments.integer("--seed", 0, INT64_MAX));
  options.seed = static_cast<std::uint64_t>(seed.value_or(0));
  SP_ASSIGN(options.tolerance, arguments.number("--tolerance", 0, 1e9));
  if (arguments.has("--rank-programs")) {
    return verify_folder(arguments, options, console);
  }
  SP_ASSIGN(const GraphPlan given,
            graph_plan(arguments, console, {.saved = SavedPlan::kAsWritten}));
  for (const UnsupportedOp& op : given.plan.unsupported) {
    console.messages << fmt::format(
        "warning: `{}` runs replicated ({} of them)\n", printable(op.op),
        op.count);
  }
  if (!given.plan.has_plan()) {
    return report_no_plan(given.plan, arguments, console);
  }
  VerifyReport report;
  if (!on_threads) {
#ifdef SHARDPROP_WITH_MPI
    SP_ASSIGN(const std::unique_ptr<Communicator> world, mpi_communicator());
    SP_ASSIGN(auto ours, verify_on(*world, given.plan, *given.graph,
                                   given.library, options));
    if (!ours) return kDone;  // another rank prints the report
    report = *std::move(ours);
#else
    return fail(ErrorCode::kEngineMissing, "this build has no MPI",
                "leave out --backend, or build where MPI is found");
#endif
  } else {
    SP_CHECK(check_ranks(given.plan.mesh, "--plan " + arguments.get("--plan")));
    SP_ASSIGN(report, placed_at_least(verify(given.plan, *given.graph,
                                             given.library, options),
                                      arguments.get("GRAPH")));
  }
  SP_CHECK(check_limit(given, report));
  const bool trace = arguments.has("--trace");
  if (arguments.get("--format") == "json") {
    console.data << report_json(report, trace) << '\n';
  } else {
    print_report(report, trace, console);
  }
  return report.ok ? kDone : kFinding;
}

}  // namespace

Command verify_command() {
  std::vector<Option> options = graph_plan_options();
  options.push_back({.name = "--backend",
                     .value = "ENGINE",
                     .help = "ranks are threads, or processes under mpirun",
                     .fallback = "local",
                     .choices = {"local", "mpi"}});
  options.push_back({.name = "--dtype",
                     .value = "HOW",
                     .help = "floats run in f64, or in their own dtypes",
                     .fallback = "f64",
                     .choices = {"f64", "own"}});
  options.push_back({.name = "--tolerance",
                     .value = "X",
                     .help = "the largest relative difference; default by "
                             "dtype"});
  options.push_back({.name = "--rank-programs",
                     .value = "DIR",
                     .help = "verify the program of each rank in this folder "
                             "instead of a plan: rank0.pt2 ... or program.pt2, "
                             "and shardings.json",
                     .input = input_value});
  options.push_back({.name = "--trace",
                     .help = "every collective that ran, beside the plan's"});
  options.push_back(format_option());
  options.push_back(output_option());
  return {.name = "verify",
          .summary =
              "run a plan, or your programs, on simulated ranks and "
              "compare every value",
          .example = "shardprop verify model.pt2 --mesh dp=2,tp=2 --trace",
          .options = std::move(options),
          .run = run_verify};
}

}  // namespace shardprop::cli
