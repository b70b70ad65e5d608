// Tests the dtypes and bytes of the steps of copies: a plan lists for each step
// what its program sends. Gradients in mixed precision are reduced in f32, and
// moved in their own dtype otherwise.
#include "plan/explain/assemble_plan.h"
#include "plan/random_plans.h"
#include "support/dear_topology.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/io/load_graph.h>
#include <shardprop/lower/lower.h>
#include <shardprop/plan/plan_options.h>
#include <shardprop/program/footprint.h>

#include <string>

namespace shardprop {
namespace {

using testing::dear_compute;
using testing::standard_library;
using testing::value_of;

// `StepCounts` counts the tested steps, so that an empty test fails.
struct StepCounts {
  std::size_t reduced_in_f32 = 0;
  std::size_t moved_after = 0;  // steps that follow such a reduction
};

// Returns a step of a copy, with the bytes of all copies of its bucket.
CollectiveStep step_of(const Plan& plan, std::size_t copy, std::size_t step) {
  CollectiveStep sum = plan.copies[copy].steps[step];
  for (std::size_t c = 0; c < plan.copies.size(); ++c) {
    if (c == copy || plan.copies[c].bucket != copy) continue;
    sum.message_bytes += plan.copies[c].steps[step].message_bytes;
    sum.bytes_per_rank += plan.copies[c].steps[step].bytes_per_rank;
  }
  return sum;
}

void check_steps(const Plan& plan, const Graph& graph, StepCounts& counts) {
  const SpmdProgram program = value_of(lower(plan, graph, standard_library()));
  const ProgramTraffic sent = traffic(program);
  CHECK(sent.collectives == plan.summary.collectives);
  CHECK(sent.bytes_per_rank == plan.summary.bytes_per_rank);
  std::vector<std::size_t> next(plan.copies.size(), 0);
  for (const ProgramStep& step : program.steps) {
    const auto* moved = std::get_if<ProgramCollective>(&step.action);
    if (moved == nullptr || !step.copy) continue;
    const auto& steps = plan.copies[*step.copy].steps;
    const std::size_t at = next[*step.copy]++;
    CAPTURE(*step.copy);
    CAPTURE(at);
    REQUIRE(at < steps.size());
    const CollectiveStep planned = step_of(plan, *step.copy, at);
    CHECK(planned.kind == moved->step.kind);
    CHECK(planned.dtype == moved->step.dtype);
    CHECK(planned.message_bytes == moved->step.message_bytes);
    CHECK(planned.bytes_per_rank == moved->step.bytes_per_rank);
    const DType own =
        program.value(program.copies[*step.copy].value).meta.dtype();
    if (planned.reduce_op) {
      counts.reduced_in_f32 += planned.dtype != own ? 1 : 0;
      continue;
    }
    CHECK(planned.dtype == own);
    counts.moved_after +=
        at > 0 && steps[at - 1].reduce_op && steps[at - 1].dtype != own ? 1 : 0;
  }
}

TEST_CASE("a plan lists the dtype and the bytes that its program sends") {
  StepCounts counts;
  for (const std::string name :
       {"llama3_train_cuda", "gpt2_train_cuda", "t5_train_cuda"}) {
    const Graph graph = value_of(load_graph(
        "examples/graphs/tiny/" + name + ".json.gz", standard_library()));
    for (const Fusion fusion : {Fusion::kNone, Fusion::kCompiler}) {
      for (const char* mesh : {"2,2", "3"}) {
        CAPTURE(name);
        CAPTURE(to_string(fusion));
        CAPTURE(mesh);
        PlanOptions options;
        options.optimizer = Optimizer::kAdamW;
        options.precision = Precision::kMixed;
        options.fusion = fusion;
        options.work_limit = 20'000'000;
        const PlanProblem problem = value_of(
            PlanProblem::create(graph, value_of(DeviceMesh::parse(mesh)),
                                dear_compute(), standard_library(), options));
        check_steps(assemble_plan(problem, solve_plan(problem)), graph, counts);
        testing::RandomPlans random(problem, 11);
        for (int i = 0; i < 2; ++i) {
          check_steps(assemble_plan(problem, random.next()), graph, counts);
        }
      }
    }
  }
  MESSAGE("reductions in f32 " << counts.reduced_in_f32 << ", steps after one "
                               << counts.moved_after);
  CHECK(counts.reduced_in_f32 > 50);
  CHECK(counts.moved_after > 0);
}

}  // namespace
}  // namespace shardprop
