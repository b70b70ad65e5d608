#include "faults/failing_machine.h"
#include "plan/invariants.h"
#include "plan/search/parts/first_plans.h"
#include "plan/search/parts/restricted_problem.h"
#include "plan/search/plan_incumbent.h"
#include "plan/search/solve_plan.h"
#include "plan/small_graphs.h"
#include "support/dear_topology.h"
#include "support/property.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/plan/make_plan.h>
#include <shardprop/plan/weigh_strategies.h>
#include <shardprop/redistribute/planner.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <utility>
#include <variant>

namespace shardprop {
namespace {

using testing::value_of;

PlanOptions within_megabytes(std::int64_t limit) {
  PlanOptions options;
  options.threads = 2;
  options.memory_limit = limit << 20;
  options.optimizer = Optimizer::kNone;
  options.work_limit = 10'000'000;
  options.time_limit_seconds = 1e6;
  return options;
}

bool names_lack_of_memory(const Plan& plan) {
  return plan.ran_out == RanOut::kMemory ||
         std::any_of(plan.notes.begin(), plan.notes.end(),
                     [](const PlanNote& note) {
                       const auto* left = std::get_if<LeftOutNote>(&note);
                       const auto* failed = std::get_if<FailedPartNote>(&note);
                       return (left != nullptr &&
                               left->code == ErrorCode::kOutOfMemory) ||
                              (failed != nullptr &&
                               failed->code == ErrorCode::kOutOfMemory);
                     });
}

// A plan without the times that its making took.
Plan timeless(Plan plan) {
  plan.solve_seconds = 0;
  for (Procedure& procedure : plan.procedures) procedure.seconds = 0;
  return plan;
}

// The allocation at which memory is refused in one try: evenly spread over all
// of a run at first, then sampled.
constexpr int kTries = 40;
class RefusedAllocations {
 public:
  // The first run may fill caches of the library, so the second one is counted.
  template <class Make>
  explicit RefusedAllocations(const Make& make)
      : random_(testing::property_seed()) {
    REQUIRE(make().has_value());
    failing_machine::heal();
    REQUIRE(make().has_value());
    needed_ = failing_machine::allocations();
  }
  int count() const { return testing::counted(kTries, 20 * kTries); }
  std::int64_t at(int i) {
    return i < kTries ? needed_ * i / kTries
                      : std::uniform_int_distribution<std::int64_t>(
                            0, needed_ - 1)(random_);
  }

 private:
  std::int64_t needed_ = 0;
  std::mt19937_64 random_;
};

// Counts the outcomes of the refusals of memory, one refusal in each run.
struct Refusals {
  int errors = 0;
  int named = 0;  // by the plan
};

// Runs `make` again and again, and refuses memory once in each run. Each
// refusal is an error, or the plan names it: as what ended the search, or in a
// note if the optimum is proven without the part that lacked memory. If no
// needed memory was refused, the plan is the same as ever. `check` checks the
// plans.
template <class Make, class Check>
Refusals refusals(const Make& make, const Check& check) {
  const Plan whole = timeless(value_of(make()));
  REQUIRE_FALSE(names_lack_of_memory(whole));
  RefusedAllocations refused(make);
  Refusals out;
  for (int i = 0; i < refused.count(); ++i) {
    const std::int64_t at = refused.at(i);
    failing_machine::memory_after(at);
    const Result<Plan> plan = make();
    const failing_machine::Refused how = failing_machine::refused();
    failing_machine::heal();
    CAPTURE(at);
    if (!plan) {
      ++out.errors;
      CHECK(plan.error().code == ErrorCode::kOutOfMemory);
      CHECK(!plan.error().help.empty());
      continue;
    }
    check(*plan);
    if (how == failing_machine::Refused::kNeeded) {
      ++out.named;
      CHECK(names_lack_of_memory(*plan));
    } else {
      CHECK(timeless(*plan) == whole);
    }
  }
  return out;
}

TEST_CASE("without memory to find a plan that fits there is an error") {
  const OpLibrary& library = testing::standard_library();
  const Graph graph = test::residual_training(library, 2, "512", "256", "1024");
  const DeviceMesh mesh = value_of(DeviceMesh::parse("2,2"));
  const PlanOptions options = within_megabytes(2);
  const auto make = [&] {
    return make_plan(graph, mesh, default_topology(), library, options);
  };
  const Plan whole = value_of(make());
  REQUIRE(!whole.has_plan());
  const Refusals found = refusals(make, [&](const Plan& plan) {
    CHECK(!plan.has_plan());
    CHECK(plan.status == whole.status);
    CHECK(plan.ran_out == whole.ran_out);
    CHECK(plan.lower_bound_nanoseconds <= whole.lower_bound_nanoseconds);
  });
  CHECK(found.errors >= kTries / 4);
}

// Returns the cost of the best plan of a space.
std::int64_t optimum(const Graph& graph, const DeviceMesh& mesh,
                     const OpLibrary& library, PlanOptions options,
                     const PlanSpace& space) {
  options.work_limit.reset();
  const PlanProblem problem = value_of(PlanProblem::create(
      graph, mesh, testing::dear_compute(), library, options, {space, {}}));
  const PlanSolution solution = solve_plan(problem);
  REQUIRE(solution.status == PlanStatus::kOptimal);
  return solution.evaluation.objective;
}

TEST_CASE("without memory a plan says so and claims no more than its space") {
  const OpLibrary& library = testing::standard_library();
  const Graph graph = test::residual_training(library, 2, "512", "256", "1024");
  const Topology topology = testing::dear_compute();
  for (const char* shape : {"2,2", "2,2,2"}) {
    CAPTURE(shape);
    const DeviceMesh mesh = value_of(DeviceMesh::parse(shape));
    PlanOptions options = within_megabytes(64);
    // Alike plans of so few layers are not proven within this limit.
    options.layers = Layers::kFree;
    const auto make = [&] {
      return make_plan(graph, mesh, topology, library, options);
    };
    const std::int64_t best = optimum(graph, mesh, library, options, {});
    // By the most runs and the joined mesh dims.
    std::map<std::pair<int, std::uint32_t>, std::int64_t> best_of;
    for (const PlanSpace& space :
         {PlanSpace{0}, PlanSpace{1}, PlanSpace{2}, PlanSpace{2, 0b010}}) {
      best_of[{*space.most_runs, space.joined_dims}] =
          optimum(graph, mesh, library, options, space);
    }
    REQUIRE(best < best_of.at({0, 0}));
    REQUIRE(value_of(make()).status == PlanStatus::kOptimal);
    const Refusals found = refusals(make, [&](const Plan& plan) {
      test::PlanChecker(plan).run();
      CHECK(plan.memory.peak_bytes <= *options.memory_limit);
      CHECK(*plan.objective_nanoseconds >= best);
      if (plan.ran_out == RanOut::kMemory) {
        CHECK(plan.status == PlanStatus::kFeasible);
        const std::int64_t cost_of_space =
            plan.space.most_runs
                ? best_of.at({*plan.space.most_runs, plan.space.joined_dims})
                : best;
        CHECK(plan.lower_bound_nanoseconds <= cost_of_space);
      } else {
        CHECK(plan.ran_out == RanOut::kNothing);
        CHECK(plan.status == PlanStatus::kOptimal);
        CHECK(plan.space.is_named());
        CHECK(*plan.objective_nanoseconds == best);
      }
    });
    CHECK(found.named > 0);
    CHECK(found.errors > 0);
  }
}

TEST_CASE("a plan names the lack of memory wherever its search lacked it") {
  const OpLibrary& library = testing::standard_library();
  const Graph graph = test::mlp(library);
  const Topology topology = testing::dear_compute();
  const DeviceMesh mesh = value_of(DeviceMesh::parse("dp=2,tp=2"));
  PlanOptions plain;
  plain.threads = 1;
  plain.optimizer = Optimizer::kNone;
  plain.work_limit = 10'000'000;
  plain.time_limit_seconds = 1e6;
  const Plan earlier =
      value_of(make_plan(graph, mesh, topology, library, plain));
  PlanOptions started = plain;
  started.start_from = std::make_shared<const Plan>(earlier);
  PlanOptions compared = plain;
  compared.compare = true;
  PlanOptions compared_with_recipe = compared;
  compared_with_recipe.recipe = value_of(Recipe::parse("fsdp=dp"));
  PlanOptions tight = plain;
  tight.memory_limit = 8'000;
  PlanOptions conflicting = plain;
  conflicting.memory_limit = 24'000;
  for (const char* pin : {"net.w1=R,R", "net.w2=R,R"}) {
    conflicting.pins.push_back(value_of(Pin::parse(pin)));
  }
  const std::pair<std::string, const PlanOptions*> settings[] = {
      {"starts from a plan", &started},
      {"compares recipes", &compared},
      {"compares recipes with one", &compared_with_recipe},
      {"no plan fits", &tight},
      {"pins conflict", &conflicting}};
  for (const auto& [name, options] : settings) {
    CAPTURE(name);
    const Refusals found = refusals(
        [&] { return make_plan(graph, mesh, topology, library, *options); },
        [&](const Plan& plan) {
          if (plan.has_plan()) {
            CHECK(*plan.objective_nanoseconds >=
                  *earlier.objective_nanoseconds);
          }
        });
    CHECK(found.errors > 0);
  }
}

TEST_CASE("the best plan is never a mix of two, wherever memory is refused") {
  const OpLibrary& library = testing::standard_library();
  const Graph graph = test::residual_training(library, 2, "512", "256", "1024");
  const DeviceMesh mesh = value_of(DeviceMesh::parse("dp=2,tp=2"));
  const PlanProblem problem = value_of(PlanProblem::create(
      graph, mesh, testing::dear_compute(), library, within_megabytes(64)));
  const PlanSolution best = solve_plan(problem);
  REQUIRE(best.assignment);
  int plans = 0;
  for (const FirstSpace& space : first_spaces(problem)) {
    const RestrictedProblem part(problem, restriction_to(problem, space));
    const PlanSolution found = solve_plan(part.problem());
    if (!found.assignment ||
        found.evaluation.objective <= best.evaluation.objective) {
      continue;
    }
    ++plans;
    const PlanAssignment first = part.widened(*found.assignment);
    for (std::int64_t at = 0;; ++at) {
      CAPTURE(at);
      PlanIncumbent incumbent(problem);
      incumbent.take(first);
      failing_machine::memory_after(at);
      bool is_refused = false;
      try {
        incumbent.take(*best.assignment, best.evaluation);
      } catch (const std::bad_alloc&) {
        is_refused = true;
      }
      failing_machine::heal();
      const PlanSolution& kept = incumbent.solution();
      CHECK(kept.assignment->choices ==
            (is_refused ? first.choices : best.assignment->choices));
      const PlanEvaluation judged = evaluate(problem, *kept.assignment);
      CHECK(judged.broken.empty());
      CHECK(judged.objective == kept.evaluation.objective);
      CHECK(judged.windows == kept.evaluation.windows);
      if (!is_refused) break;
    }
  }
  CHECK(plans > 0);
}

TEST_CASE("without memory strategies are not weighed") {
  const OpLibrary& library = testing::standard_library();
  const Graph graph = test::mlp(library);
  const DeviceMesh mesh = value_of(DeviceMesh::parse("2,2"));
  const Topology topology = testing::dear_compute();
  const PlanOptions options = within_megabytes(64);
  const auto make = [&] {
    return weigh_strategies(graph, NodeId(0), mesh, topology, library, options);
  };
  RefusedAllocations refused(make);
  for (int i = 0; i < refused.count(); ++i) {
    const std::int64_t at = refused.at(i);
    failing_machine::memory_after(at);
    const Result<WeighedNode> weighed = make();
    const failing_machine::Refused how = failing_machine::refused();
    failing_machine::heal();
    CAPTURE(at);
    CHECK(weighed.has_value() == (how != failing_machine::Refused::kNeeded));
    if (!weighed) CHECK(weighed.error().code == ErrorCode::kOutOfMemory);
  }
}

// Returns the bytes of a rank while the first redistribution of the problem runs.
std::int64_t first_peak(const PlanProblem& problem) {
  const PlanBuffer& buffer = problem.buffers()[0];
  const BufferClass& kind = *buffer.kind;
  for (BufferLayout to = 1; to < kind.num_states(); ++to) {
    const BufferClass::Move& move = kind.move(0, to);
    if (!move.is_reachable() || move.via != BufferClass::Move::kDirect) {
      continue;
    }
    return problem.redistribution_peak(buffer.values[move.value],
                                       kind.layouts[move.value][0],
                                       kind.layouts[move.value][to]);
  }
  return 0;
}

TEST_CASE("a price that memory was refused for is worked out again") {
  const OpLibrary& library = testing::standard_library();
  const Graph graph = test::mlp(library);
  const DeviceMesh mesh = value_of(DeviceMesh::parse("2,2"));
  const auto problem_of_mlp = [&] {
    return value_of(
        PlanProblem::create(graph, mesh, default_topology(), library, {}));
  };
  failing_machine::heal();
  const std::int64_t peak = first_peak(problem_of_mlp());
  REQUIRE(peak > 0);
  int refused = 0;
  for (std::int64_t allocations = 0;; ++allocations) {
    CAPTURE(allocations);
    const PlanProblem problem = problem_of_mlp();
    bool is_refused = false;
    failing_machine::heal();
    failing_machine::memory_after(allocations);
    try {
      first_peak(problem);
    } catch (const std::bad_alloc&) {
      is_refused = true;
    }
    failing_machine::heal();
    CHECK(first_peak(problem) == peak);
    if (!is_refused) break;
    ++refused;
  }
  CHECK(refused > 0);
}

TEST_CASE("no refusal of memory is swallowed while a problem is set up") {
  const OpLibrary& library = testing::standard_library();
  const Graph graph = test::mlp(library);
  // With three mesh dims, moves are planned on merged meshes, too.
  for (const char* shape : {"2,2", "2,2,2"}) {
    CAPTURE(shape);
    const DeviceMesh mesh = value_of(DeviceMesh::parse(shape));
    const bool is_large = mesh.ndim() > 2;
    const PlanSpace space = is_large ? PlanSpace{2, 0b010} : PlanSpace{};
    const auto is_refused = [&] {
      try {
        return !PlanProblem::create(graph, mesh, default_topology(), library,
                                    {}, {space, {}});
      } catch (const std::bad_alloc&) {
        return true;
      }
    };
    // The first set-up fills caches of the library.
    REQUIRE_FALSE(is_refused());
    failing_machine::heal();
    REQUIRE_FALSE(is_refused());
    const std::int64_t needed = failing_machine::allocations();
    const std::int64_t step = is_large && !testing::full_counts() ? 3 : 1;
    for (std::int64_t at = 0; at < needed; at += step) {
      failing_machine::memory_after(at);
      const bool refused = is_refused();
      const failing_machine::Refused how = failing_machine::refused();
      failing_machine::heal();
      CAPTURE(at);
      CHECK(how != failing_machine::Refused::kNothing);
      CHECK(refused == (how == failing_machine::Refused::kNeeded));
    }
  }
}

TEST_CASE("a redistribution without memory is an error") {
  const DeviceMesh mesh = value_of(DeviceMesh::parse("2,4"));
  const auto spec = [&](const char* text) {
    return value_of(TensorSpec::parse(text, mesh));
  };
  const TensorSpec src = spec("f32[64,32] S(0)@1,S(0)@0");
  const TensorSpec dst = spec("f32[64,32] R,S(1)");
  failing_machine::heal();
  REQUIRE(plan_redistribution(src, dst, default_topology()).has_value());
  const std::int64_t needed = failing_machine::allocations();
  int refused = 0;
  for (int i = 0; i < 20; ++i) {
    failing_machine::memory_after(needed * i / 20);
    const auto plan = plan_redistribution(src, dst, default_topology());
    failing_machine::heal();
    if (plan) continue;
    ++refused;
    CHECK(plan.error().code == ErrorCode::kOutOfMemory);
  }
  CHECK(refused > 10);
}

}  // namespace
}  // namespace shardprop
