#include <shardprop/report/plan_text.h>

#include "plan/small_graphs.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/plan/make_plan.h>

#include <string>

namespace shardprop {
namespace {

using testing::value_of;

std::string text_of(const PlanOptions& options, bool detail = false) {
  const OpLibrary& library = testing::standard_library();
  const Graph graph = test::linear_training(library);
  return plan_to_text(
      value_of(make_plan(graph, value_of(DeviceMesh::parse("dp=2,tp=2")),
                         default_topology(), library, options)),
      {.detail = detail});
}

PlanOptions pinned() {
  PlanOptions options;
  options.pins.push_back(value_of(Pin::parse("stored:net.w=S(0),R")));
  options.pins.push_back(value_of(Pin::parse("gw=P(sum),R")));
  return options;
}

TEST_CASE("totals stand first, then inputs, parameters and moves") {
  const std::string text = text_of(pinned());
  CAPTURE(text);
  const std::size_t places[] = {
      text.find("linear_training (4 ops) on dp=2,tp=2 (4 ranks), dgx-h100"),
      text.find("\n  dp=2: "),
      text.find("\n  tp=2: "),
      text.find("  compute  "),
      text.find("  communication  "),
      text.find("  memory  "),
      text.find("\ninputs\n"),
      text.find("\nparameters\n  net.w"),
      text.find("f32[1024,1024] S(0),R"),
      text.find("\npinned\n  stored:net.w=S(0),R   1 value\n"),
      text.find("\nredistributions, costliest first\n"),
      text.find("gw  P(sum),R -> S(0),R"),
      text.find("reduce_scatter over dp"),
      text.find("because the gradient of `net.w` ends in the stored layout "
                "S(0),R"),
      text.find("\nmodules"),
      text.find("--detail"),
  };
  for (std::size_t i = 0; i < std::size(places); ++i) {
    CAPTURE(i);
    CHECK(places[i] != std::string::npos);
    if (i > 0) CHECK(places[i - 1] < places[i]);
  }
}

TEST_CASE("details are every move, under its module") {
  const std::string text = text_of(pinned(), true);
  CAPTURE(text);
  CHECK(text.find("what is sent") == std::string::npos);
  CHECK(text.find("--detail") == std::string::npos);
  CHECK(text.find("\nmodules") < text.find("gw  P(sum),R -> S(0),R"));
}

TEST_CASE("recipes are priced beside the plan") {
  PlanOptions options;
  options.compare = true;
  const std::string text = text_of(options);
  CAPTURE(text);
  CHECK(text.find("\nrecipes\n") != std::string::npos);
  for (const char* recipe :
       {"  ddp=dp:tp ", "  fsdp=dp:tp ", "  hsdp=dp:tp ",
        "  ddp=dp,megatron=tp ", "  fsdp=dp,megatron-sp=tp "}) {
    CHECK(text.find(recipe) != std::string::npos);
  }
}

TEST_CASE("without a plan the text says what was missing") {
  PlanOptions options;
  options.memory_limit = 1024;
  const std::string text = text_of(options);
  CHECK(text.find("infeasible: a rank needs at least ") != std::string::npos);
  CHECK(text.find(", and the limit is 1.0 KiB\n") != std::string::npos);
}

TEST_CASE("what is sent once a step says so") {
  PlanOptions options;
  options.optimizer = Optimizer::kAdamW;
  options.accumulate = 8;
  options.pins.push_back(value_of(Pin::parse("stored:net.w=R,R")));
  options.pins.push_back(value_of(Pin::parse("gw=P(sum),R")));
  const std::string text = text_of(options);
  CAPTURE(text);
  CHECK(text.find("  times are those of one of 8 micro-batches") !=
        std::string::npos);
  CHECK(text.find(" us   once in 8 micro-batches\n") != std::string::npos);
}

TEST_CASE("recipes without a plan say why") {
  Plan plan;
  plan.mesh = value_of(DeviceMesh::parse("dp=2"));
  plan.topology = default_topology();
  plan.objective_nanoseconds = 1000;
  plan.recipes = {
      {.name = "ddp=dp"},
      {.name = "fsdp=dp",
       .status = PlanStatus::kInfeasible,
       .peak_bytes = 3 << 20},
      {.name = "tp=dp", .status = PlanStatus::kInfeasible},
  };
  const std::string text = plan_to_text(plan, {});
  CAPTURE(text);
  CHECK(text.find("  ddp=dp   unknown: time ran out\n"
                  "  fsdp=dp  infeasible: the nearest plan takes 3.0 MiB\n"
                  "  tp=dp    infeasible\n") != std::string::npos);
}

TEST_CASE("the recipe is named among what cannot hold together") {
  PlanOptions options;
  options.memory_limit = 1024;
  options.recipe = value_of(Recipe::parse("ddp"));
  const std::string text = text_of(options);
  CAPTURE(text);
  CHECK(text.find("infeasible: these cannot hold together; some may be "
                  "unneeded\n"
                  "  --recipe ddp=dp:tp\n") != std::string::npos);
  CHECK(text.find(": at least ") != std::string::npos);
  CHECK(text.find(" short\n") != std::string::npos);
}

// A plan without an answer, whose limit is 60 KiB.
Plan without_plan() {
  Plan plan;
  plan.mesh = value_of(DeviceMesh::parse("dp=2"));
  plan.topology = default_topology();
  plan.status = PlanStatus::kInfeasible;
  plan.memory.limit_bytes = 60 << 10;
  return plan;
}

TEST_CASE("a conflict that was not made minimal is not listed step by step") {
  Plan plan = without_plan();
  plan.conflict.memory.assign(160, {.node = "mm"});
  const std::string text = plan_to_text(plan, {});
  CAPTURE(text);
  CHECK(text.find("infeasible: these cannot hold together; some may be "
                  "unneeded\n"
                  "  60.0 KiB a rank at some of 160 operators\n") !=
        std::string::npos);
  CHECK(text.find("at least") == std::string::npos);
  plan.conflict.memory.resize(2);
  CHECK(plan_to_text(plan, {}).find("  60.0 KiB a rank at `mm`\n") !=
        std::string::npos);
}

TEST_CASE("a limit and a need that print alike are given in bytes") {
  Plan plan = without_plan();
  plan.conflict.irreducible = true;
  plan.conflict.memory = {{.node = "mm", .bytes_short = 4}};
  CHECK(plan_to_text(plan, {}).find(
            "a rank needs at least 61,444 B at `mm`, and "
            "the limit is 61,440 B") != std::string::npos);
  plan.conflict.memory = {{.node = "mm", .bytes_short = 4096}};
  CHECK(plan_to_text(plan, {}).find(
            "a rank needs at least 64.0 KiB at `mm`, and "
            "the limit is 60.0 KiB") != std::string::npos);
}

TEST_CASE("a plan says what ended its search early") {
  Plan plan = without_plan();
  plan.status = PlanStatus::kFeasible;
  plan.objective_nanoseconds = 1000;
  const auto says = [&](RanOut why, const char* line) {
    plan.ran_out = why;
    const std::string text = plan_to_text(plan, {});
    CAPTURE(text);
    return text.find(line) != std::string::npos;
  };
  CHECK(says(RanOut::kTime, "\ntime ran out in the search\n"));
  CHECK(says(RanOut::kWork, "\nthe work limit ended the search\n"));
  CHECK(says(RanOut::kInterrupted, "\nthe search was interrupted\n"));
  CHECK(says(RanOut::kMemory, "\nmemory ran out in the search\n"));
  CHECK_FALSE(says(RanOut::kGap, "in the search"));
  CHECK_FALSE(says(RanOut::kAttempts, "in the search"));
}

}  // namespace
}  // namespace shardprop
