// Programs of the example graphs run on threads by a virtual clock: operators and
// collectives take their planned times. A step must take the time of the plan.
#include "verify/verified.h"

#include <shardprop/collective/thread_world.h>
#include <shardprop/execute/program_run.h>
#include <shardprop/lower/program_prices.h>
#include <shardprop/program/rank_program.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace shardprop {
namespace {

using namespace testing;

Result<LocalTensor> zeros(const Dims& sizes, DType dtype) {
  Result<LocalTensor> out = LocalTensor::empty(sizes, dtype);
  if (out && out->numel() > 0) {
    std::memset(out->data(), 0,
                static_cast<std::size_t>(out->numel() * item_size(dtype)));
  }
  return out;
}

// Results of operators are zeros, because values do not matter to a clock.
Result<std::vector<LocalTensor>> without_arithmetic(
    const OpSchema& op, std::span<const LocalTensor> /*inputs*/) {
  std::vector<LocalTensor> out;
  for (const TensorMeta& meta : op.outputs) {
    out.push_back(value_of(zeros(meta.shape(), meta.dtype())));
  }
  return out;
}

// Returns the time at which the last rank ends.
std::int64_t virtual_time(const SpmdProgram& program,
                          const ProgramPrices& prices) {
  ProgramRunOptions options;
  options.library = shared_library();
  options.evaluate = without_arithmetic;
  options.prices = &prices;
  std::vector<std::int64_t> ended(static_cast<std::size_t>(program.mesh.size()),
                                  -1);
  const auto ends = run_ranks(
      program.mesh.size(), {}, [&](Communicator& rank) -> Result<void> {
        const Coordinate at = program.mesh.coordinate_of(rank.rank()).value();
        std::vector<LocalTensor> inputs;
        for (const ProgramInput& input : program.inputs) {
          inputs.push_back(
              value_of(zeros(local_shape(program, input.value, at),
                             program.value(input.value).meta.dtype())));
        }
        ProgramRunReport report;
        const auto outputs = run(program, rank, inputs, options, &report);
        if (!outputs) return fail(outputs.error());
        ended[static_cast<std::size_t>(rank.rank())] =
            report.virtual_nanoseconds;
        return {};
      });
  for (const Result<void>& end : ends) {
    if (!end) FAIL(to_string(end.error()));
  }
  return *std::max_element(ended.begin(), ended.end());
}

// Returns the time of all nodes, collectives and kernel boundaries.
std::int64_t serial_time(const SpmdProgram& program,
                         const ProgramPrices& prices) {
  std::int64_t sum = 0;
  for (const std::int64_t node : prices.nodes) sum += node;
  for (const std::int64_t boundary : prices.copies) sum += boundary;
  for (const ProgramStep& step : program.steps) {
    const auto* moved = std::get_if<ProgramCollective>(&step.action);
    if (moved != nullptr) sum += moved->step.nanoseconds;
  }
  return sum;
}

struct Clocked {
  const char* graph;
  const char* mesh;
  const char* recipe;  // empty: a free plan
};

const Clocked kClocked[] = {
    {"llama3_train", "dp=2,tp=2", "fsdp=dp,megatron=tp"},
    {"llama3_train", "2,2", ""},
    {"gpt2_train", "pod=2,dp=2", "hsdp=pod:dp"},
    {"gpt2_train", "3", ""},
    {"t5_train", "dp=2", "fsdp=dp"},
    {"resnet_train", "dp=4", "fsdp=dp"},
    {"deepseek_moe_train", "dp=2", "fsdp=dp"},
    {"mixtral_infer", "2,2", ""},
    {"vit_infer", "4", ""},
    {"block_composite", "2,2", ""},
};

Plan plan_of(const Graph& graph, const Clocked& one, double overlap,
             Optimizer optimizer) {
  PlanOptions options = quick_options();
  options.overlap = overlap;
  options.optimizer = optimizer;
  if (optimizer != Optimizer::kNone) options.precision = Precision::kOwn;
  if (*one.recipe != '\0') {
    options.recipe = value_of(Recipe::parse(one.recipe));
  }
  return planned(graph, one.mesh, options);
}

TEST_CASE("steps take the planned time on the virtual clock") {
  std::size_t hidden = 0;
  for (const Clocked& one : kClocked) {
    CAPTURE(one.graph);
    CAPTURE(one.mesh);
    const Graph graph = tiny_graph(one.graph);
    for (const double overlap : {0.0, 0.5, 1.0}) {
      CAPTURE(overlap);
      const Plan plan = plan_of(graph, one, overlap, Optimizer::kNone);
      REQUIRE(plan.has_plan());
      const SpmdProgram program =
          value_of(lower(plan, graph, *shared_library()));
      const ProgramPrices prices = program_prices(plan);
      const std::int64_t time = virtual_time(program, prices);
      const auto planned = static_cast<double>(*plan.objective_nanoseconds);
      CHECK(static_cast<double>(time) <= 1.01 * planned);
      CHECK(static_cast<double>(time) >= 0.99 * planned);
      const std::int64_t serial = serial_time(program, prices);
      CHECK(time <= serial);
      if (overlap == 0) CHECK(time == serial);
      hidden += time < serial ? 1 : 0;
    }
  }
  CHECK(hidden >= 6);
}

// The plan lets gathers after an update overlap with the next step, and a program
// of one step waits for them.
TEST_CASE(
    "steps with an optimizer take the planned time and the last gathers") {
  for (const Clocked& one : kClocked) {
    const Graph graph = tiny_graph(one.graph);
    if (std::string(one.graph).find("train") == std::string::npos) continue;
    CAPTURE(one.graph);
    CAPTURE(one.mesh);
    const Plan plan = plan_of(graph, one, 1, Optimizer::kAdamW);
    REQUIRE(plan.has_plan());
    std::int64_t next_step = 0;
    for (const PlannedCopy& copy : plan.copies) {
      if (!copy.in_flight) next_step += copy.overlapped_nanoseconds;
    }
    const SpmdProgram program = value_of(lower(plan, graph, *shared_library()));
    const ProgramPrices prices = program_prices(plan);
    const std::int64_t time = virtual_time(program, prices);
    CHECK(time >= *plan.objective_nanoseconds);
    CHECK(time <= *plan.objective_nanoseconds + next_step);
  }
}

}  // namespace
}  // namespace shardprop
