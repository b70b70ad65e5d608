// Random redistributions on threads: the right bytes on every rank, sources
// untouched, payload and memory as planned.
#include "execute/redistribution_case.h"
#include "support/property.h"

#include <shardprop/collective/kernel_view.h>
#include <shardprop/collective/thread_world.h>
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

namespace shardprop {
namespace {

using testing::Draw;
using testing::pick;
using testing::Random;
using testing::RedistributionCase;
using testing::value_of;

constexpr std::int64_t kWorld = 16;

// Under the thread sanitizer a slice of them shows what there is to see.
int cases(int everyday) {
#ifdef __SANITIZE_THREAD__
  return everyday / 20;
#else
  return testing::scaled(everyday);
#endif
}

// Figures of a real machine, so that plans are as varied as real ones.
Topology small_nodes() {
  Topology topology = default_topology();
  topology.devices_per_node.value = 4;
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
Result<void> take_part(Job& job, Communicator& communicator) {
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
  LocalTensor source;
  LocalTensor copy;
  if (has_source) {
    source = data.source(rank, job.transposed);
    copy = data.source(rank, job.transposed);
  }
  auto out = run(*made, communicator, source, {}, &job.reports[r]);
  if (!out) return fail(out.error());
  if (has_source && testing::bytes_of(source) != testing::bytes_of(copy)) {
    job.complaints[r] = "the source was written";
  }
  if (!made->has_result()) return {};
  if (out->sizes() != made->result_shape()) {
    job.complaints[r] = "the result is " + to_string(*out);
  }
  // An empty plan gives the source back, which need not be row-major.
  const LocalTensor row_major =
      value_of(LocalTensor::empty(out->sizes(), out->dtype()));
  auto copied = shardprop::copy(*out, row_major);
  if (!copied) return copied;
  job.results[r] = testing::bytes_of(row_major);
  return {};
}

// Why the job is not right; empty when it is.
std::string complaint(const Job& job) {
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

// Runs `count` jobs, each drawn and judged by rank 0 while the others wait.
void run_jobs(int count, const std::function<void(Job&, int)>& draw,
              const std::function<void(const Job&)>& seen) {
  Job job;
  std::barrier sync(kWorld);
  bool stop = false;
  std::string wrong;
  const auto ends =
      run_ranks(kWorld, {}, [&](Communicator& communicator) -> Result<void> {
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

TEST_CASE("random redistributions on threads") {
  Random random(testing::property_seed());
  std::map<std::string, RedistributePlanner> planners;
  std::map<CollectiveKind, int> kinds;
  std::map<DType, int> dtypes;
  int steps = 0;
  const auto draw = [&](Job& job, int k) {
    const DeviceMesh mesh = testing::draw_mesh(Draw{}, random);
    auto found = planners.find(to_string(mesh));
    if (found == planners.end()) {
      found = planners
                  .emplace(to_string(mesh),
                           value_of(RedistributePlanner::create(
                               mesh, small_nodes(),
                               {.split_factors = SplitFactors::kEndpoints})))
                  .first;
    }
    job.data.emplace(testing::draw_case(mesh, random));
    job.plan = value_of(found->second.plan(job.data->src().layout(),
                                           job.data->dst().layout(),
                                           job.data->src().meta()));
    job.transposed = k % 4 == 3;
  };
  const auto seen = [&](const Job& job) {
    ++dtypes[job.data->dtype()];
    for (const RedistributeStep& step : job.plan->steps) {
      ++kinds[step.collective];
      ++steps;
    }
  };
  run_jobs(cases(5000), draw, seen);
  MESSAGE(steps << " steps");
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

TEST_CASE("random redistributions between meshes on threads") {
  Random random(testing::property_seed() + 1);
  int messages = 0;
  int reduced = 0;
  const auto draw = [&](Job& job, int k) {
    job.data.emplace(testing::draw_cross_case(kWorld, random));
    job.cross = value_of(
        plan_between_meshes(job.data->src(), job.data->dst(), small_nodes(),
                            {.split_factors = SplitFactors::kEndpoints}));
    job.transposed = k % 4 == 3;
  };
  const auto seen = [&](const Job& job) {
    messages += static_cast<int>(job.cross->transfers.size());
    reduced += job.cross->before.steps.empty() ? 0 : 1;
  };
  run_jobs(cases(500), draw, seen);
  MESSAGE(messages << " messages, " << reduced << " after reductions");
  CHECK(messages > 0);
  CHECK(reduced > 0);
}

}  // namespace
}  // namespace shardprop
