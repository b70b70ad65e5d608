// BestStage keeps the best result over spaces of plans that contain each other.
#include "plan/search/best_stage.h"
#include "plan/small_graphs.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/base/error.h>
#include <shardprop/mesh/topology.h>

#include <doctest/doctest.h>

#include <cstdint>
#include <optional>
#include <utility>

namespace shardprop {
namespace {

using testing::value_of;

constexpr PlanSpace kPartOfSpace{1};
constexpr PlanSpace kJoinedSpace{2, 2};
constexpr PlanSpace kWholeSpace{};

class Stages {
 public:
  StagedResult of(PlanSpace space, PlanSolution solution) const {
    return {problem_, std::move(solution), space};
  }

 private:
  Graph graph_ = test::mlp(testing::standard_library());
  PlanProblem problem_ = value_of(PlanProblem::create(
      graph_, value_of(DeviceMesh::parse("2")), default_topology(),
      testing::standard_library(), PlanOptions{}));
};

PlanSolution with_cost(std::int64_t cost, std::int64_t bound) {
  PlanSolution out;
  out.status = cost == bound ? PlanStatus::kOptimal : PlanStatus::kFeasible;
  out.assignment.emplace();
  out.evaluation.objective = cost;
  out.lower_bound = bound;
  return out;
}

PlanSolution without_plan(PlanStatus status, std::int64_t bound = 0) {
  PlanSolution out;
  out.status = status;
  out.lower_bound = bound;
  return out;
}

std::int64_t best_cost_of(const BestStage& best) {
  return best->solution.evaluation.objective;
}

TEST_CASE("a proof for a part of the space is no proof for all of it") {
  const Stages stages;
  BestStage optimal;
  optimal.take(stages.of(kPartOfSpace, with_cost(10, 10)));
  CHECK(optimal->solution.status == PlanStatus::kFeasible);

  PlanSolution infeasible = without_plan(PlanStatus::kInfeasible, 7);
  infeasible.conflict.push_back({3, 100});
  BestStage none;
  none.take(stages.of(kPartOfSpace, infeasible));
  CHECK(none->solution.status == PlanStatus::kUnknown);
  CHECK(none->solution.conflict.empty());
  CHECK(none->solution.lower_bound == 0);
  CHECK_FALSE(none.has_plan());
}

TEST_CASE("a proof for the named space is kept") {
  const Stages stages;
  BestStage optimal;
  optimal.take(stages.of(kWholeSpace, with_cost(10, 10)));
  CHECK(optimal->solution.status == PlanStatus::kOptimal);

  PlanSolution infeasible = without_plan(PlanStatus::kInfeasible);
  infeasible.conflict.push_back({3, 100});
  BestStage none;
  none.take(stages.of(kPartOfSpace, without_plan(PlanStatus::kUnknown)));
  none.take(stages.of(kWholeSpace, infeasible));
  CHECK(none->solution.status == PlanStatus::kInfeasible);
  CHECK(none->solution.conflict.size() == 1);
}

TEST_CASE("the cheaper plan is kept, and the later one at equal cost") {
  const Stages stages;
  BestStage best;
  best.take(stages.of(kPartOfSpace, with_cost(10, 4)));
  best.take(stages.of(kWholeSpace, with_cost(8, 3)));
  CHECK(best_cost_of(best) == 8);
  CHECK(best->space == kWholeSpace);
  CHECK(best->solution.lower_bound == 3);

  BestStage equal;
  equal.take(stages.of(kPartOfSpace, with_cost(10, 4)));
  PlanSolution later = with_cost(10, 3);
  later.work = 77;
  equal.take(stages.of(kWholeSpace, later));
  CHECK(equal->solution.work == 77);
}

TEST_CASE("a plan that is kept has the bound of the larger space") {
  const Stages stages;
  BestStage best;
  best.take(stages.of(kPartOfSpace, with_cost(10, 9)));
  best.take(stages.of(kWholeSpace, with_cost(12, 6)));
  CHECK(best_cost_of(best) == 10);
  CHECK(best->space == kWholeSpace);
  CHECK(best->solution.lower_bound == 6);
  CHECK(best->solution.status == PlanStatus::kFeasible);

  // The bound of the named space proves the plan of the part.
  BestStage proven;
  proven.take(stages.of(kPartOfSpace, with_cost(10, 9)));
  proven.take(stages.of(kWholeSpace, with_cost(12, 10)));
  CHECK(proven->solution.status == PlanStatus::kOptimal);

  // A larger part of the space proves nothing about the whole.
  BestStage larger;
  larger.take(stages.of(kPartOfSpace, with_cost(10, 9)));
  larger.take(stages.of({2}, with_cost(12, 10)));
  CHECK(larger->space == PlanSpace{2});
  CHECK(larger->solution.status == PlanStatus::kFeasible);
}

TEST_CASE("a stage without a plan and without a bound changes nothing") {
  const Stages stages;
  BestStage best;
  best.take(stages.of(kPartOfSpace, with_cost(10, 9)));
  best.take(stages.of(kWholeSpace, without_plan(PlanStatus::kUnknown)));
  CHECK(best_cost_of(best) == 10);
  CHECK(best->space == kPartOfSpace);
  CHECK(best->solution.lower_bound == 9);
}

TEST_CASE("without any plan, the result of the named space is kept") {
  const Stages stages;
  BestStage best;
  best.take(stages.of(kPartOfSpace, without_plan(PlanStatus::kUnknown)));
  best.take(stages.of({2}, without_plan(PlanStatus::kUnknown)));
  CHECK(best->space == kPartOfSpace);
  best.take(stages.of(kWholeSpace, without_plan(PlanStatus::kUnknown, 5)));
  CHECK(best->space == kWholeSpace);
  CHECK(best->solution.lower_bound == 5);
}

TEST_CASE("a plan of joined mesh dims may cost less than a larger space") {
  const Stages stages;
  BestStage best;
  best.take(stages.of(kJoinedSpace, with_cost(10, 9)));
  best.take(stages.of(kWholeSpace, with_cost(12, 11)));
  CHECK(best_cost_of(best) == 10);
  CHECK(best->solution.lower_bound == 9);

  // Without joined mesh dims, a bound above the plan is an error of the search.
  BestStage wrong;
  wrong.take(stages.of(kPartOfSpace, with_cost(10, 9)));
  CHECK_THROWS_AS(wrong.take(stages.of(kWholeSpace, with_cost(12, 11))),
                  InternalError);
}

TEST_CASE("a given plan outside the named space is dropped") {
  const Stages stages;
  PlanSolution given = with_cost(10, 9);
  given.is_given = true;
  BestStage best;
  best.take(stages.of(kPartOfSpace, given));
  best.take(stages.of(kWholeSpace, with_cost(12, 11)));
  CHECK(best_cost_of(best) == 12);
  CHECK(best->solution.lower_bound == 11);

  BestStage none;
  none.take(stages.of(kPartOfSpace, given));
  none.take(stages.of(kWholeSpace, without_plan(PlanStatus::kInfeasible)));
  CHECK(!none.has_plan());
  CHECK(none->solution.status == PlanStatus::kInfeasible);

  // It is kept as long as no bound is above it.
  BestStage kept;
  kept.take(stages.of(kPartOfSpace, given));
  kept.take(stages.of(kWholeSpace, with_cost(12, 10)));
  CHECK(best_cost_of(kept) == 10);

  BestStage member;
  member.take(stages.of(kWholeSpace, with_cost(12, 11)));
  member.take_member(stages.of({0}, given));
  CHECK(best_cost_of(member) == 12);
}

TEST_CASE("a cheaper plan of the searched space keeps space and bound") {
  const Stages stages;
  BestStage best;
  best.take(stages.of(kWholeSpace, with_cost(10, 6)));
  best.take_member(stages.of({0}, with_cost(12, 12)));
  CHECK(best_cost_of(best) == 10);
  best.take_member(stages.of({0}, with_cost(9, 9)));
  CHECK(best_cost_of(best) == 9);
  CHECK(best->space == kWholeSpace);
  CHECK(best->solution.lower_bound == 6);
  CHECK(best->solution.status == PlanStatus::kFeasible);
}

}  // namespace
}  // namespace shardprop
