// Random redistributions between processes, under mpirun: every process draws
// the same cases and runs its rank's part of them, on MPI or, with --nccl, on
// GPUs over NCCL. `--nccl` is ours, the rest doctest's.
#define DOCTEST_CONFIG_IMPLEMENT
#include "execute/gpu_of_this_rank.h"
#include "execute/redistribution_case.h"
#include "execute/redistribution_jobs.h"
#include "support/property.h"

#include <doctest/doctest.h>
#include <shardprop/execute/executor.h>
#include <shardprop/mpi/mpi_world.h>
#include <shardprop/redistribute/cross_mesh.h>
#include <shardprop/redistribute/planner.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace shardprop {
namespace {

using testing::Draw;
using testing::Random;
using testing::RedistributionCase;
using testing::value_of;

// Processes find each other by MPI and compare their results by it. If the GPU
// is tested, tensors travel by NCCL.
std::unique_ptr<Communicator> the_world;
std::unique_ptr<Communicator> the_gpu;

Communicator& world() { return *the_world; }
Communicator& tested() { return the_gpu ? *the_gpu : *the_world; }

LocalTensor byte_view(std::vector<std::byte>& bytes) {
  return LocalTensor::wrap(
      bytes.data(), Dims{static_cast<std::int64_t>(bytes.size())}, DType::kU8);
}

// Returns the results of every rank of the target's mesh.
std::vector<std::vector<std::byte>> shared(const RedistributionCase& data,
                                           std::vector<std::byte> own) {
  const DeviceMesh& mesh = data.dst().mesh();
  std::vector<std::vector<std::byte>> all(
      static_cast<std::size_t>(world().size()));
  CollectiveCall call;
  call.kind = CollectiveKind::kAllGather;
  call.inputs = {byte_view(own)};
  for (std::int64_t rank = 0; rank < world().size(); ++rank) {
    auto& bytes = all[static_cast<std::size_t>(rank)];
    if (const auto at = mesh.coordinate_of(rank)) {
      bytes.resize(testing::held_elements(data.dst(), *at).size() *
                   static_cast<std::size_t>(item_size(data.dtype())));
    }
    call.outputs.push_back(byte_view(bytes));
  }
  const auto done =
      world().run(value_of(Group::world(world().size())), std::move(call));
  REQUIRE_MESSAGE(done.has_value(), to_string(done.error()));
  std::vector<std::vector<std::byte>> results;
  for (std::int64_t i = 0; i < mesh.size(); ++i) {
    results.push_back(
        std::move(all[static_cast<std::size_t>(mesh.rank_at_index(i))]));
  }
  return results;
}

// Runs the case on all processes and checks it on each.
template <class Plan>
void redistribute(const RedistributionCase& data, const Plan& plan,
                  std::int64_t planned_bytes, bool transposed) {
  INFO(data.text());
  const std::int64_t rank = world().rank();
  const bool has_source = data.src().mesh().contains(rank);
  const bool has_result = data.dst().mesh().contains(rank);
  std::vector<std::byte> own;
  std::vector<std::int64_t> counted(16);
  if (has_source || has_result) {
    const auto program = value_of(
        RedistributeProgram::create(plan, data.src(), data.dst(), rank));
    MemoryOps& memory = tested().memory_ops();
    const auto on_host = [&](const LocalTensor& tensor) {
      return value_of(testing::moved(memory, tensor, host_memory_ops()));
    };
    LocalTensor source;
    if (has_source) {
      source = value_of(
          testing::moved(memory, data.source(rank, transposed), memory));
    }
    RunReport report;
    const auto out = run(program, tested(), source, {}, &report);
    REQUIRE_MESSAGE(out.has_value(), to_string(out.error()));
    if (has_source) {
      const LocalTensor copy = data.source(rank, transposed);
      CHECK(testing::bytes_of(on_host(source)) == testing::bytes_of(copy));
    }
    if (has_result) {
      own = program.step_count() == 0
                ? testing::bytes_of(data.source(rank, false))
                : testing::bytes_of(on_host(*out));
    }
    REQUIRE(report.step_payload_bytes.size() <= counted.size());
    std::copy(report.step_payload_bytes.begin(),
              report.step_payload_bytes.end(), counted.begin());
  }
  const std::string wrong = data.check(shared(data, std::move(own)));
  REQUIRE_MESSAGE(wrong.empty(), wrong);

  const LocalTensor most =
      LocalTensor::wrap(counted.data(), Dims{16}, DType::kI64);
  CollectiveCall call;
  call.kind = CollectiveKind::kAllReduce;
  call.op = ReduceOp::kMax;
  call.inputs = {most};
  call.outputs = {most};
  const auto done =
      world().run(value_of(Group::world(world().size())), std::move(call));
  REQUIRE_MESSAGE(done.has_value(), to_string(done.error()));
  std::int64_t bytes = 0;
  for (const std::int64_t step : counted) bytes += step;
  REQUIRE(bytes == planned_bytes);
}

Topology topology() {
  return testing::small_nodes(the_gpu ? Engine::kNccl : Engine::kMpi);
}

TEST_CASE("random redistributions between processes") {
  Random random(testing::property_seed() +
                static_cast<std::uint64_t>(world().size()));
  std::map<std::string, RedistributePlanner> planners;
  const int cases = testing::scaled(100);
  for (int k = 0; k < cases; ++k) {
    const DeviceMesh mesh =
        testing::draw_mesh(Draw{.most_ranks = world().size()}, random);
    auto found = planners.find(to_string(mesh));
    if (found == planners.end()) {
      found = planners
                  .emplace(to_string(mesh),
                           value_of(RedistributePlanner::create(
                               mesh, topology(),
                               {.split_factors = SplitFactors::kEndpoints})))
                  .first;
    }
    const RedistributionCase data = testing::draw_case(mesh, random);
    const RedistributePlan plan = value_of(found->second.plan(
        data.src().layout(), data.dst().layout(), data.src().meta()));
    redistribute(data, plan, plan.bytes_per_rank, k % 4 == 3);
  }
}

TEST_CASE("random redistributions between meshes of processes") {
  Random random(testing::property_seed() + 7 +
                static_cast<std::uint64_t>(world().size()));
  const int cases = testing::scaled(20);
  for (int k = 0; k < cases; ++k) {
    const RedistributionCase data =
        testing::draw_cross_case(world().size(), random);
    const CrossMeshPlan plan = value_of(
        plan_between_meshes(data.src(), data.dst(), topology(),
                            {.split_factors = SplitFactors::kEndpoints}));
    redistribute(data, plan, plan.before.bytes_per_rank + plan.sent_bytes,
                 false);
  }
}

// --- GPU only ---

template <class T>
std::vector<T> on_host(const LocalTensor& tensor) {
  const LocalTensor host =
      value_of(LocalTensor::zeros(tensor.sizes(), tensor.dtype()));
  REQUIRE(tested().memory_ops().transfer(tensor, host).has_value());
  return {host.data_as<const T>(), host.data_as<const T>() + host.numel()};
}

LocalTensor filled(DType dtype, std::int64_t count, const void* value) {
  const LocalTensor out = value_of(tested().allocate({count}, dtype));
  REQUIRE(tested().memory_ops().fill(out, value).has_value());
  return out;
}

TEST_CASE("GPU: work behind a collective of several stages sees its result") {
  if (!the_gpu) return;
  const Group everyone = value_of(Group::world(world().size()));
  // NCCL does not reduce i16: members exchange, reduce, and exchange again.
  const auto mine = static_cast<std::int16_t>(world().rank() + 1);
  const LocalTensor x = filled(DType::kI16, 1 << 20, &mine);
  const LocalTensor sum = value_of(tested().allocate({1 << 20}, DType::kI16));
  const LocalTensor behind =
      value_of(tested().allocate({1 << 20}, DType::kI16));
  const auto work = tested().start(
      everyone,
      {.kind = CollectiveKind::kAllReduce, .inputs = {x}, .outputs = {sum}});
  REQUIRE(work.has_value());
  REQUIRE(tested().memory_ops().copy(sum, behind).has_value());
  const std::int64_t n = world().size();
  const std::vector<std::int16_t> expected(
      1 << 20, static_cast<std::int16_t>(n * (n + 1) / 2));
  CHECK(on_host<std::int16_t>(behind) == expected);
  REQUIRE((*work)->wait().has_value());
}

TEST_CASE("GPU: a dropped tensor does not wait for a member that is late") {
  if (!the_gpu) return;
  using Clock = std::chrono::steady_clock;
  const Group everyone = value_of(Group::world(world().size()));
  const float one = 1;
  const LocalTensor x = filled(DType::kF32, 1000, &one);
  const bool late = world().rank() == world().size() - 1;
  const auto sum = [&] {
    return CollectiveCall{
        .kind = CollectiveKind::kAllReduce, .inputs = {x}, .outputs = {x}};
  };
  // The connections are made before.
  REQUIRE(tested().run(everyone, sum()).has_value());
  REQUIRE(world().barrier(everyone).has_value());
  if (late) std::this_thread::sleep_for(std::chrono::seconds(2));
  const auto begin = Clock::now();
  const auto work = tested().start(everyone, sum());
  REQUIRE(work.has_value());
  for (std::int64_t size = 1; size < (1 << 20); size *= 4) {
    value_of(tested().allocate({size}, DType::kF32));
  }
  if (!late) CHECK(Clock::now() - begin < std::chrono::seconds(1));
  REQUIRE((*work)->wait().has_value());
}

TEST_CASE("GPU: the least and the largest keep NaN") {
  if (!the_gpu) return;
  const Group everyone = value_of(Group::world(world().size()));
  const float mine =
      world().rank() == 0 ? std::numeric_limits<float>::quiet_NaN() : 1.0F;
  for (const ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax}) {
    const LocalTensor x = filled(DType::kF32, 4, &mine);
    REQUIRE(tested()
                .run(everyone, {.kind = CollectiveKind::kAllReduce,
                                .op = op,
                                .inputs = {x},
                                .outputs = {x}})
                .has_value());
    for (const float value : on_host<float>(x)) CHECK(std::isnan(value));
  }
}

constexpr int kSkipped = 77;

int run_tests(int argc, char** argv) {
  the_world = value_of(mpi_communicator());
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--nccl") != 0) continue;
    auto gpu = testing::gpu_of_this_rank();
    if (!gpu) {
      std::fprintf(stderr, "skipped: %s\n", to_string(gpu.error()).c_str());
      return gpu.error().code == ErrorCode::kEngineMissing ? kSkipped : 1;
    }
    the_gpu = *std::move(gpu);
  }
  doctest::Context context(argc, argv);
  const int failed = context.run();
  the_gpu.reset();
  the_world.reset();
  return failed;
}

}  // namespace
}  // namespace shardprop

int main(int argc, char** argv) { return shardprop::run_tests(argc, argv); }
