// Programs of plans that overlap transfers with compute: they compute the same
// values, and a read of a transfer in flight is found.
#include "verify/verified.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <variant>

namespace shardprop {
namespace {

using namespace testing;

Plan overlapped_plan(const Graph& graph, const char* mesh, const char* recipe,
                     Optimizer optimizer) {
  PlanOptions options = quick_options();
  options.overlap = 1;
  options.optimizer = optimizer;
  options.precision = Precision::kOwn;
  options.recipe = value_of(Recipe::parse(recipe));
  return planned(graph, mesh, options);
}

std::size_t waits(const SpmdProgram& program) {
  return static_cast<std::size_t>(std::count_if(
      program.steps.begin(), program.steps.end(), [](const ProgramStep& step) {
        return std::holds_alternative<ProgramWait>(step.action);
      }));
}

TEST_CASE("programs with transfers in flight compute the unsharded values") {
  struct Case {
    const char* graph;
    const char* mesh;
    const char* recipe;
  };
  for (const Case& one :
       {Case{"llama3_train", "dp=2,tp=2", "fsdp=dp,megatron=tp"},
        Case{"gpt2_train", "pod=2,dp=2", "hsdp=pod:dp"}}) {
    CAPTURE(one.graph);
    const Graph graph = tiny_graph(one.graph);
    for (const Optimizer optimizer : {Optimizer::kNone, Optimizer::kAdamW}) {
      const Plan plan = overlapped_plan(graph, one.mesh, one.recipe, optimizer);
      const SpmdProgram program =
          value_of(lower(plan, graph, *shared_library()));
      // A copy in flight has a wait, and the copies of a bucket share one.
      std::set<std::size_t> transfers;
      std::size_t in_flight = 0;
      for (std::size_t c = 0; c < plan.copies.size(); ++c) {
        if (!plan.copies[c].in_flight) continue;
        ++in_flight;
        transfers.insert(plan.copies[c].bucket.value_or(c));
      }
      CHECK(in_flight > 10);
      CHECK(transfers.size() > 5);
      CHECK(waits(program) == transfers.size());
      const VerifyReport report =
          value_of(verify(plan, graph, shared_library(), {}));
      for (const std::string& finding : report.findings) FAIL_CHECK(finding);
      CHECK(report.ok);
    }
  }
}

TEST_CASE("a value that is read before its wait is found") {
  const Graph graph = tiny_graph("gpt2_train");
  const Plan plan = overlapped_plan(graph, "dp=2", "fsdp=dp", Optimizer::kNone);
  const Expected expected = expected_of(graph, plan);
  const SpmdProgram program = value_of(lower(plan, graph, *shared_library()));
  const auto error_of = [&](const SpmdProgram& wrong) {
    const VerifyReport report = value_of(verify(wrong, expected));
    CHECK_FALSE(report.ok);
    return report.mismatch ? report.mismatch->error : std::string();
  };
  int waited = 0;
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const auto* wait = std::get_if<ProgramWait>(&program.steps[i].action);
    if (wait == nullptr) continue;
    const auto has_name = [&](const std::string& error, const char* after) {
      return std::any_of(
          wait->values.begin(), wait->values.end(), [&](ProgramValueId value) {
            return error.find("`" + program.value(value).name + after) !=
                   std::string::npos;
          });
    };
    SpmdProgram wrong = program;
    wrong.steps.erase(wrong.steps.begin() + static_cast<std::ptrdiff_t>(i));
    CHECK(error_of(wrong).find("before the program waits") !=
          std::string::npos);
    // Without the frees of what the transfer reads, its result is the first
    // fault.
    std::erase_if(wrong.steps, [](const ProgramStep& step) {
      return std::holds_alternative<ProgramFree>(step.action);
    });
    const std::string error = error_of(wrong);
    CAPTURE(error);
    CHECK(has_name(error, "` is read before the program waits"));
    ++waited;
  }
  CHECK(waited > 2);
}

}  // namespace
}  // namespace shardprop
