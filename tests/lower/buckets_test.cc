// Buckets: small transfers of one block, phase, dtype and group are one collective
// of a flat buffer, in the plan and in its program.
#include "plan/evaluate/buckets.h"

#include "plan/evaluate/live_memory.h"
#include "plan/explain/assemble_plan.h"
#include "plan/random_plans.h"
#include "plan/small_graphs.h"
#include "support/dear_topology.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/io/load_graph.h>
#include <shardprop/lower/lower.h>
#include <shardprop/plan/make_plan.h>
#include <shardprop/program/footprint.h>
#include <shardprop/redistribute/collective_cost.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace shardprop {
namespace {

using testing::dear_compute;
using testing::standard_library;
using testing::value_of;

Graph bucket_graph() {
  return value_of(load_graph("examples/graphs/tiny/gpt2_train.json.gz",
                             standard_library()));
}

PlanOptions bucket_options(const char* recipe, double overlap) {
  PlanOptions options;
  options.optimizer = Optimizer::kNone;
  options.overlap = overlap;
  options.work_limit = 20'000'000;
  options.recipe = value_of(Recipe::parse(recipe));
  return options;
}

Plan bucket_plan(const Graph& graph, const char* mesh,
                 const PlanOptions& options) {
  return value_of(make_plan(graph, value_of(DeviceMesh::parse(mesh)),
                            dear_compute(), standard_library(), options));
}

// Returns the copies of each bucket, by its first copy.
std::map<std::size_t, std::vector<std::size_t>> members_of(const Plan& plan) {
  std::map<std::size_t, std::vector<std::size_t>> out;
  for (std::size_t c = 0; c < plan.copies.size(); ++c) {
    if (const auto& bucket = plan.copies[c].bucket) out[*bucket].push_back(c);
  }
  return out;
}

std::size_t flat_collectives(const SpmdProgram& program) {
  return static_cast<std::size_t>(std::count_if(
      program.steps.begin(), program.steps.end(), [&](const ProgramStep& step) {
        const auto* moved = std::get_if<ProgramCollective>(&step.action);
        return moved != nullptr && step.copy &&
               program.value(moved->input).is_local();
      }));
}

TEST_CASE("transfers of one window and group are one collective") {
  const Graph graph = bucket_graph();
  for (const double overlap : {0.5, 1.0}) {
    CAPTURE(overlap);
    const Plan plan =
        bucket_plan(graph, "dp=2", bucket_options("fsdp=dp", overlap));
    const auto buckets = members_of(plan);
    CHECK(buckets.size() > 4);
    std::size_t saved = 0;
    for (const auto& [first, members] : buckets) {
      CHECK(members.front() == first);
      REQUIRE(members.size() >= 2);
      saved += members.size() - 1;
      for (const std::size_t c : members) {
        const PlannedCopy& copy = plan.copies[c];
        CHECK(copy.in_flight == plan.copies[first].in_flight);
        CHECK(copy.steps[0].kind == plan.copies[first].steps[0].kind);
      }
    }
    std::size_t steps = 0;
    for (const PlannedCopy& copy : plan.copies) steps += copy.steps.size();
    std::int64_t launches = 0;
    for (const std::int64_t count : plan.summary.collectives) launches += count;
    std::size_t inside = 0;
    for (const PlannedNode& node : plan.nodes) inside += node.inside.size();
    CHECK(static_cast<std::size_t>(launches) == steps - saved + inside);
    const SpmdProgram program =
        value_of(lower(plan, graph, standard_library()));
    CHECK(flat_collectives(program) == buckets.size());
    const ProgramTraffic sent = traffic(program);
    CHECK(sent.collectives == plan.summary.collectives);
    CHECK(sent.bytes_per_rank == plan.summary.bytes_per_rank);
  }
}

TEST_CASE("a program without the step packs no copy that only the step reads") {
  const Graph graph = bucket_graph();
  PlanOptions options = bucket_options("fsdp=dp", 0.5);
  options.optimizer = Optimizer::kAdamW;
  Plan plan = bucket_plan(graph, "dp=2", options);
  const auto sent = [&](const Plan& lowered) {
    return traffic(value_of(
        lower(lowered, graph, standard_library(), {.optimizer_step = false})));
  };
  const ProgramTraffic all = sent(plan);
  std::size_t left_out = 0;
  for (std::size_t u = 1; u + 1 < plan.updates.size() && left_out == 0; ++u) {
    PlannedUpdate& update = plan.updates[u];
    const PlannedUpdate& later = plan.updates[u + 1];
    const bool fits =
        update.gradient && update.gradient->copy && later.gradient &&
        later.gradient->copy &&
        later.result.tensor.layout == update.result.tensor.layout &&
        plan.copies[*update.gradient->copy].bucket.has_value();
    if (!fits) continue;
    const std::size_t copy = *update.gradient->copy;
    plan.updates[0].value.copy = copy;
    // A gradient reads it, so it is sent.
    CHECK(sent(plan) == all);
    update.gradient = later.gradient;
    std::erase_if(plan.outputs, [&](const PlannedOutput& output) {
      return output.value.copy == copy;
    });
    std::int64_t bytes = 0;
    for (const RedistributeStep& step : plan.copies[copy].steps) {
      bytes += step.bytes_per_rank;
    }
    CHECK(bytes > 0);
    CHECK(sent(plan).bytes_per_rank == all.bytes_per_rank - bytes);
    ++left_out;
  }
  CHECK(left_out == 1);
}

TEST_CASE("a reduce_scatter and the all_reduce after it are in one bucket") {
  const Graph graph = bucket_graph();
  const Plan plan =
      bucket_plan(graph, "pod=2,dp=2", bucket_options("hsdp=pod:dp", 1));
  std::size_t with_two = 0;
  for (const auto& [first, members] : members_of(plan)) {
    with_two += plan.copies[first].steps.size() == 2 ? 1 : 0;
  }
  CHECK(with_two > 1);
}

// Returns the time of a collective of the program on the plan's topology.
std::int64_t collective_time(const Plan& plan, const CollectiveStep& step) {
  std::uint32_t mesh_dims = 0;
  for (const int dim : step.mesh_dims) mesh_dims |= 1U << dim;
  return collective_nanoseconds(
      plan.topology, step.kind,
      MeshPlaces(plan.topology, plan.mesh).of_mask(mesh_dims),
      step.message_bytes);
}

// ChargedTimes adds up collectives of programs: what their copies are charged, and
// the time of the collectives.
struct ChargedTimes {
  std::size_t collectives = 0;
  std::int64_t charged = 0;
  std::int64_t taken = 0;

  void add(std::int64_t charged_here, std::int64_t taken_here) {
    ++collectives;
    charged += charged_here;
    taken += taken_here;
  }
  std::string text() const {
    return std::to_string(collectives) + " charged " + std::to_string(charged) +
           " ns and taking " + std::to_string(taken) + " ns";
  }
};

struct BucketTimes {
  ChargedTimes buckets;
  ChargedTimes alone;  // transfers outside buckets that are charged a share
  std::int64_t objective = 0;
};

void check_bucket_times(const Plan& plan, const SpmdProgram& program,
                        BucketTimes& times) {
  const auto members = members_of(plan);
  for (const ProgramStep& step : program.steps) {
    const auto* moved = std::get_if<ProgramCollective>(&step.action);
    if (moved == nullptr || !step.copy) continue;
    const std::int64_t taken = collective_time(plan, moved->step);
    if (!members.contains(*step.copy)) {
      const std::int64_t charged = moved->step.nanoseconds;
      if (charged < taken) times.alone.add(charged, taken);
      continue;
    }
    const auto count = static_cast<std::int64_t>(members.at(*step.copy).size());
    CAPTURE(count);
    CAPTURE(moved->step.message_bytes);
    // Each share is rounded up.
    CHECK(moved->step.nanoseconds <= taken + count);
    times.buckets.add(moved->step.nanoseconds, taken);
  }
  times.objective += *plan.objective_nanoseconds;
}

// Checks the buckets of the graph's plans of some recipes.
void check_buckets(const Graph& graph, const PlanOptions& given,
                   const std::vector<double>& overlaps) {
  BucketTimes times;
  for (const double overlap : overlaps) {
    for (const auto& [mesh, recipe] :
         {std::pair{"dp=8", "fsdp=dp"}, std::pair{"dp=8", "ddp=dp"},
          std::pair{"pod=2,dp=2", "hsdp=pod:dp"}}) {
      CAPTURE(graph.name());
      CAPTURE(overlap);
      CAPTURE(recipe);
      PlanOptions options = bucket_options(recipe, overlap);
      options.optimizer = given.optimizer;
      options.precision = given.precision;
      const Plan plan =
          value_of(make_plan(graph, value_of(DeviceMesh::parse(mesh)),
                             default_topology(), standard_library(), options));
      REQUIRE(plan.has_plan());
      check_bucket_times(plan, value_of(lower(plan, graph, standard_library())),
                         times);
    }
  }
  MESSAGE(graph.name() << ", " << times.objective << " ns: buckets "
                       << times.buckets.text() << ", alone "
                       << times.alone.text());
  CHECK(times.buckets.collectives > 20);
  CHECK(times.buckets.charged <= times.buckets.taken);
}

TEST_CASE("no bucket takes less time than its members are charged") {
  const auto loaded = [](const std::string& name) {
    return value_of(
        load_graph("examples/graphs/" + name + ".json.gz", standard_library()));
  };
  PlanOptions options;
  options.optimizer = Optimizer::kNone;
  const std::vector<double> overlaps = {0, 0.5, 1};
  check_buckets(loaded("tiny/gpt2_train"), options, overlaps);
  // The weights of a block have 27 MiB.
  check_buckets(loaded("gpt2_124m_train"), options, {1});
  // The gradients of 16-bit parameters are reduced in f32.
  options.optimizer = Optimizer::kAdamW;
  options.precision = Precision::kMixed;
  check_buckets(loaded("tiny/llama3_train_cuda"), options, overlaps);
}

TEST_CASE("the gathers of a bucket have at most 25 MiB") {
  // A weight of bf16[1024,6400] has 12.5 MiB.
  const auto gathers_in_buckets = [](const char* width) {
    const Graph graph =
        test::residual_training(standard_library(), 3, "64", "1024", width);
    const Plan plan = bucket_plan(graph, "dp=2", bucket_options("fsdp=dp", 1));
    REQUIRE(plan.has_plan());
    std::size_t gathers = 0;
    std::size_t in_buckets = 0;
    for (const PlannedCopy& copy : plan.copies) {
      if (copy.steps.empty() ||
          copy.steps[0].kind != CollectiveKind::kAllGather) {
        continue;
      }
      ++gathers;
      in_buckets += copy.bucket ? 1 : 0;
    }
    CHECK(gathers >= 6);
    return in_buckets;
  };
  CHECK(gathers_in_buckets("6400") > 0);
  CHECK(gathers_in_buckets("6402") == 0);
  CHECK(gathers_in_buckets("12800") == 0);
}

TEST_CASE("the copies of a bucket run equally often") {
  const Graph graph = bucket_graph();
  PlanOptions options;
  options.overlap = 1;
  options.accumulate = 4;
  const PlanProblem problem = value_of(
      PlanProblem::create(graph, value_of(DeviceMesh::parse("dp=2")),
                          dear_compute(), standard_library(), options));
  testing::RandomPlans plans(problem, 57);
  int slots_with_both = 0;
  for (int i = 0; i < 20; ++i) {
    CAPTURE(i);
    const PlanSolution solution = plans.next();
    REQUIRE(solution.assignment);
    const std::vector<bool> once =
        copies_once_a_step(problem, *solution.assignment);
    // By the slots of a bucket: whether its copies run once a step.
    std::map<std::pair<std::int64_t, std::int64_t>, std::set<bool>> kinds;
    for (const Bucket& bucket : buckets_of(problem, *solution.assignment)) {
      for (const std::size_t c : bucket.copies) {
        CHECK(once[c] == once[bucket.copies.front()]);
      }
      kinds[{bucket.filled_at, bucket.emptied_at}].insert(
          once[bucket.copies.front()]);
    }
    for (const auto& [slots, of_slots] : kinds) {
      slots_with_both += of_slots.size() == 2 ? 1 : 0;
    }
  }
  CHECK(slots_with_both > 0);
}

TEST_CASE("buffers of buckets exist from the fill until the results leave") {
  Bucket bucket;
  bucket.filled_at = 3;
  bucket.emptied_at = 5;
  bucket.source_bytes = 10;
  bucket.result_bytes = 40;
  CHECK(buffer_bytes(bucket, 2) == 0);
  CHECK(buffer_bytes(bucket, 3) == 10);
  CHECK(buffer_bytes(bucket, 4) == 10);
  CHECK(buffer_bytes(bucket, 5) == 50);
  CHECK(buffer_bytes(bucket, 6) == 0);
  CHECK(bucket.begins_at() == 3);
  bucket.late_sources = {{1, 7}, {2, 3}};
  CHECK(bucket.begins_at() == 1);
  CHECK(buffer_bytes(bucket, 1) == 7);
  CHECK(buffer_bytes(bucket, 2) == 10);
  CHECK(buffer_bytes(bucket, 3) == 20);
}

TEST_CASE("a bucket that exceeds the memory limit is left out") {
  const Graph graph = bucket_graph();
  PlanOptions options = bucket_options("fsdp=dp", 1);
  const Plan roomy = bucket_plan(graph, "dp=2", options);
  REQUIRE_FALSE(members_of(roomy).empty());
  options.memory_limit = roomy.memory.peak_bytes - 1;
  const Plan tight = bucket_plan(graph, "dp=2", options);
  REQUIRE(tight.has_plan());
  CHECK(tight.memory.peak_bytes <= *options.memory_limit);
  CHECK(tight.objective_nanoseconds == roomy.objective_nanoseconds);
  CHECK(members_of(tight).size() < members_of(roomy).size());
}

TEST_CASE("a plan whose copies do not fit their bucket is broken") {
  const Graph graph = bucket_graph();
  Plan plan = bucket_plan(graph, "dp=2", bucket_options("fsdp=dp", 1));
  auto buckets = members_of(plan);
  std::erase_if(buckets, [&](const auto& bucket) {
    return !plan.copies[bucket.first].in_flight;
  });
  REQUIRE(buckets.size() > 1);
  const std::vector<std::size_t>& members = buckets.begin()->second;
  const std::size_t last = members.back();
  const auto refused = [&] {
    const auto lowered = lower(plan, graph, standard_library());
    CHECK_CODE(lowered, ErrorCode::kPlanBroken);
  };
  SUBCASE("the first copy is in no bucket") {
    plan.copies[members.front()].bucket.reset();
    plan.summary = summarize(plan);
    refused();
  }
  SUBCASE("a copy is in another bucket") {
    plan.copies[last].bucket = std::next(buckets.begin())->first;
    plan.summary = summarize(plan);
    refused();
  }
  SUBCASE("a copy is waited for later") {
    ++plan.copies[last].in_flight->waited_at;
    refused();
  }
  SUBCASE("its steps are others") {
    plan.copies[last].steps[0].mesh_dims = {};
    refused();
  }
}

}  // namespace
}  // namespace shardprop
