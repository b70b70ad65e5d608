// Each search procedure has a record and a switch.
#include "plan/search/procedures.h"
#include "plan/invariants.h"
#include "plan/slow_links.h"
#include "plan/small_graphs.h"
#include "support/property.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/plan/make_plan.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace shardprop {
namespace {

using testing::value_of;

PlanOptions limited_training() {
  PlanOptions options;
  options.overlap = 1;
  options.optimizer = Optimizer::kAdamW;
  options.work_limit = 20'000'000;
  options.time_limit_seconds = 1e9;
  return options;
}

Plan trained(const PlanOptions& options) {
  const OpLibrary& library = testing::standard_library();
  const Graph graph =
      test::residual_training(library, 3, "4096", "1024", "4096");
  return value_of(make_plan(graph, value_of(DeviceMesh::parse("dp=4,tp=2")),
                            test::slow_links(8), library, options));
}

const Procedure* find(const Plan& plan, std::string_view name) {
  const auto found =
      std::find_if(plan.procedures.begin(), plan.procedures.end(),
                   [&](const Procedure& p) { return p.name == name; });
  return found == plan.procedures.end() ? nullptr : &*found;
}

TEST_CASE("each procedure has one name") {
  std::set<std::string_view> names;
  for (const PlanProcedureRow& row : kPlanProcedures) names.insert(row.name);
  CHECK(names.size() == std::size(kPlanProcedures));
  for (std::size_t p = 0; p < solver::kNumPasses; ++p) {
    names.insert(solver::pass_name(static_cast<solver::Pass>(p)));
  }
  CHECK(names.size() == std::size(kPlanProcedures) + solver::kNumPasses);
  // The last line of the table is that of the last enumerator.
  CHECK(kPlanProcedures[index(PlanProcedure::kReport)].name == "report");
  CHECK(index(PlanProcedure::kReport) + 1 == std::size(kPlanProcedures));
}

TEST_CASE("a plan has the records of the procedures that ran") {
  const Plan plan = trained(limited_training());
  REQUIRE(plan.has_plan());
  for (const std::string name :
       {"set-up", "recipe-plans", "free-network", "report"}) {
    CAPTURE(name);
    const Procedure* record = find(plan, name);
    REQUIRE(record != nullptr);
    CHECK(record->runs > 0);
    CHECK(record->seconds > 0);
    CHECK(record->gap_closed >= 0);
  }
  CHECK(find(plan, "memory-network") == nullptr);
  // The passes of the solver follow.
  REQUIRE(find(plan, "low-degree") != nullptr);
  CHECK(find(plan, "low-degree")->runs > 0);
}

TEST_CASE("the records are the same on any number of threads") {
  PlanOptions options = limited_training();
  const Plan one = trained(options);
  options.threads = 2;
  CHECK(trained(options).procedures == one.procedures);
}

TEST_CASE("a plan stays valid without any one procedure") {
  const Plan whole = trained(limited_training());
  for (const std::string_view name : procedures_with_switch()) {
    CAPTURE(std::string(name));
    PlanOptions options = limited_training();
    REQUIRE(set_option(options, "without", name));
    const Plan plan = trained(options);
    REQUIRE(plan.has_plan());
    test::check_plan(plan);
    CHECK(plan.lower_bound_nanoseconds <= *whole.objective_nanoseconds);
    CHECK(*plan.objective_nanoseconds >= whole.lower_bound_nanoseconds);
    const Procedure* record = find(plan, name);
    REQUIRE(record != nullptr);
    CHECK_FALSE(record->enabled);
    CHECK(record->runs == 0);
    const std::pair<std::string, std::string> option("without", name);
    CHECK(std::count(plan.options.begin(), plan.options.end(), option) == 1);
  }
}

TEST_CASE("the work of a plan includes its bound for free layers") {
  PlanOptions options = limited_training();
  options.overlap = 0;
  options.gap = 0.05;
  options.work_limit = 2'000'000'000;
  // Reductions alone solve small networks, and take no work.
  options.switched_off = {"contraction", "dominance", "low-degree",
                          "elimination"};
  const Plan bounded = trained(options);
  REQUIRE(bounded.free_lower_bound_nanoseconds);
  const Procedure* record = find(bounded, "free-layers-bound");
  REQUIRE(record != nullptr);
  CHECK(record->work > 0);
  REQUIRE(set_option(options, "without", "free-layers-bound"));
  const Plan unbounded = trained(options);
  CHECK_FALSE(unbounded.free_lower_bound_nanoseconds);
  CHECK(bounded.search.work == unbounded.search.work + record->work);
}

TEST_CASE("only known procedures can be switched off") {
  PlanOptions options;
  for (const char* name : {"layer-mxi", "set-up", ""}) {
    CAPTURE(name);
    const auto set = set_option(options, "without", name);
    REQUIRE_FALSE(set);
    CHECK(set.error().code == ErrorCode::kInvalidArgument);
    CHECK(to_string(set.error()).find("layer-mix") != std::string::npos);
  }
  CHECK(options.switched_off.empty());
}

}  // namespace
}  // namespace shardprop
