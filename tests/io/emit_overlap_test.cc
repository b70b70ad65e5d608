// Emitted programs start transfers early and wait for them late.
#include "io/emit/rank_emitter.h"
#include "plan/layered_training.h"
#include "program/overlapped_program.h"
#include "support/dear_topology.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/lower/lower.h>
#include <shardprop/plan/make_plan.h>

#include <doctest/doctest.h>

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace shardprop {
namespace {

using testing::standard_library;
using testing::value_of;

// Returns the names of the calls: "neg wait_tensor". Calls that only make a
// tensor contiguous are left out.
std::string calls_of(const emit::TorchGraph& graph) {
  std::string out;
  for (const emit::TorchCall& call : graph.calls()) {
    const std::string& name = call.function->name();
    const std::size_t begin = name.find('.') + 1;
    if (name == "aten.contiguous.default") continue;
    out += (out.empty() ? "" : " ") +
           name.substr(begin, name.find('.', begin) - begin);
  }
  return out;
}

emit::TorchProgram emitted(const SpmdProgram& program) {
  return value_of(emit::RankEmitter(program, standard_library(),
                                    program.mesh.coordinate_at_index(0))
                      .run());
}

TEST_CASE("compute runs between the start of a transfer and its wait") {
  CHECK(calls_of(emitted(testing::overlapped_program()).graph) ==
        "all_gather_into_tensor neg wait_tensor neg");
}

TEST_CASE("the second transfer of a copy starts while other steps run") {
  // w.0 is gathered over tp and then reduced over dp, 30 and 10 us, next to
  // four steps.
  SpmdProgram program = testing::overlapped_program();
  const ProgramStep compute = program.steps[testing::kCompute];
  const auto& gather =
      std::get<ProgramCollective>(program.steps[testing::kStart].action);
  ProgramCollective second = gather;
  second.step.kind = CollectiveKind::kAllReduce;
  second.step.src = value_of(Layout::parse("P(sum)"));
  second.step.dst = value_of(Layout::parse("R"));
  second.step.reduce_op = ReduceOp::kSum;
  second.step.nanoseconds = 10;
  second.input = gather.output;
  second.output = ProgramValueId(program.values.size());
  program.values.push_back(program.values[gather.output.index()]);
  program.values.back().name = "w.1";
  const ProgramStep start{second, 0, 0, true};
  for (int i = 0; i < 3; ++i) {
    ProgramStep more = compute;
    auto& op = std::get<ProgramOp>(more.action);
    op.outputs[0] = ProgramValueId(program.values.size());
    program.values.push_back(program.values[3]);
    program.steps.insert(program.steps.begin() + testing::kWait, more);
  }
  program.steps.insert(program.steps.begin() + 1, start);
  for (ProgramStep& step : program.steps) {
    if (auto* wait = std::get_if<ProgramWait>(&step.action)) {
      wait->values.push_back(second.output);
    }
  }
  CHECK(calls_of(emitted(program).graph) ==
        "all_gather_into_tensor neg neg neg wait_tensor all_reduce neg "
        "wait_tensor neg");
}

TEST_CASE("emitted programs of a plan overlap what the plan overlaps") {
  PlanOptions options;
  options.optimizer = Optimizer::kNone;
  options.overlap = 1;
  options.pins = test::pins_of_batch(4);
  const Graph graph = test::layered_training(4);
  const Plan plan =
      value_of(make_plan(graph, value_of(DeviceMesh::parse("dp=2")),
                         testing::dear_compute(), standard_library(), options));
  std::size_t in_flight = 0;
  for (const PlannedCopy& copy : plan.copies) {
    if (!copy.in_flight) continue;
    std::int64_t compute = 0;
    for (auto n = copy.in_flight->issued_at; n < copy.in_flight->waited_at;
         ++n) {
      compute += plan.nodes[static_cast<std::size_t>(n)].compute_nanoseconds;
    }
    in_flight += compute > 0 ? 1 : 0;
  }
  REQUIRE(in_flight > 4);
  const emit::TorchProgram program =
      emitted(value_of(lower(plan, graph, standard_library())));
  std::map<std::size_t, std::size_t> started;  // by value: index of the call
  std::size_t overlapped = 0;
  const auto& calls = program.graph.calls();
  for (std::size_t c = 0; c < calls.size(); ++c) {
    const std::string& name = calls[c].function->name();
    if (name == "_c10d_functional.wait_tensor.default") {
      const auto id = std::get<emit::TorchId>(calls[c].args[0].second);
      overlapped += c > started.at(id.index()) + 1 ? 1 : 0;
    } else if (name.starts_with("_c10d_functional.")) {
      started[calls[c].outputs[0].index()] = c;
    }
  }
  CHECK(overlapped >= in_flight);
}

}  // namespace
}  // namespace shardprop
