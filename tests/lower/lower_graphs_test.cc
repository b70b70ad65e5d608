// Tests lowered programs of the example graphs: the program must show the
// figures that the plan predicts.
#include "plan/evaluate/plan_assignment.h"
#include "plan/explain/assemble_plan.h"
#include "plan/layered_training.h"
#include "plan/random_plans.h"
#include "program/step_values.h"
#include "support/dear_topology.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/io/load_graph.h>
#include <shardprop/lower/lower.h>
#include <shardprop/lower/program_prices.h>
#include <shardprop/plan/make_plan.h>
#include <shardprop/program/footprint.h>
#include <shardprop/program/program_time.h>
#include <shardprop/program/rank_program.h>

#include <cstdlib>
#include <map>
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
  std::size_t overlapped = 0;  // collectives
  std::size_t timed = 0;       // programs whose time is the objective
  std::size_t computed = 0;    // steps between an issue and its wait
  std::set<CollectiveKind> kinds;
};

// Checks that every value is produced once and is read while it is complete.
// Only overlapped steps read values in flight, whose operands exist until the
// wait. Returns the number of steps that compute while a value is in flight.
std::size_t check_order(const SpmdProgram& program) {
  // 1 produced, 2 freed
  std::vector<int> state(program.values.size(), 0);
  std::map<ProgramValueId, const ProgramStep*> in_flight;
  std::size_t computed = 0;
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
    if (!step.is_overlapped) {
      for_each_taken(step, [&](ProgramValueId id) {
        CAPTURE(program.value(id).name);
        CHECK_FALSE(in_flight.contains(id));
      });
      const bool computes = std::holds_alternative<ProgramOp>(step.action);
      computed += computes && !in_flight.empty() ? 1 : 0;
    } else {
      for_each_made(step,
                    [&](ProgramValueId id) { in_flight.emplace(id, &step); });
    }
    if (const auto* op = std::get_if<ProgramOp>(&step.action)) {
      const RankOp call =
          rank_op(program, *op, program.mesh.coordinate_at_index(0));
      for (const ProgramValueId id : call.tensors) take(id);
      for (const ProgramValueId id : op->outputs) make(id);
    } else if (const auto* moved =
                   std::get_if<ProgramCollective>(&step.action)) {
      take(moved->input);
      make(moved->output);
    } else if (const auto* wait = std::get_if<ProgramWait>(&step.action)) {
      for (const ProgramValueId id : wait->values) {
        take(id);
        REQUIRE(in_flight.contains(id));
        for_each_taken(*in_flight.at(id), take);
        in_flight.erase(id);
      }
    } else if (const auto* freed = std::get_if<ProgramFree>(&step.action)) {
      for (const ProgramValueId id : freed->values) {
        take(id);
        CHECK_FALSE(in_flight.contains(id));
        state[id.index()] = 2;
      }
    }
  }
  CHECK(in_flight.empty());
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
  return computed;
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
      counts.overlapped += step.is_overlapped ? 1 : 0;
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

// Checks that the program takes the time of the plan. Gathers after an update
// are the exception: their price overlaps with the next step.
void check_time(const Plan& plan, const SpmdProgram& program, Counts& counts) {
  const std::int64_t time = program_time(program, program_prices(plan));
  std::int64_t next_step = 0;
  for (const PlannedCopy& copy : plan.copies) {
    if (!copy.in_flight) next_step += copy.overlapped_nanoseconds;
  }
  CHECK(*plan.objective_nanoseconds <= time);
  CHECK(time <= *plan.objective_nanoseconds + next_step);
  counts.timed += time == *plan.objective_nanoseconds ? 1 : 0;
}

void check_solution(const PlanProblem& problem, const PlanSolution& solution,
                    Counts& counts) {
  const OpLibrary& library = standard_library();
  const Graph& graph = problem.graph();
  const Plan plan = assemble_plan(problem, solution);
  const Result<SpmdProgram> lowered = lower(plan, graph, library);
  if (!lowered) FAIL_CHECK(to_string(lowered.error()));
  if (!lowered) return;
  counts.computed += check_order(*lowered);
  check_time(plan, *lowered, counts);
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

// Checks programs that gather parameters ahead and reduce gradients later.
void check_overlapped(const Graph& graph, const char* mesh, PlanOptions options,
                      Counts& counts) {
  CAPTURE(graph.name());
  CAPTURE(mesh);
  options.overlap = 1;
  options.work_limit = 20'000'000;
  const PlanProblem problem = value_of(
      PlanProblem::create(graph, value_of(DeviceMesh::parse(mesh)),
                          dear_compute(), standard_library(), options));
  const PlanSolution solution = solve_plan(problem);
  REQUIRE(solution.assignment);
  check_solution(problem, solution, counts);
}

// In random plans, views of gradients and chains of copies are in flight in every
// combination.
TEST_CASE("random plans with transfers in flight take the planned time") {
  Counts counts;
  for (const char* name : {"gpt2_train", "llama3_train"}) {
    const Graph graph = tiny_graph(name);
    for (const char* mesh : {"2,2", "3"}) {
      for (const double overlap : {1.0, 0.5}) {
        CAPTURE(name);
        CAPTURE(mesh);
        CAPTURE(overlap);
        PlanOptions options;
        options.overlap = overlap;
        // Without an optimizer, no gather overlaps with the next step.
        const bool has_step = std::string(mesh) == "3";
        if (!has_step) options.optimizer = Optimizer::kNone;
        const PlanProblem problem = value_of(
            PlanProblem::create(graph, value_of(DeviceMesh::parse(mesh)),
                                dear_compute(), standard_library(), options));
        testing::RandomPlans random(problem, 57);
        for (int i = 0; i < 3; ++i) {
          check_solution(problem, random.next(), counts);
        }
      }
    }
  }
  MESSAGE("programs " << counts.programs << ", that take the objective "
                      << counts.timed << ", overlapped collectives "
                      << counts.overlapped << ", computing steps "
                      << counts.computed);
  CHECK(counts.overlapped > 100);
  CHECK(counts.timed >= 12);
}

TEST_CASE("transfers that overlap are issued early and waited for late") {
  Counts counts;
  for (const char* name : {"llama3_train", "gpt2_train"}) {
    const Graph graph = tiny_graph(name);
    for (const std::string mesh : {"dp=2", "dp=2,tp=2"}) {
      PlanOptions options;
      options.recipe = value_of(
          Recipe::parse(mesh == "dp=2" ? "fsdp=dp" : "fsdp=dp,megatron=tp"));
      check_overlapped(graph, mesh.c_str(), options, counts);
      options.optimizer = Optimizer::kAdamW;
      options.precision = Precision::kOwn;
      check_overlapped(graph, mesh.c_str(), options, counts);
    }
    PlanOptions options;
    options.recipe = value_of(Recipe::parse("hsdp=pod:dp"));
    check_overlapped(graph, "pod=2,dp=2", options, counts);
    // Parameters are gathered after their update.
    options.optimizer = Optimizer::kAdamW;
    options.precision = Precision::kOwn;
    options.recipe = {};
    options.pins = {value_of(Pin::parse("used:*.weight=R"))};
    check_overlapped(graph, "dp=2", options, counts);
    options.pins = {};
    options.recipe = value_of(Recipe::parse("fsdp=dp"));
    for (const int accumulate : {4, 300}) {
      CAPTURE(accumulate);
      options.accumulate = accumulate;
      check_overlapped(graph, "dp=2", options, counts);
    }
  }
  PlanOptions options;
  options.pins = test::pins_of_batch(3);
  check_overlapped(test::layered_training(3), "2", options, counts);
  MESSAGE("programs " << counts.programs << ", that take the objective "
                      << counts.timed << ", overlapped collectives "
                      << counts.overlapped << ", computing steps "
                      << counts.computed);
  CHECK(counts.timed > 4);
  CHECK(counts.overlapped > 100);
  CHECK(counts.computed > 1000);
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
  CHECK(counts.timed == counts.programs);
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
