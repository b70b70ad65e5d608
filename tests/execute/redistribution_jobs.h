// Random redistributions on the ranks of one process: the right bytes on every
// rank, sources untouched, payload and memory as planned. Of any engine.
#pragma once

#include "execute/moved.h"
#include "execute/redistribution_case.h"
#include "support/property.h"
#include "support/sanitizers.h"

#include <shardprop/collective/communicator.h>
#include <shardprop/collective/kernel_view.h>
#include <shardprop/execute/executor.h>
#include <shardprop/redistribute/cross_mesh.h>
#include <shardprop/redistribute/planner.h>

#include <algorithm>
#include <barrier>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace shardprop::testing {

inline constexpr std::int64_t kWorld = 16;

// Runs a body on so many ranks, each a thread, and says how each ended.
using RunWorld = std::function<std::vector<Result<void>>(
    std::int64_t ranks, const std::function<Result<void>(Communicator&)>&)>;

inline int cases(int everyday) {
  return kThreadSanitizer ? everyday / 20 : scaled(everyday);
}

// Figures of a real machine, so that plans are as varied as real ones.
inline Topology small_nodes(Engine engine) {
  Topology topology = default_topology();
  topology.devices_per_node.value = 4;
  topology.engine = engine;
  return topology;
}

// One redistribution under way: what all ranks share.
struct Job {
  std::optional<RedistributionCase> data;
  std::optional<RedistributePlan> plan;
  std::optional<CrossMeshPlan> cross;
  bool transposed = false;

  // By communicator rank.
  std::vector<std::vector<std::byte>> results =
      std::vector<std::vector<std::byte>>(kWorld);
  std::vector<RunReport> reports = std::vector<RunReport>(kWorld);
  std::vector<std::string> complaints = std::vector<std::string>(kWorld);

  std::int64_t peak() const {
    return cross ? cross->peak_bytes : plan->peak_bytes;
  }
  std::vector<std::int64_t> step_bytes() const {
    std::vector<std::int64_t> out;
    for (const RedistributeStep& step : (cross ? cross->before : *plan).steps) {
      out.push_back(step.bytes_per_rank);
    }
    if (cross) out.push_back(cross->sent_bytes);
    return out;
  }
};

// Runs the job on one rank.
inline Result<void> take_part(Job& job, Communicator& communicator) {
  const std::int64_t rank = communicator.rank();
  const auto r = static_cast<std::size_t>(rank);
  const RedistributionCase& data = *job.data;
  job.results[r].clear();
  job.reports[r] = {};
  const bool has_source = data.src().mesh().contains(rank);
  if (!has_source && !data.dst().mesh().contains(rank)) return {};
  const auto made = job.cross ? RedistributeProgram::create(
                                    *job.cross, data.src(), data.dst(), rank)
                              : RedistributeProgram::create(
                                    *job.plan, data.src(), data.dst(), rank);
  if (!made) return fail(made.error());
  MemoryOps& memory = communicator.memory_ops();
  LocalTensor source;
  if (has_source) {
    auto there = moved(memory, data.source(rank, job.transposed), memory);
    if (!there) return fail(there.error());
    source = *std::move(there);
  }
  auto out = run(*made, communicator, source, {}, &job.reports[r]);
  if (!out) return fail(out.error());
  if (has_source) {
    const auto now = moved(memory, source, host_memory_ops());
    if (!now) return fail(now.error());
    if (bytes_of(*now) != bytes_of(data.source(rank, job.transposed))) {
      job.complaints[r] = "the source was written";
    }
  }
  if (!made->has_result()) return {};
  if (out->sizes() != made->result_shape()) {
    job.complaints[r] = "the result is " + to_string(*out);
  }
  // An empty plan gives the source back, which need not be row-major.
  const LocalTensor row_major =
      value_of(LocalTensor::empty(out->sizes(), out->dtype()));
  out = moved(memory, *out, host_memory_ops());
  if (!out) return fail(out.error());
  auto copied = shardprop::copy(*out, row_major);
  if (!copied) return copied;
  job.results[r] = bytes_of(row_major);
  return {};
}

// Why the job is not right; empty when it is.
inline std::string complaint(const Job& job) {
  for (std::size_t r = 0; r < kWorld; ++r) {
    if (!job.complaints[r].empty()) {
      return "rank " + std::to_string(r) + ": " + job.complaints[r];
    }
  }
  const DeviceMesh& target = job.data->dst().mesh();
  std::vector<std::vector<std::byte>> results;
  for (std::int64_t i = 0; i < target.size(); ++i) {
    results.push_back(
        job.results[static_cast<std::size_t>(target.rank_at_index(i))]);
  }
  if (std::string wrong = job.data->check(results); !wrong.empty()) {
    return wrong;
  }
  const std::vector<std::int64_t> planned = job.step_bytes();
  for (std::size_t step = 0; step < planned.size(); ++step) {
    std::int64_t most = 0;
    for (const RunReport& report : job.reports) {
      if (step < report.step_payload_bytes.size()) {
        most = std::max(most, report.step_payload_bytes[step]);
      }
    }
    if (most != planned[step]) {
      return "step " + std::to_string(step + 1) + " counts " +
             std::to_string(most) + " bytes, planned were " +
             std::to_string(planned[step]);
    }
  }
  for (std::size_t r = 0; r < kWorld && !job.transposed; ++r) {
    if (job.reports[r].peak_bytes > job.peak()) {
      return "rank " + std::to_string(r) + " holds " +
             std::to_string(job.reports[r].peak_bytes) +
             " bytes, planned were " + std::to_string(job.peak());
    }
  }
  return "";
}

// Runs `count` jobs. Rank 0 samples and judges each while the others wait.
inline void run_jobs(const RunWorld& world, int count,
                     const std::function<void(Job&, int)>& draw,
                     const std::function<void(const Job&)>& seen) {
  Job job;
  std::barrier sync(kWorld);
  bool stop = false;
  std::string wrong;
  const auto ends =
      world(kWorld, [&](Communicator& communicator) -> Result<void> {
        for (int k = 0; k < count; ++k) {
          if (communicator.rank() == 0) draw(job, k);
          sync.arrive_and_wait();
          auto end = take_part(job, communicator);
          if (!end) {
            job.complaints[static_cast<std::size_t>(communicator.rank())] =
                to_string(end.error());
          }
          sync.arrive_and_wait();
          if (communicator.rank() == 0) {
            seen(job);
            wrong = complaint(job);
            if (!wrong.empty()) {
              wrong +=
                  "\n  case " + std::to_string(k) + ": " + job.data->text();
              if (job.plan) {
                wrong += "\n" + to_string(*job.plan, job.data->src().mesh());
              }
              stop = true;
            }
          }
          sync.arrive_and_wait();
          if (stop) break;
        }
        return {};
      });
  CHECK_MESSAGE(wrong.empty(), wrong);
  for (const Result<void>& end : ends) {
    CHECK_MESSAGE(end.has_value(), to_string(end.error()));
  }
}

inline void check_redistributions(const RunWorld& world, Engine engine,
                                  int count) {
  Random random(property_seed());
  std::map<std::string, RedistributePlanner> planners;
  std::map<CollectiveKind, int> kinds;
  std::map<DType, int> dtypes;
  int steps = 0;
  const auto draw = [&](Job& job, int k) {
    const DeviceMesh mesh = draw_mesh(Draw{}, random);
    auto found = planners.find(to_string(mesh));
    if (found == planners.end()) {
      found = planners
                  .emplace(to_string(mesh),
                           value_of(RedistributePlanner::create(
                               mesh, small_nodes(engine),
                               {.split_factors = SplitFactors::kEndpoints})))
                  .first;
    }
    job.data.emplace(draw_case(mesh, random));
    job.plan = value_of(found->second.plan(job.data->src().layout(),
                                           job.data->dst().layout(),
                                           job.data->src().meta()));
    job.transposed = k % 4 == 3;
  };
  const auto seen = [&](const Job& job) {
    ++dtypes[job.data->dtype()];
    for (const RedistributeStep& step : job.plan->steps) {
      ++kinds[step.kind];
      ++steps;
    }
  };
  run_jobs(world, count, draw, seen);
  MESSAGE(steps << " steps");
  // Fewer need not show the rare ones.
  if (count < 1000) return;
  for (const CollectiveKind kind :
       {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
        CollectiveKind::kAllReduce, CollectiveKind::kAllToAll,
        CollectiveKind::kSlice, CollectiveKind::kPermute}) {
    CAPTURE(to_string(kind));
    MESSAGE(to_string(kind) << " " << kinds[kind]);
    CHECK(kinds[kind] > 0);
  }
  CHECK(dtypes.size() == all_dtypes().size());
}

inline void check_redistributions_between_meshes(const RunWorld& world,
                                                 Engine engine, int count) {
  Random random(property_seed() + 1);
  int messages = 0;
  int reduced = 0;
  const auto draw = [&](Job& job, int k) {
    job.data.emplace(draw_cross_case(kWorld, random));
    job.cross = value_of(plan_between_meshes(
        job.data->src(), job.data->dst(), small_nodes(engine),
        {.split_factors = SplitFactors::kEndpoints}));
    job.transposed = k % 4 == 3;
  };
  const auto seen = [&](const Job& job) {
    messages += static_cast<int>(job.cross->transfers.size());
    reduced += job.cross->before.steps.empty() ? 0 : 1;
  };
  run_jobs(world, count, draw, seen);
  MESSAGE(messages << " messages, " << reduced << " after reductions");
  CHECK(messages > 0);
  if (count >= 100) CHECK(reduced > 0);
}

}  // namespace shardprop::testing
