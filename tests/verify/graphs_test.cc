// The example graphs, sharded every which way, against themselves unsharded.

#include "plan/explain/assemble_plan.h"
#include "plan/random_plans.h"
#include "verify/verified.h"

#include <array>
#include <cstdlib>
#include <span>

namespace shardprop {
namespace {

using namespace testing;

// `Counts` counts the tested cases, so that an empty test fails.
struct Counts {
  std::int64_t runs = 0;
  std::int64_t nodes = 0;
  std::int64_t compared = 0;
  std::int64_t wrong = 0;
  std::int64_t inside = 0;
  std::int64_t views = 0;
  std::int64_t formulas = 0;
  std::int64_t strided = 0;
  std::int64_t uneven = 0;
  std::int64_t draws = 0;
  std::int64_t infeasible = 0;  // no plan within the memory given
  std::array<std::int64_t, std::size(kAllCollectiveKinds)> kinds{};
};

void count(const SpmdProgram& program, const VerifyReport& report,
           Counts& counts) {
  ++counts.runs;
  counts.nodes += report.nodes;
  counts.compared += report.compared;
  counts.wrong += report.ok ? 0 : 1;
  for (std::size_t k = 0; k < counts.kinds.size(); ++k) {
    counts.kinds[k] += report.counted[k];
  }
  for (const ProgramStep& step : program.steps) {
    if (const auto* op = std::get_if<ProgramOp>(&step.action)) {
      counts.views += step.copy ? 1 : 0;
      counts.draws += op->op == "shardprop.random_bits" ? 1 : 0;
      for (const auto& [name, value] : op->args) {
        counts.formulas +=
            std::holds_alternative<RankInt>(value) ||
                    std::holds_alternative<std::vector<RankInt>>(value)
                ? 1
                : 0;
      }
    } else if (const auto* moved =
                   std::get_if<ProgramCollective>(&step.action)) {
      counts.inside += program.value(moved->output).is_local() ? 1 : 0;
    }
  }
  for (const ProgramValue& value : program.values) {
    if (value.is_local()) continue;
    for (int d = 0; d < value.layout.mesh_ndim(); ++d) {
      counts.strided += value.layout[d].is_strided() ? 1 : 0;
    }
    counts.uneven +=
        is_even(value.layout, program.mesh, value.meta.shape()) ? 0 : 1;
  }
}

void check(const Graph& graph, const Plan& plan, const Expected& expected,
           Counts& counts) {
  CAPTURE(graph.name());
  CAPTURE(to_string(plan.mesh));
  if (!plan.has_plan()) {
    ++counts.infeasible;
    return;
  }
  const SpmdProgram program = value_of(lower(plan, graph, *shared_library()));
  const VerifyReport report = value_of(verify(program, expected));
  if (report.mismatch) {
    const VerifyMismatch& found = *report.mismatch;
    FAIL_CHECK("node " << found.node << " " << found.op << " " << found.strategy
                       << " rank " << found.rank << " value " << found.value
                       << found.element << ": " << found.expected << " "
                       << found.found << " " << found.error);
  }
  for (const VerifiedCollective& one : report.collectives) {
    CAPTURE(one.value);
    CAPTURE(to_string(one.kind));
    CHECK(one.counted_bytes == one.planned_bytes);
  }
  CHECK(report.findings.empty());
  CHECK(report.counted_bytes == plan.summary.bytes_per_rank);
  CHECK(report.counted == plan.summary.collectives);
  CHECK(report.peak_bytes <= plan.memory.unfused_peak_bytes);
  count(program, report, counts);
}

void check_random(const Graph& graph, const char* mesh, int plans,
                  const Expected& expected, Counts& counts) {
  const PlanProblem problem = value_of(
      PlanProblem::create(graph, value_of(DeviceMesh::parse(mesh)),
                          dear_compute(), *shared_library(), quick_options()));
  RandomPlans random(problem, 7);
  for (int i = 0; i < plans; ++i) {
    check(graph, assemble_plan(problem, random.next()), expected, counts);
  }
}

void print(const Counts& counts) {
  std::string kinds;
  for (const CollectiveKind kind : kAllCollectiveKinds) {
    kinds += " " + std::string(to_string(kind)) + " " +
             std::to_string(counts.kinds[static_cast<std::size_t>(kind)]);
  }
  MESSAGE(counts.runs << " runs, " << counts.nodes << " nodes, "
                      << counts.compared << " values compared, " << counts.wrong
                      << " wrong;" << kinds << "; inside " << counts.inside
                      << ", views of copies " << counts.views << ", formulas "
                      << counts.formulas << ", strided " << counts.strided
                      << ", uneven " << counts.uneven << ", draws "
                      << counts.draws << ", without a plan "
                      << counts.infeasible);
}

bool full() { return std::getenv("SHARDPROP_FULL") != nullptr; }

const char* const kAll[] = {
    "block_composite",    "gpt2_train",   "gpt2_train_cuda",   "llama3_infer",
    "llama3_infer_cuda",  "llama3_train", "llama3_train_cuda", "mixtral_infer",
    "mixtral_infer_cuda", "mlp_dynamic",  "resnet_train",      "t5_train",
    "t5_train_cuda",      "vit_infer",    "vit_infer_cuda"};
const char* const kFew[] = {"block_composite", "mlp_dynamic",
                            "llama3_train",    "gpt2_train",
                            "gpt2_train_cuda", "resnet_train"};

TEST_CASE("programs of the ranks compute what the graphs compute") {
  Counts counts;
  const std::span<const char* const> graphs =
      full() ? std::span<const char* const>(kAll)
             : std::span<const char* const>(kFew);
  for (const char* name : graphs) {
    const Graph graph = tiny_graph(name);
    for (const char* mesh : {"2,2", "4", "2,2,2", "3"}) {
      if (!full() && std::string(mesh) == "2,2,2") continue;
      const Plan plan = planned(graph, mesh);
      const Expected expected = expected_of(graph, plan);
      check(graph, plan, expected, counts);
      if (!full()) continue;
      PlanOptions tight = quick_options();
      tight.memory_limit = plan.memory.peak_bytes * 9 / 10;
      check(graph, planned(graph, mesh, tight), expected, counts);
      check_random(graph, mesh, 20, expected, counts);
      MESSAGE(std::string(name) << " on " << std::string(mesh) << ", so far:");
      print(counts);
    }
  }
  print(counts);
  CHECK(counts.wrong == 0);
  CHECK(counts.nodes > 1000);
  CHECK(counts.inside > 0);
  CHECK(counts.views > 0);
  CHECK(counts.formulas > 100);
  CHECK(counts.uneven > 0);
  CHECK(counts.draws > 0);
  if (!full()) return;
  CHECK(counts.nodes > 100'000);
  CHECK(counts.strided > 100);
  // Neither a broadcast nor a send to one rank is part of a plan on one mesh.
  for (const CollectiveKind kind :
       {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
        CollectiveKind::kAllReduce, CollectiveKind::kAllToAll,
        CollectiveKind::kSlice, CollectiveKind::kPermute}) {
    CAPTURE(to_string(kind));
    CHECK(counts.kinds[static_cast<std::size_t>(kind)] > 100);
  }
}

TEST_CASE("plans that nobody would choose compute the same") {
  Counts counts;
  for (const char* name : {"mlp_dynamic", "gpt2_train"}) {
    const Graph graph = tiny_graph(name);
    for (const char* mesh : {"2,2", "3"}) {
      const Expected expected = expected_of(graph, planned(graph, mesh));
      check_random(graph, mesh, 4, expected, counts);
    }
  }
  print(counts);
  CHECK(counts.wrong == 0);
  CHECK(counts.runs == 16);
  CHECK(counts.strided > 0);
}

TEST_CASE("the optimizer's step is part of what is compared") {
  const Graph graph = tiny_graph("llama3_train");
  PlanOptions options = quick_options();
  options.optimizer = Optimizer::kAdamW;
  const Plan plan = planned(graph, "2,2", options);
  Counts counts;
  check(graph, plan, expected_of(graph, plan), counts);
  CHECK(counts.wrong == 0);
}

}  // namespace
}  // namespace shardprop
