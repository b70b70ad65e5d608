// Programs of plans that overlap transfers with compute: they compute the same
// values, and a read of a transfer in flight is found.
#include "verify/verified.h"

#include <algorithm>
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
      CHECK(waits(program) > 5);
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
  SpmdProgram program = value_of(lower(plan, graph, *shared_library()));
  const auto first = std::find_if(
      program.steps.begin(), program.steps.end(), [](const ProgramStep& step) {
        return std::holds_alternative<ProgramWait>(step.action);
      });
  REQUIRE(first != program.steps.end());
  program.steps.erase(first);
  const VerifyReport report = value_of(verify(program, expected));
  CHECK_FALSE(report.ok);
  REQUIRE(report.mismatch);
  CAPTURE(report.mismatch->error);
  CHECK(report.mismatch->error.find("before the program waits") !=
        std::string::npos);
}

}  // namespace
}  // namespace shardprop
