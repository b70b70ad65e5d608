// Tests lowered programs of the example graphs: the program must show the
// figures that the plan predicts.
#include "plan/explain/assemble_plan.h"
#include "plan/evaluate/plan_assignment.h"
#include "plan/random_plans.h"
#include "support/dear_topology.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/io/load_graph.h>
#include <shardprop/lower/lower.h>
#include <shardprop/plan/make_plan.h>
#include <shardprop/program/footprint.h>
#include <shardprop/program/rank_program.h>

#include <cstdlib>
#include <random>
#include <set>
#include <string>

namespace shardprop {
namespace {

using testing::dear_compute;
using testing::standard_library;
using testing::value_of;

PlanOptions without_step() {
  PlanOptions options;
  options.optimizer = Optimizer::kNone;
  return options;
}

struct Case {
  std::string graph;
  std::string mesh;
  Topology topology;
  PlanOptions options = without_step();
};

// `Counts` counts the tested cases, so that an empty test fails.
struct Counts {
  std::size_t programs = 0;
  std::size_t nodes = 0;
  std::size_t held_as_planned = 0;
  std::size_t moves = 0;
  std::size_t inside = 0;
  std::size_t views = 0;
  std::size_t formulas = 0;
  std::size_t draws = 0;
  std::size_t updates = 0;
  std::set<CollectiveKind> kinds;
};

// Every value is made before it is taken, once, and is there.
void check_order(const SpmdProgram& program) {
  std::vector<int> state(program.values.size(), 0);  // 1 made, 2 freed
  const auto take = [&](ProgramValueId id) {
    if (!id.valid()) return;
    CAPTURE(program.value(id).name);
    CHECK(state[id.index()] == 1);
  };
  const auto make = [&](ProgramValueId id) {
    if (!id.valid()) return;
    CAPTURE(program.value(id).name);
    CHECK(state[id.index()] == 0);
    state[id.index()] = 1;
  };
  for (const ProgramInput& input : program.inputs) make(input.value);
  for (const ProgramStep& step : program.steps) {
    if (const auto* op = std::get_if<ProgramOp>(&step.action)) {
      const RankOp call =
          rank_op(program, *op, program.mesh.coordinate_at_index(0));
      for (const ProgramValueId id : call.tensors) take(id);
      for (const ProgramValueId id : op->outputs) make(id);
    } else if (const auto* moved =
                   std::get_if<ProgramCollective>(&step.action)) {
      take(moved->input);
      make(moved->output);
    } else if (const auto* freed = std::get_if<ProgramFree>(&step.action)) {
      for (const ProgramValueId id : freed->values) {
        take(id);
        state[id.index()] = 2;
      }
    }
  }
  for (const ProgramOutput& output : program.outputs) take(output.value);
  // The values that remain at the end are inputs or outputs of the program.
  std::set<ProgramValueId> stays;
  for (const ProgramInput& input : program.inputs) stays.insert(input.value);
  for (const ProgramOutput& output : program.outputs) {
    stays.insert(output.value);
  }
  for (std::size_t v = 0; v < state.size(); ++v) {
    if (state[v] != 1) continue;
    CAPTURE(program.values[v].name);
    CHECK(stays.contains(ProgramValueId(v)));
  }
}

void count(const SpmdProgram& program, Counts& counts) {
  ++counts.programs;
  for (const ProgramStep& step : program.steps) {
    if (const auto* op = std::get_if<ProgramOp>(&step.action)) {
      if (step.copy) ++counts.views;
      if (op->op == "shardprop.random_bits") ++counts.draws;
      for (const auto& [name, value] : op->args) {
        const auto* one = std::get_if<RankInt>(&value);
        const auto* list = std::get_if<std::vector<RankInt>>(&value);
        counts.formulas += one != nullptr || list != nullptr ? 1 : 0;
      }
    } else if (const auto* moved =
                   std::get_if<ProgramCollective>(&step.action)) {
      counts.kinds.insert(moved->step.kind);
      ++(moved->step.src.mesh_ndim() > 0 ? counts.moves : counts.inside);
    }
  }
  for (const ProgramNode& node : program.nodes) {
    counts.updates += node.op.starts_with("optimizer.") ? 1 : 0;
  }
}

Graph tiny_graph(const std::string& name) {
  return value_of(load_graph("examples/graphs/tiny/" + name + ".json.gz",
                             standard_library()));
}

void check_solution(const PlanProblem& problem, const PlanSolution& solution,
                    Counts& counts) {
  const OpLibrary& library = standard_library();
  const Graph& graph = problem.graph();
  const Plan plan = assemble_plan(problem, solution);
  const Result<SpmdProgram> lowered = lower(plan, graph, library);
  if (!lowered) FAIL_CHECK(to_string(lowered.error()));
  if (!lowered) return;
  check_order(*lowered);
  const ProgramTraffic sent = traffic(*lowered);
  CHECK(sent.collectives == plan.summary.collectives);
  CHECK(sent.bytes_per_rank == plan.summary.bytes_per_rank);
  const std::vector<std::int64_t> held = live_bytes(*lowered);
  const std::vector<std::int64_t> planned =
      bytes_by_slot(problem, *solution.assignment, KernelMemory::kUnfused);
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    CAPTURE(graph.nodes()[n].name);
    CHECK(held[n] <= planned[n]);
    ++counts.nodes;
    counts.held_as_planned += held[n] == planned[n] ? 1 : 0;
  }
  count(*lowered, counts);
}

void check_case(const Case& given, Counts& counts) {
  CAPTURE(given.graph);
  CAPTURE(given.mesh);
  const Graph graph = tiny_graph(given.graph);
  const PlanProblem problem = value_of(
      PlanProblem::create(graph, value_of(DeviceMesh::parse(given.mesh)),
                          given.topology, standard_library(), given.options));
  const PlanSolution solution = solve_plan(problem);
  if (!solution.assignment) return;
  check_solution(problem, solution, counts);
}

// Checks random plans. Some of them cache only copies of the sources of their
// views.
void check_random(const std::string& name, const char* mesh, Counts& counts) {
  const Graph graph = tiny_graph(name);
  const PlanProblem problem =
      value_of(PlanProblem::create(graph, value_of(DeviceMesh::parse(mesh)),
                                   dear_compute(), standard_library(), {}));
  testing::RandomPlans random(problem, 7);
  for (int i = 0; i < 6; ++i) check_solution(problem, random.next(), counts);
}

const char* const kGraphs[] = {
    "llama3_train",  "gpt2_train",       "t5_train",    "resnet_train",
    "vit_infer",     "llama3_infer",     "mlp_dynamic", "block_composite",
    "mixtral_infer", "llama3_train_cuda"};

TEST_CASE("programs of the example graphs send and hold what was planned") {
  Counts counts;
  const bool full = std::getenv("SHARDPROP_FULL") != nullptr;
  for (const char* graph : kGraphs) {
    for (const char* mesh : {"2,2", "3", "4", "2,2,2"}) {
      if (!full && std::string(mesh) != "2,2" && std::string(mesh) != "3") {
        continue;
      }
      Case one{graph, mesh, dear_compute(), without_step()};
      one.options.work_limit = 20'000'000;
      check_case(one, counts);
      if (!full && std::string(mesh) == "3") continue;
      one.options.optimizer = Optimizer::kAdamW;
      // Programs train each parameter in its own dtype.
      one.options.precision = Precision::kOwn;
      check_case(one, counts);
    }
  }
  Case mixed{"llama3_train_cuda", "2,2", dear_compute(), without_step()};
  mixed.options.optimizer = Optimizer::kAdamW;
  mixed.options.precision = Precision::kMixed;
  mixed.options.work_limit = 20'000'000;
  Counts of_random;
  for (const char* mesh : {"2,2", "3"}) {
    check_random("gpt2_train", mesh, of_random);
  }
  CHECK(of_random.programs == 12);
  Counts of_mixed;
  check_case(mixed, of_mixed);
  CHECK(of_mixed.updates > 0);
  MESSAGE("programs " << counts.programs << ", nodes " << counts.nodes
                      << ", holding what was planned to the byte "
                      << counts.held_as_planned << ", redistribution steps "
                      << counts.moves << ", collectives inside "
                      << counts.inside << ", views of copies " << counts.views
                      << ", formulas " << counts.formulas << ", draws "
                      << counts.draws << ", updates " << counts.updates);
  // The plan may count a value longer than anything takes it.
  CHECK(counts.held_as_planned * 100 > counts.nodes * 97);
  CHECK(counts.moves > 100);
  CHECK(counts.inside > 0);
  CHECK(counts.views > 20);
  CHECK(counts.formulas > 100);
  CHECK(counts.draws > 0);
  CHECK(counts.updates > 0);
  CHECK(counts.kinds.size() >= 5);
}

}  // namespace
}  // namespace shardprop
