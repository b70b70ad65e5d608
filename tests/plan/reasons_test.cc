// Tests the reasons of copies.
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/io/load_graph.h>
#include <shardprop/plan/make_plan.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace shardprop {
namespace {

using testing::value_of;

std::int64_t count_reasons(const Plan& plan, CopyCause cause) {
  return std::count_if(
      plan.copies.begin(), plan.copies.end(),
      [&](const PlannedCopy& copy) { return copy.reason.cause == cause; });
}

Plan plan_with_reasons(const PlanOptions& options) {
  const OpLibrary& library = testing::standard_library();
  const Graph graph = value_of(
      load_graph("examples/graphs/tiny/llama3_train.json.gz", library));
  return value_of(make_plan(graph, value_of(DeviceMesh::parse("dp=2,tp=2")),
                            default_topology(), library, options));
}

TEST_CASE("a pin that leaves no other layout is the cause") {
  PlanOptions options;
  options.optimizer = Optimizer::kAdamW;
  options.pins.push_back(value_of(Pin::parse("stored:*.weight=S(0),R")));
  const Plan plan = plan_with_reasons(options);
  CHECK(count_reasons(plan, CopyCause::kPin) > 0);
  CHECK(count_reasons(plan, CopyCause::kRecipe) == 0);
  for (const PlannedCopy& copy : plan.copies) {
    if (copy.reason.cause != CopyCause::kPin) continue;
    CHECK(copy.reason.pin == options.pins.front());
    CHECK_FALSE(copy.reason.alternative);
  }
}

TEST_CASE("a recipe that leaves no other layout is the cause") {
  PlanOptions options;
  options.recipe = value_of(Recipe::parse("fsdp=dp,megatron=tp"));
  const Plan plan = plan_with_reasons(options);
  CHECK(count_reasons(plan, CopyCause::kRecipe) > 0);
  CHECK(count_reasons(plan, CopyCause::kPin) == 0);
  for (const PlannedCopy& copy : plan.copies) {
    if (copy.reason.cause != CopyCause::kRecipe) continue;
    CHECK(copy.reason.recipe == options.recipe);
  }
}

// Every kind of cause that a plan can have appears in one of the plans, except
// for kReported and kUnused.
TEST_CASE("a reason has the user, the operand and the layout that it names") {
  std::set<CopyCause> causes;
  int counted = 0;
  for (const char* recipe :
       {"", "fsdp=dp,megatron=tp", "fsdp=dp,megatron-sp=tp"}) {
    PlanOptions options;
    options.optimizer = Optimizer::kAdamW;
    options.accumulate = 4;
    if (*recipe != 0) options.recipe = value_of(Recipe::parse(recipe));
    const Plan plan = plan_with_reasons(options);
    std::map<std::string, const PlannedNode*> nodes;
    for (const PlannedNode& node : plan.nodes) nodes[node.name] = &node;
    for (std::size_t c = 0; c < plan.copies.size(); ++c) {
      const CopyReason& reason = plan.copies[c].reason;
      CAPTURE(c);
      causes.insert(reason.cause);
      CHECK(reason.alternative.has_value() ==
            (reason.cause == CopyCause::kCost));
      REQUIRE(reason.user);
      if (reason.user->kind != CopyUser::Kind::kNode) continue;
      REQUIRE(nodes.contains(reason.user->name));
      REQUIRE(reason.operand);
      const PlannedInput& input =
          nodes[reason.user->name]->inputs.at(*reason.operand);
      CHECK(input.layout == reason.wanted);
      if (reason.cause == CopyCause::kView) {
        CHECK(input.copy == c);
        continue;
      }
      // The input is the copy, a view of it, or a copy that is made from it. It
      // may also be the result of a node that views the copy.
      if (!input.copy) continue;
      ++counted;
      std::optional<std::size_t> read = input.copy;
      while (read && *read != c) read = plan.copies[*read].source;
      CHECK(read == c);
    }
  }
  CHECK(counted > 50);
  for (const CopyCause cause :
       {CopyCause::kCost, CopyCause::kShared, CopyCause::kRecipe,
        CopyCause::kView, CopyCause::kSource}) {
    CAPTURE(to_string(cause));
    CHECK(causes.contains(cause));
  }
}

}  // namespace
}  // namespace shardprop
