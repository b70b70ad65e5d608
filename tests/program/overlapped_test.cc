// The text and the memory of a program with an overlapped collective are tested.
#include "program/overlapped_program.h"

#include <shardprop/program/footprint.h>
#include <shardprop/program/program_time.h>

#include <doctest/doctest.h>

#include <variant>

namespace shardprop {
namespace {

using namespace testing;

TEST_CASE("a program shows where transfers start and where it waits") {
  CHECK(to_string(overlapped_program()) ==
        "program of overlapped on tp=2\n"
        "input  x   f32[4] R  user_input\n"
        "input  w   f32[4] S(0)  parameter\n"
        "       w.0 f32[4] R  = start all_gather over tp (w)  8 B  copy 0\n"
        "       y   f32[4] R  = aten.neg.default(self=x)  node y\n"
        "wait   w.0\n"
        "       z   f32[4] R  = aten.neg.default(self=w.0)  node z\n"
        "free   w.0\n"
        "output y   f32[4] R  user\n"
        "output z   f32[4] R  user\n");
}

TEST_CASE("a transfer takes its memory until the program waits for it") {
  // x, w and w.0; then y, which is an output, and z.
  constexpr std::int64_t kInputs = 16 + 8;
  SpmdProgram program = overlapped_program();
  CHECK(live_bytes(program) == std::vector<std::int64_t>{kInputs + 16 + 16 + 24,
                                                         kInputs + 16 + 16 + 16,
                                                         kInputs + 16 + 16});
  SUBCASE("a later wait") {
    program.steps[kWait].node = 1;
    CHECK(live_bytes(program)[1] == kInputs + 16 + 16 + 16 + 24);
  }
  SUBCASE("in line") {
    program.steps[kStart].is_overlapped = false;
    program.steps.erase(program.steps.begin() + kWait);
    CHECK(live_bytes(program)[0] == kInputs + 16 + 16 + 24);
  }
  SUBCASE("next to a transfer in line") {
    ProgramStep second = program.steps[kStart];
    auto& gather = std::get<ProgramCollective>(second.action);
    gather.output = ProgramValueId(program.values.size());
    program.values.push_back(program.values[2]);
    program.values.back().buffer = gather.output;
    second.copy = 1;
    second.is_overlapped = false;
    program.copies.push_back({"w", gather.output, 0, 0});
    program.steps.insert(program.steps.begin() + kCompute, second);
    CHECK(live_bytes(program)[0] == kInputs + 16 + 16 + 16 + 24 + 24);
  }
}

TEST_CASE("a transfer takes time if the compute next to it is shorter") {
  // The gather takes 30 ns next to y, and z follows.
  const SpmdProgram program = overlapped_program();
  CHECK(program_time(program, {.nodes = {20, 10, 0}}) == 30 + 10);
  CHECK(program_time(program, {.nodes = {50, 10, 0}}) == 50 + 10);
  // The kernel boundary of the copy is in line, and so is what may not overlap.
  CHECK(program_time(program, {.nodes = {20, 10, 0}, .copies = {7}}) ==
        30 + 10 + 7);
  CHECK(program_time(program, {.nodes = {20, 10, 0}, .overlappable = {12}}) ==
        20 + 10 + 18);
}

TEST_CASE("a collective in line stops compute and transfers") {
  SpmdProgram program = overlapped_program();
  SUBCASE("alone") {
    program.steps[kStart].is_overlapped = false;
    program.steps.erase(program.steps.begin() + kWait);
    CHECK(program_time(program, {.nodes = {20, 10, 0}}) == 30 + 20 + 10);
  }
  SUBCASE("next to a transfer in flight") {
    ProgramStep second = program.steps[kStart];
    auto& gather = std::get<ProgramCollective>(second.action);
    gather.output = ProgramValueId(program.values.size());
    program.values.push_back(program.values[2]);
    second.is_overlapped = false;
    program.steps.insert(program.steps.begin() + kCompute, second);
    CHECK(program_time(program, {.nodes = {20, 10, 0}}) == 30 + 30 + 10);
  }
}

TEST_CASE("transfers in flight run one after another") {
  SpmdProgram program = overlapped_program();
  ProgramStep second = program.steps[kStart];
  auto& gather = std::get<ProgramCollective>(second.action);
  gather.output = ProgramValueId(program.values.size());
  program.values.push_back(program.values[2]);
  program.steps.insert(program.steps.begin() + kCompute, second);
  auto& wait = std::get<ProgramWait>(program.steps[kWait + 1].action);
  // The program waits for the first transfer, or for both.
  CHECK(program_time(program, {.nodes = {20, 10, 0}}) == 30 + 10);
  wait.values.push_back(gather.output);
  CHECK(program_time(program, {.nodes = {20, 10, 0}}) == 60 + 10);
}

TEST_CASE("the transfers of a copy are divided among micro-batches together") {
  SpmdProgram program = overlapped_program();
  ProgramStep second = program.steps[kStart];
  auto& gather = std::get<ProgramCollective>(second.action);
  gather.output = ProgramValueId(program.values.size());
  gather.step.nanoseconds = 11;
  program.values.push_back(program.values[2]);
  program.steps.insert(program.steps.begin() + kCompute, second);
  auto& first = std::get<ProgramCollective>(program.steps[kStart].action);
  first.step.nanoseconds = 10;
  // The copy takes 3 ns in each of seven micro-batches, next to 30 ns of y.
  const ProgramPrices prices{
      .nodes = {210, 70, 0}, .overlappable = {21}, .micro_batches = 7};
  CHECK(program_time(program, prices) == 280);
}

TEST_CASE("overlapped collectives are traffic") {
  const ProgramTraffic sent = traffic(overlapped_program());
  CHECK(sent.bytes_per_rank == 8);
}

}  // namespace
}  // namespace shardprop
