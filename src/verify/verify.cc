#include <shardprop/verify/verify.h>

#include "base/guard.h"
#include "base/index.h"
#include "base/try.h"

#include <shardprop/collective/thread_world.h>
#include <shardprop/lower/lower.h>

#include <algorithm>
#include <utility>

namespace shardprop {
namespace {

std::size_t at(CollectiveKind kind) { return static_cast<std::size_t>(kind); }

// Reports a collective that differs from its prediction.
void note_prediction(const VerifiedCollective& one, bool ran,
                     VerifyReport& report) {
  const std::string kind(to_string(one.kind));
  if (!ran) {
    report.findings.push_back("the " + kind + " that makes `" + one.value +
                              "` did not run as one");
  } else if (one.counted_bytes != one.planned_bytes) {
    report.findings.push_back("the " + kind + " that makes `" + one.value +
                              "` sends " + std::to_string(one.counted_bytes) +
                              " bytes where the plan says " +
                              std::to_string(one.planned_bytes));
  }
}

void add_traffic(const SpmdProgram& program,
                 const std::vector<RankFindings>& ranks, VerifyReport& report) {
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    const ProgramStep& step = program.steps[s];
    const auto* moved = std::get_if<ProgramCollective>(&step.action);
    if (moved == nullptr) continue;
    VerifiedCollective one;
    one.value = program.value(moved->output).name;
    if (step.node < program.nodes.size())
      one.node = program.nodes[step.node].name;
    one.kind = moved->step.kind;
    one.planned_bytes = moved->step.bytes_per_rank;
    std::int64_t calls = 0;
    for (const RankFindings& rank : ranks) {
      one.counted_bytes =
          std::max(one.counted_bytes, rank.step_payload_bytes[s]);
      calls = std::max(calls, rank.step_calls[s]);
    }
    const bool ran = (calls > 0) != (one.kind == CollectiveKind::kSlice);
    ++report.planned[at(one.kind)];
    report.counted[at(one.kind)] += ran ? 1 : 0;
    note_prediction(one, ran, report);
    report.planned_bytes += one.planned_bytes;
    report.counted_bytes += one.counted_bytes;
    report.collectives.push_back(std::move(one));
  }
}

void add_first_mismatch(const std::vector<RankFindings>& ranks,
                        VerifyReport& report) {
  const RankFindings* first = nullptr;
  for (const RankFindings& rank : ranks) {
    if (!rank.mismatch) continue;
    if (first == nullptr || rank.mismatch_step < first->mismatch_step) {
      first = &rank;
    }
  }
  if (first != nullptr) report.mismatch = first->mismatch;
}

}  // namespace

VerifyReport verify_report(const SpmdProgram& program,
                           const std::vector<RankFindings>& ranks) {
  VerifyReport report;
  report.nodes = static_cast<std::int64_t>(program.nodes.size()) - 1;
  for (std::size_t o = 0; o < program.outputs.size(); ++o) {
    VerifiedOutput output;
    output.name = program.value(program.outputs[o].value).name;
    for (const RankFindings& rank : ranks) {
      output.max_error = std::max(output.max_error, rank.output_errors[o]);
    }
    report.outputs.push_back(std::move(output));
  }
  for (const RankFindings& rank : ranks) {
    report.compared += rank.compared;
    report.peak_bytes = std::max(report.peak_bytes, rank.peak_bytes);
  }
  add_traffic(program, ranks, report);
  add_first_mismatch(ranks, report);
  if (report.mismatch) report.findings.clear();
  report.ok = !report.mismatch && report.findings.empty();
  return report;
}

VerifyReport verify_report(const SpmdProgram& program,
                           const std::vector<RankFindings>& ranks,
                           const Plan& plan) {
  VerifyReport report = verify_report(program, ranks);
  report.planned_peak_bytes = plan.memory.unfused_peak_bytes;
  if (!report.mismatch && report.peak_bytes > report.planned_peak_bytes) {
    report.findings.push_back("a rank holds " +
                              std::to_string(report.peak_bytes) +
                              " bytes where the plan says at most " +
                              std::to_string(report.planned_peak_bytes));
  }
  report.ok = !report.mismatch && report.findings.empty();
  return report;
}

Optimizer optimizer_of(const Plan& plan) {
  if (plan.updates.empty()) return Optimizer::kNone;
  const std::string& op = plan.updates.front().op;
  return parse_optimizer(op.substr(op.find('.') + 1))
      .value_or(Optimizer::kNone);
}

namespace {

Result<std::vector<RankFindings>> on_threads(const SpmdProgram& program,
                                             const Expected& expected) {
  std::vector<RankFindings> findings(
      static_cast<std::size_t>(program.mesh.size()));
  const auto ends = run_ranks(
      program.mesh.size(), {}, [&](Communicator& rank) -> Result<void> {
        findings[index(rank.rank())] = verify_rank(program, expected, rank);
        return {};
      });
  for (const Result<void>& end : ends) {
    if (!end) return fail(end.error());
  }
  for (const RankFindings& found : findings) {
    if (found.refused) return fail(*found.refused);
  }
  return findings;
}

Result<VerifyReport> run_and_compare(const SpmdProgram& program,
                                     const Expected& expected) {
  SP_ASSIGN(const auto findings, on_threads(program, expected));
  return verify_report(program, findings);
}

Result<VerifyReport> lower_and_compare(const Plan& plan, const Graph& graph,
                                       std::shared_ptr<const OpLibrary> library,
                                       const VerifyOptions& options) {
  SP_ASSIGN(const SpmdProgram program, lower(plan, graph, *library));
  SP_ASSIGN(
      const Expected expected,
      Expected::create(graph, std::move(library), optimizer_of(plan), options));
  SP_ASSIGN(const auto findings, on_threads(program, expected));
  return verify_report(program, findings, plan);
}

}  // namespace

Result<VerifyReport> verify(const SpmdProgram& program,
                            const Expected& expected) {
  return guarded([&] { return run_and_compare(program, expected); });
}

Result<VerifyReport> verify(const Plan& plan, const Graph& graph,
                            std::shared_ptr<const OpLibrary> library,
                            const VerifyOptions& options) {
  return guarded([&] {
    return lower_and_compare(plan, graph, std::move(library), options);
  });
}

}  // namespace shardprop
