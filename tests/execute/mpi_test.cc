// Random redistributions on MPI, under mpirun: every process draws the same
// cases and runs its rank's part of them.
#include "execute/redistribution_case.h"
#include "support/property.h"

#include <shardprop/execute/executor.h>
#include <shardprop/mpi/mpi_world.h>
#include <shardprop/redistribute/cross_mesh.h>
#include <shardprop/redistribute/planner.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace shardprop {
namespace {

using testing::Draw;
using testing::Random;
using testing::RedistributionCase;
using testing::value_of;

Communicator& world() {
  static const std::unique_ptr<Communicator> made =
      value_of(mpi_communicator());
  return *made;
}

LocalTensor byte_view(std::vector<std::byte>& bytes) {
  return LocalTensor::wrap(
      bytes.data(), Dims{static_cast<std::int64_t>(bytes.size())}, DType::kU8);
}

// What every rank of the target's mesh ended with.
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
    LocalTensor source;
    if (has_source) source = data.source(rank, transposed);
    RunReport report;
    const auto out = run(program, world(), source, {}, &report);
    REQUIRE_MESSAGE(out.has_value(), to_string(out.error()));
    if (has_source) {
      const LocalTensor copy = data.source(rank, transposed);
      CHECK(testing::bytes_of(source) == testing::bytes_of(copy));
    }
    if (has_result) {
      own = program.step_count() == 0
                ? testing::bytes_of(data.source(rank, false))
                : testing::bytes_of(*out);
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

Topology mpi_topology() {
  Topology topology = default_topology();
  topology.devices_per_node.value = 4;
  return topology;
}

TEST_CASE("random redistributions on MPI") {
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
                               mesh, mpi_topology(),
                               {.split_factors = SplitFactors::kEndpoints})))
                  .first;
    }
    const RedistributionCase data = testing::draw_case(mesh, random);
    const RedistributePlan plan = value_of(found->second.plan(
        data.src().layout(), data.dst().layout(), data.src().meta()));
    redistribute(data, plan, plan.bytes_per_rank, k % 4 == 3);
  }
}

TEST_CASE("random redistributions between meshes on MPI") {
  Random random(testing::property_seed() + 7 +
                static_cast<std::uint64_t>(world().size()));
  const int cases = testing::scaled(20);
  for (int k = 0; k < cases; ++k) {
    const RedistributionCase data =
        testing::draw_cross_case(world().size(), random);
    const CrossMeshPlan plan = value_of(
        plan_between_meshes(data.src(), data.dst(), mpi_topology(),
                            {.split_factors = SplitFactors::kEndpoints}));
    redistribute(data, plan, plan.before.bytes_per_rank + plan.sent_bytes,
                 false);
  }
}

}  // namespace
}  // namespace shardprop
