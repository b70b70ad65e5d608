// Runs of programs with an overlapped collective: its output is delivered by the
// wait, and no step may touch its operands before.
#include "execute/negating.h"
#include "program/overlapped_program.h"
#include "support/result_checks.h"

#include <shardprop/collective/thread_world.h>
#include <shardprop/execute/program_run.h>

#include <doctest/doctest.h>

#include <utility>
#include <vector>

namespace shardprop {
namespace {

using namespace testing;

LocalTensor counting(std::int64_t size, float first) {
  LocalTensor x = value_of(LocalTensor::empty({size}, DType::kF32));
  for (std::int64_t i = 0; i < size; ++i) {
    x.data_as<float>()[i] = first + static_cast<float>(i);
  }
  return x;
}

// Returns the time of the last step on each of both ranks. `y` takes this time on
// ranks 0 and 1, and `z` takes 10 ns.
std::vector<std::int64_t> clocked(const SpmdProgram& program, std::int64_t y_0,
                                  std::int64_t y_1, ProgramPrices prices = {}) {
  std::vector<std::int64_t> out(2);
  const auto ends = run_ranks(2, {}, [&](Communicator& rank) -> Result<void> {
    const auto at = static_cast<std::size_t>(rank.rank());
    ProgramPrices own = prices;
    own.nodes = {at == 0 ? y_0 : y_1, 10, 0};
    ProgramRunOptions options = negating();
    options.prices = &own;
    const std::vector<LocalTensor> inputs = {counting(4, 1), counting(2, 1)};
    ProgramRunReport report;
    const auto outputs = run(program, rank, inputs, options, &report);
    if (!outputs) return fail(outputs.error());
    out[at] = report.virtual_nanoseconds;
    // The exchange of times does not count as traffic of the program.
    CHECK(report.step_calls[kStart] == 1);
    return {};
  });
  for (const Result<void>& end : ends) REQUIRE(end);
  return out;
}

using Times = std::vector<std::int64_t>;

TEST_CASE(
    "the virtual clock hides a transfer behind the compute until its wait") {
  const SpmdProgram program = overlapped_program();
  CHECK(clocked(program, 20, 20) == Times{30 + 10, 30 + 10});
  CHECK(clocked(program, 50, 50) == Times{50 + 10, 50 + 10});
  // Half of the transfer stops the compute.
  CHECK(clocked(program, 20, 20, {.overlappable = {15}}) == Times{45, 45});
  CHECK(clocked(program, 20, 20, {.copies = {7}}) == Times{47, 47});
  // A slow rank does not delay a transfer that it has started.
  CHECK(clocked(program, 20, 50) == Times{40, 60});
}

TEST_CASE("ranks of the virtual clock wait for each other in collectives") {
  SpmdProgram program = overlapped_program();
  // y is computed before the gather, which runs in line.
  program.steps[kStart].is_overlapped = false;
  program.steps[kStart].node = 1;
  program.steps.erase(program.steps.begin() + kWait);
  CHECK(clocked(program, 20, 50) == Times{90, 90});
}

// Returns the results of rank 0. x is 1, 2, 3, 4 and w is 10, 11, 12, 13.
Result<std::vector<LocalTensor>> run_overlapped(const SpmdProgram& program) {
  std::vector<Result<std::vector<LocalTensor>>> outputs(2);
  const auto ends = run_ranks(2, {}, [&](Communicator& rank) -> Result<void> {
    const auto at = static_cast<std::size_t>(rank.rank());
    const std::vector<LocalTensor> inputs = {
        counting(4, 1), counting(2, 10 + 2 * static_cast<float>(at))};
    outputs[at] = run(program, rank, inputs, negating());
    return {};
  });
  for (const Result<void>& end : ends) REQUIRE(end);
  return outputs[0];
}

void check_refused(const SpmdProgram& program, const char* text) {
  const auto refused = run_overlapped(program);
  CHECK_CODE(refused, ErrorCode::kProgramValue);
  CAPTURE(refused.error().message);
  CHECK(refused.error().message.find(text) != std::string::npos);
}

TEST_CASE("a wait delivers the output of an overlapped collective") {
  const auto outputs = value_of(run_overlapped(overlapped_program()));
  CHECK(outputs[0].data_as<float>()[3] == -4);
  CHECK(outputs[1].data_as<float>()[0] == -10);
  CHECK(outputs[1].data_as<float>()[3] == -13);
}

TEST_CASE("steps that touch a transfer in flight are refused") {
  SpmdProgram program = overlapped_program();
  std::vector<ProgramStep>& steps = program.steps;
  SUBCASE("its output is read before the wait") {
    std::swap(steps[kWait], steps[kRead]);
    check_refused(program, "`w.0` is read before the program waits");
  }
  SUBCASE("its output is freed before the wait") {
    std::swap(steps[kCompute].action, steps[kFree].action);
    check_refused(program, "`w.0` is freed before the program waits");
  }
  SUBCASE("its input is freed before the wait") {
    steps.insert(steps.begin() + kCompute,
                 {ProgramFree{{program.inputs[1].value}}, 0, {}});
    check_refused(program, "`w` is freed before the program waits");
  }
  SUBCASE("its input is overwritten before the wait") {
    ProgramValue& y = program.values[3];
    y.overwrites = program.inputs[1].value;
    y.buffer = program.inputs[1].value;
    check_refused(program, "`y` is written before the program waits");
  }
  SUBCASE("the program does not wait") {
    steps.erase(steps.begin() + kWait, steps.end());
    program.outputs.pop_back();
    check_refused(program, "the program ends before it waits");
  }
  SUBCASE("the program waits twice") {
    steps.insert(steps.begin() + kWait, steps[kWait]);
    check_refused(program, "`w.0`, which is not in flight");
  }
}

TEST_CASE("an overlapped collective may read a value in flight") {
  SpmdProgram program = overlapped_program();
  // w.1 is w.0 sharded again, and z reads w.0 after both are complete.
  const ProgramValueId again(program.values.size());
  program.values.push_back(program.values[1]);
  program.values.back().name = "w.1";
  program.values.back().buffer = again;
  ProgramCollective slice =
      std::get<ProgramCollective>(program.steps[kStart].action);
  std::swap(slice.step.src, slice.step.dst);
  slice.step.kind = CollectiveKind::kSlice;
  slice.input = slice.output;
  slice.output = again;
  program.copies.push_back({"w", again, 0, 1});
  std::get<ProgramWait>(program.steps[kWait].action).values.push_back(again);
  program.outputs.push_back({OutputKind::kUser, again, {}});
  SUBCASE("overlapped") {
    program.steps.insert(program.steps.begin() + kCompute, {slice, 0, 1, true});
    const auto outputs = value_of(run_overlapped(program));
    CHECK(outputs[2].data_as<float>()[1] == 11);
  }
  SUBCASE("in line") {
    program.steps.insert(program.steps.begin() + kCompute, {slice, 0, 1});
    check_refused(program, "`w.0` is read before the program waits");
  }
}

}  // namespace
}  // namespace shardprop
