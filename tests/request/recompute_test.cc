// Plans of graphs in which operators run again.
#include <shardprop/request/plan_request.h>

#include "request/layer_requests.h"
#include "support/result_checks.h"

#include <shardprop/plan/judge_plan.h>
#include <shardprop/report/plan_json.h>
#include <shardprop/report/plan_text.h>
#include <shardprop/request/graph_reading.h>
#include <shardprop/request/saved_plan.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;

PlanRequest request_of(const std::vector<GivenOption>& given) {
  const std::string path = "examples/graphs/tiny/gpt2_train.json.gz";
  LoadedGraph loaded = value_of(load_graph(path, GraphReading()));
  PlanRequest request;
  request.graph = loaded.graph;
  request.library = loaded.library;
  request.mesh = value_of(planned_mesh("dp=2"));
  request.topology = default_topology();
  request.options = value_of(plan_options(given, request.topology));
  request.options.gap = 0;
  return request;
}

PlannedGraph planned(const std::string& rule, const std::string& memory) {
  return value_of(plan_graph(
      request_of({{"recompute", rule, {}}, {"memory", memory, {}}})));
}

TEST_CASE("a saved plan runs the graph that it was made for") {
  const PlanRequest request =
      request_of({{"recompute", "full", {}}, {"execution", "eager", {}}});
  const PlannedGraph made = value_of(plan_graph(request));
  REQUIRE(made.plan.has_plan());
  CHECK(made.plan.graph_hash != hash_text(request.graph->hash()));
  const Plan read = value_of(parse_plan_json(plan_to_json(made.plan)));
  const auto graph = value_of(graph_of(read, request.graph, *request.library));
  CHECK(graph->hash() == made.graph->hash());
  CHECK(
      value_of(judge_plan(read, *graph, *request.library)).differences.empty());
  CHECK(std::any_of(
      read.nodes.begin(), read.nodes.end(),
      [](const PlannedNode& node) { return !node.second_run_of.empty(); }));
  CHECK(read.summary.recompute_nanoseconds > 0);
  // An earlier build took a count above the number of layers.
  Plan of_all = read;
  for (auto& [name, text] : of_all.options) {
    if (name == "recompute") text = "full:9";
  }
  CHECK(value_of(graph_of(of_all, request.graph, *request.library))->hash() ==
        graph->hash());
}

TEST_CASE("a rule keeps less and takes longer") {
  const Plan none = planned("none", "none").plan;
  const Plan selective = planned("selective", "none").plan;
  const Plan full = planned("full", "none").plan;
  CHECK(*none.objective_nanoseconds < *selective.objective_nanoseconds);
  CHECK(*selective.objective_nanoseconds < *full.objective_nanoseconds);
  CHECK(full.memory.peak_bytes < none.memory.peak_bytes);
}

// Returns the operators that run again, without their overloads.
std::set<std::string> again(const PlannedGraph& planned) {
  std::set<std::string> out;
  for (const Node& node : planned.graph->nodes()) {
    if (node.runs_again()) out.insert(node.op_name());
  }
  return out;
}

PlannedGraph eagerly(const std::string& rule) {
  return value_of(plan_graph(request_of({{"recompute", rule, {}},
                                         {"execution", "eager", {}},
                                         {"memory", "none", {}}})));
}

TEST_CASE("with selective:megatron, core attention runs again") {
  const PlannedGraph core = eagerly("selective:megatron");
  const std::set<std::string> ops = again(core);
  CHECK_FALSE(ops.empty());
  const auto is_attention = [](const std::string& op) {
    return op.find("softmax") != std::string::npos ||
           op.find("attention") != std::string::npos;
  };
  CHECK(std::any_of(ops.begin(), ops.end(), is_attention));
  // The projections and the MLP are kept.
  CHECK_FALSE(ops.contains("aten.addmm.default"));
  CHECK_FALSE(ops.contains("aten.gelu.default"));
  CHECK(core.plan.summary.recompute_nanoseconds <
        eagerly("full").plan.summary.recompute_nanoseconds);
}

TEST_CASE("the modules that a glob matches run again") {
  const PlannedGraph mlp = eagerly("modules:*.mlp");
  std::size_t count = 0;
  for (const Node& node : mlp.graph->nodes()) {
    if (!node.runs_again()) continue;
    ++count;
    CHECK(node.module_path.find(".mlp") != std::string::npos);
  }
  CHECK(count > 0);
  CHECK(mlp.plan.memory.peak_bytes < eagerly("none").plan.memory.peak_bytes);
  PlanRequest request = request_of({{"recompute", "modules:*.attention7", {}}});
  CHECK_CODE(plan_graph(request), ErrorCode::kInvalidArgument);
}

TEST_CASE("a rule that is open is the one that the plan chooses") {
  const PlanRequest request = request_of({{"memory", "200KiB", {}}});
  const PlannedGraph made = value_of(plan_graph(request));
  const PlanRequest again = value_of(running_as_planned(request));
  CHECK(again.graph->hash() == made.graph->hash());
  CHECK(to_string(*again.options.recompute) == rule_of(made.plan));
}

TEST_CASE("auto is the default") {
  CHECK(!request_of({}).options.recompute);
  const Plan given = planned("auto", "1GiB").plan;
  const Plan plain = value_of(plan(request_of({{"memory", "1GiB", {}}})));
  CHECK(rule_of(plain) == "none");
  CHECK(plain.objective_nanoseconds == given.objective_nanoseconds);
}

TEST_CASE("auto searches once if the limit excludes no cheaper plan") {
  const Plan none = planned("none", "1GiB").plan;
  CHECK(!none.search.limit_binds);
  Plan easy = planned("auto", "1GiB").plan;
  easy.solve_seconds = none.solve_seconds;
  CHECK(easy == none);
  CHECK(easy.search.work == none.search.work);
  CHECK(rules_of(easy) == nullptr);
}

TEST_CASE("without a plan, auto names what each rule needs") {
  const Plan plan = planned("auto", "1KiB").plan;
  REQUIRE(plan.status == PlanStatus::kInfeasible);
  const RecomputeRulesNote* rules = rules_of(plan);
  REQUIRE(rules != nullptr);
  REQUIRE(rules->tried.size() == 3);
  std::int64_t least = rules->tried.front().needed_bytes;
  for (const RecomputeRulesNote::Tried& tried : rules->tried) {
    CHECK(tried.nanoseconds == 0);
    CHECK(tried.needed_bytes > 1 << 10);
    least = std::min(least, tried.needed_bytes);
  }
  // The answer is that of the rule which needs the least.
  REQUIRE(plan.conflict.memory.size() == 1);
  CHECK((1 << 10) + plan.conflict.memory.front().bytes_short == least);
  const std::string text = plan_to_text(plan);
  CHECK(text.find("3 rules of recomputation were tried") != std::string::npos);
  CHECK(text.find("smaller micro-batches") != std::string::npos);
}

TEST_CASE("an interruption after a refuted rule leaves the answer open") {
  PlanRequest request =
      request_of({{"recompute", "auto", {}}, {"memory", "1KiB", {}}});
  std::stop_source stop;
  request.options.stop = stop.get_token();
  request.options.progress = [&](const PlanProgress& progress) {
    if (progress.phase == PlanProgress::Phase::kReport) stop.request_stop();
  };
  const Plan plan = value_of(plan_graph(request)).plan;
  CHECK(plan.status == PlanStatus::kUnknown);
  CHECK(plan.ran_out == RanOut::kInterrupted);
  const std::string text = plan_to_text(plan);
  CHECK(text.find("infeasible") == std::string::npos);
  CHECK(text.find("interrupted") != std::string::npos);
  const std::string json = plan_to_json(plan);
  CHECK(json.find("\"interrupted\": true") != std::string::npos);
  CHECK(plan_to_json(value_of(parse_plan_json(json))) == json);
}

TEST_CASE("without work, auto does not search") {
  PlanRequest request =
      request_of({{"recompute", "auto", {}}, {"memory", "60KiB", {}}});
  request.options.work_limit = 0;
  const Plan plan = value_of(plan_graph(request)).plan;
  CHECK(plan.status == PlanStatus::kUnknown);
  CHECK(plan.ran_out == RanOut::kWork);
}

TEST_CASE("once time is out, auto tries no other rule") {
  PlanRequest request =
      request_of({{"recompute", "auto", {}}, {"memory", "60KiB", {}}});
  request.options.time_limit_seconds = 1e-9;
  const Plan plan = value_of(plan_graph(request)).plan;
  CHECK(plan.status == PlanStatus::kUnknown);
  CHECK(plan.ran_out == RanOut::kTime);
  CHECK(rules_of(plan) == nullptr);
}

TEST_CASE("auto keeps the work limit of the request") {
  const PlanRequest request =
      request_of({{"memory", "200KiB", {}}, {"work_limit", "300000", {}}});
  const Plan plan = value_of(shardprop::plan(request));
  CHECK(std::count(
            plan.options.begin(), plan.options.end(),
            std::pair<std::string, std::string>("work_limit", "300000")) == 1);
}

TEST_CASE("auto takes the cheapest rule that fits") {
  // No plan without second runs fits.
  const auto least = [](const std::string& rule) {
    const Plan plan = planned(rule, "1KiB").plan;
    REQUIRE(plan.status == PlanStatus::kInfeasible);
    REQUIRE(plan.conflict.memory.size() == 1);
    return (1 << 10) + plan.conflict.memory.front().bytes_short;
  };
  const std::int64_t between = (least("none") + least("full")) / 2;
  const Plan tight = planned("auto", std::to_string(between)).plan;
  for (const char* rule : {"none", "selective", "full"}) {
    const Plan plan = planned(rule, std::to_string(between)).plan;
    if (!plan.has_plan()) continue;
    REQUIRE(tight.has_plan());
    CHECK(*tight.objective_nanoseconds <= *plan.objective_nanoseconds);
  }
}

TEST_CASE("auto searches how many blocks of a row run again") {
  const std::string between = std::to_string(limit_for_counts());
  const Plan found = planned_layers("auto", between).plan;
  REQUIRE(found.has_plan());
  const std::set<std::string> tried = tried_rules(found);
  const auto counts = std::count_if(
      tried.begin(), tried.end(),
      [](const std::string& rule) { return rule.starts_with("full:"); });
  CHECK(counts > 0);
  CHECK(counts < 5);
  for (const char* rule : {"none", "selective", "full", "full:1", "full:2",
                           "full:3", "full:4", "full:5"}) {
    CAPTURE(rule);
    const Plan plan = planned_layers(rule, between).plan;
    if (!plan.has_plan()) continue;
    CHECK(*found.objective_nanoseconds <= *plan.objective_nanoseconds);
  }
}

TEST_CASE("auto searches the number of blocks of rows of different lengths") {
  for (const char* layers : {"ddssssss", "ddddddss", "ddssss"}) {
    for (const char* fitting : {"full:1", "full:2", "full:3"}) {
      CAPTURE(layers);
      CAPTURE(fitting);
      const std::string memory =
          std::to_string(peak_of_layers(fitting, layers));
      const Plan least = planned_layers(fitting, memory, layers).plan;
      REQUIRE(least.has_plan());
      const Plan found = planned_layers("auto", memory, layers).plan;
      REQUIRE(found.has_plan());
      CHECK(*found.objective_nanoseconds <= *least.objective_nanoseconds);
    }
  }
}

TEST_CASE("auto bounds free layers, also if a rule that it tried is refuted") {
  int bounds = 0;
  int refuted_rules = 0;
  for (const std::int64_t bytes : tight_limits()) {
    CAPTURE(bytes);
    const std::string memory = std::to_string(bytes);
    const Plan found =
        planned_layers("auto", memory, "dddddd", "3000000000").plan;
    REQUIRE(found.has_plan());
    const auto bound = found.free_lower_bound_nanoseconds;
    bounds += bound ? 1 : 0;
    // A plan does not list the procedures that auto switches off by itself.
    CHECK(std::none_of(
        found.options.begin(), found.options.end(),
        [](const auto& option) { return option.first == "without"; }));
    CHECK(std::all_of(found.procedures.begin(), found.procedures.end(),
                      [](const auto& procedure) { return procedure.enabled; }));
    for (const std::string& rule : tried_rules(found)) {
      CAPTURE(rule);
      const Plan alone = planned_layers(rule, memory).plan;
      if (bound && alone.status == PlanStatus::kInfeasible) ++refuted_rules;
      PlanRequest freely = request_of_layers(rule, memory);
      freely.options.layers = Layers::kFree;
      const Plan free = value_of(plan_graph(freely)).plan;
      if (bound && free.has_plan())
        CHECK(*bound <= *free.objective_nanoseconds);
    }
  }
  CHECK(bounds > 0);
  CHECK(refuted_rules > 0);
}

TEST_CASE("the bound of auto holds for every rule that was tried") {
  int plans = 0;
  int counts = 0;
  for (const std::int64_t bytes :
       {limit_for_counts(), peak_of_layers("none") * 9 / 10}) {
    const std::string memory = std::to_string(bytes);
    for (const char* work : {"3000", "300000", "3000000"}) {
      CAPTURE(memory);
      CAPTURE(work);
      const Plan plan = planned_layers("auto", memory, "dddddd", work).plan;
      if (!plan.has_plan()) continue;
      ++plans;
      for (const std::string& rule : tried_rules(plan)) {
        CAPTURE(rule);
        counts += rule.starts_with("full:") ? 1 : 0;
        const Plan best = planned_layers(rule, memory).plan;
        if (!best.has_plan()) continue;
        CHECK(plan.lower_bound_nanoseconds <= *best.objective_nanoseconds);
      }
    }
  }
  CHECK(plans > 0);
  CHECK(counts > 0);
}

TEST_CASE("auto has a plan under the least work if `full` has one") {
  const std::string memory = std::to_string(limit_for_counts());
  for (const char* work : {"1", "300", "10000", "300000"}) {
    CAPTURE(std::string(work));
    const Plan full = planned_layers("full", memory, "dddddd", "1").plan;
    REQUIRE(full.has_plan());
    const Plan plan = planned_layers("auto", memory, "dddddd", work).plan;
    REQUIRE(plan.has_plan());
    CHECK(*plan.objective_nanoseconds <= *full.objective_nanoseconds);
  }
}

TEST_CASE("a proof for the rules that auto tried is not one for all rules") {
  int proofs = 0;
  for (const char* memory : {"75KiB", "70KiB"}) {
    CAPTURE(std::string(memory));
    const Plan plan = value_of(shardprop::plan(request_of(
        {{"memory", memory, {}}, {"work_limit", "1000000000", {}}})));
    if (!plan.has_plan() || rules_of(plan) == nullptr) continue;
    CHECK(plan.status == PlanStatus::kFeasible);
    if (plan.lower_bound_nanoseconds < *plan.objective_nanoseconds) continue;
    ++proofs;
    CHECK(plan.ran_out == RanOut::kAttempts);
    CHECK(plan_to_text(plan).find("by the rules of recomputation tried costs "
                                  "less") != std::string::npos);
  }
  CHECK(proofs > 0);
}

TEST_CASE("auto tries no more numbers of blocks once its work is spent") {
  const std::string memory = std::to_string(limit_for_counts());
  const auto rules = [&](const char* work) {
    return tried_rules(planned_layers("auto", memory, "dddddd", work).plan);
  };
  CHECK(rules("1").size() <= 3);
  CHECK(rules("100000000").size() > 3);
}

TEST_CASE("auto costs no more than the plan to start from") {
  int starts = 0;
  for (const std::int64_t limit : tight_limits()) {
    const std::string memory = std::to_string(limit);
    for (const char* rule : {"full", "full:4", "full:5", "selective"}) {
      const Plan start = planned_layers(rule, memory).plan;
      if (!start.has_plan()) continue;
      ++starts;
      for (const char* work : {"1", "3000", "300000"}) {
        CAPTURE(memory);
        CAPTURE(rule);
        CAPTURE(std::string(work));
        PlanRequest request = request_of_layers("auto", memory, "dddddd", work);
        request.options.start_from = std::make_shared<const Plan>(start);
        const Plan again = value_of(plan(request));
        REQUIRE(again.has_plan());
        CHECK(*again.objective_nanoseconds <= *start.objective_nanoseconds);
      }
    }
  }
  CHECK(starts > 10);
}

TEST_CASE("a rule is not stated for a graph that does not follow it") {
  PlanRequest request = request_of({{"recompute", "full", {}}});
  request.is_running = true;
  CHECK_CODE(plan_graph(request), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace shardprop
