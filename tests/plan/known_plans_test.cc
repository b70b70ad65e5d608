// Planning finds the plans that experts write by hand, if they are the
// cheapest.
#include "plan/invariants.h"
#include "plan/small_graphs.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/plan/make_plan.h>

#include <algorithm>
#include <string>

namespace shardprop {
namespace {

using testing::value_of;

constexpr std::int64_t kWork = 2'000'000'000;

struct Wish {
  const char* mesh;
  std::vector<const char*> pins;
  Optimizer optimizer = Optimizer::kNone;
  std::optional<std::int64_t> memory_limit;
};

Plan planned(const Graph& graph, const OpLibrary& library, const Wish& wish) {
  PlanOptions options;
  for (const char* pin : wish.pins) {
    options.pins.push_back(value_of(Pin::parse(pin)));
  }
  options.optimizer = wish.optimizer;
  options.memory_limit = wish.memory_limit;
  options.work_limit = kWork;
  options.time_limit_seconds = 1e6;
  Plan plan = value_of(make_plan(graph, value_of(DeviceMesh::parse(wish.mesh)),
                                 default_topology(), library, options));
  if (plan.has_plan()) test::check_plan(plan);
  return plan;
}

std::int64_t count(const Plan& plan, CollectiveKind kind) {
  return plan.summary.collectives[static_cast<std::size_t>(kind)];
}

std::string layout_of(const Plan& plan, const std::string& name) {
  for (const PlannedValue& value : plan.values) {
    if (value.name == name) return to_string(value.tensor.layout);
  }
  return "";
}

// Copies of a parameter or a view of it that gather, in the phase of the node
// that they are made for.
std::int64_t gathers(const Plan& plan, const std::string& parameter,
                     const std::string& view, Phase phase) {
  return std::count_if(
      plan.copies.begin(), plan.copies.end(), [&](const PlannedCopy& copy) {
        return (copy.from == parameter || copy.from == view) &&
               !copy.steps.empty() &&
               copy.steps.back().kind == CollectiveKind::kAllGather &&
               copy.produced_at <
                   static_cast<std::int64_t>(plan.nodes.size()) &&
               plan.nodes[static_cast<std::size_t>(copy.produced_at)].phase ==
                   phase;
      });
}

TEST_CASE("few tokens, replicated between blocks: columns, then rows") {
  const OpLibrary& library = testing::standard_library();
  constexpr int kBlocks = 2;
  const Graph graph =
      test::residual_training(library, kBlocks, "512", "4096", "16384");
  const Plan plan =
      planned(graph, library,
              {.mesh = "tp=8", .pins = {"x=R", "gy=R", "out*=R", "grad*=R"}});
  CHECK(plan.status == PlanStatus::kOptimal);
  for (const char* block : {"0", "1"}) {
    CHECK(layout_of(plan, std::string("net.w1_") + block) == "S(1)");
    CHECK(layout_of(plan, std::string("net.w2_") + block) == "S(0)");
  }
  // One sum a block and direction, and nothing else moves.
  CHECK(count(plan, CollectiveKind::kAllReduce) +
            count(plan, CollectiveKind::kReduceScatter) ==
        2 * kBlocks);
  CHECK(count(plan, CollectiveKind::kAllGather) ==
        count(plan, CollectiveKind::kReduceScatter));
  CHECK(count(plan, CollectiveKind::kAllToAll) == 0);
}

TEST_CASE("many tokens: parameters replicated, gradients reduced") {
  const OpLibrary& library = testing::standard_library();
  const Graph graph =
      test::residual_training(library, 2, "65536", "1024", "4096");
  const Plan plan =
      planned(graph, library, {.mesh = "dp=8", .pins = {"x=S(0)", "gy=S(0)"}});
  CHECK(plan.status == PlanStatus::kOptimal);
  for (const PlannedValue& value : plan.values) {
    if (value.kind == InputKind::kParameter) {
      CHECK(to_string(value.tensor.layout) == "R");
    }
  }
  CHECK(count(plan, CollectiveKind::kAllReduce) == 4);
  CHECK(plan.copies.size() == 4);
}

TEST_CASE("little memory: state sharded, parameters gathered, then twice") {
  const OpLibrary& library = testing::standard_library();
  const Graph graph =
      test::residual_training(library, 4, "65536", "4096", "16384");
  const Wish wish{.mesh = "dp=8",
                  .pins = {"x=S(0)", "gy=S(0)"},
                  .optimizer = Optimizer::kAdamW};
  const Plan free = planned(graph, library, wish);
  bool sharded = false;
  bool twice = false;
  std::int64_t last = *free.objective_nanoseconds;
  for (int percent = 80; percent >= 20; percent -= 5) {
    CAPTURE(percent);
    Wish tight = wish;
    tight.memory_limit = free.memory.peak_bytes * percent / 100;
    const Plan plan = planned(graph, library, tight);
    if (!plan.has_plan()) break;
    CHECK(*plan.objective_nanoseconds >= last);
    last = plan.lower_bound_nanoseconds;
    for (int block = 0; block < 4; ++block) {
      const std::string n = std::to_string(block);
      for (const std::string w : {"w1", "w2"}) {
        std::string name = "net.";
        name.append(w).append("_").append(n);
        std::string view = w;
        view.append("t").append(n);
        if (layout_of(plan, name) == "R") continue;
        const std::int64_t forward = gathers(plan, name, view, Phase::kForward);
        const std::int64_t backward =
            gathers(plan, name, view, Phase::kBackward);
        CHECK(forward <= 1);
        CHECK(backward <= 1);
        sharded = sharded || forward == 1;
        twice = twice || forward + backward == 2;
      }
    }
  }
  CHECK(sharded);
  CHECK(twice);
}

TEST_CASE("the optimizer's state may be sharded where parameters are not") {
  const OpLibrary& library = testing::standard_library();
  const Graph graph =
      test::residual_training(library, 2, "65536", "1024", "4096");
  const Plan plan = planned(graph, library,
                            {.mesh = "dp=8",
                             .pins = {"x=S(0)", "gy=S(0)", "net.w*=R"},
                             .optimizer = Optimizer::kAdamW});
  // Pinned parameters keep their state with them; left free, it may be split.
  for (const PlannedValue& value : plan.values) CHECK(!value.state_layout);
  const Plan free = planned(graph, library,
                            {.mesh = "dp=8",
                             .pins = {"x=S(0)", "gy=S(0)"},
                             .optimizer = Optimizer::kAdamW});
  CHECK(*free.objective_nanoseconds <= *plan.objective_nanoseconds);
  // The memory limit fits the replicated parameters, but not their replicated
  // optimizer state.
  const Plan tight = planned(graph, library,
                             {.mesh = "dp=8",
                              .pins = {"x=S(0)", "gy=S(0)"},
                              .optimizer = Optimizer::kAdamW,
                              .memory_limit = plan.memory.peak_bytes -
                                              plan.memory.optimizer_bytes / 2});
  CHECK(tight.status != PlanStatus::kInfeasible);
  CHECK(tight.memory.optimizer_bytes < plan.memory.optimizer_bytes);
  CHECK(std::any_of(tight.values.begin(), tight.values.end(),
                    [](const PlannedValue& value) {
                      return value.state_layout.has_value();
                    }));
}

TEST_CASE("a conflict names exactly the pins and the limit that contradict") {
  const OpLibrary& library = testing::standard_library();
  const Graph graph =
      test::residual_training(library, 2, "512", "1024", "4096");
  // Four matrices of 8 MiB and their gradients, replicated: 64 MiB.
  const Plan plan = planned(graph, library,
                            {.mesh = "dp=8",
                             .pins = {"net.w1_*=R", "net.w2_*=R", "x=S(0)"},
                             .memory_limit = std::int64_t{48} << 20});
  CHECK(plan.status == PlanStatus::kInfeasible);
  CHECK(plan.conflict.irreducible);
  CHECK(plan.conflict.pins ==
        std::vector<Pin>{value_of(Pin::parse("net.w1_*=R")),
                         value_of(Pin::parse("net.w2_*=R"))});
  REQUIRE(plan.conflict.memory.size() == 1);
  CHECK(plan.conflict.memory[0].bytes_short > 0);
  CHECK(plan.conflict.memory[0].bytes_short < std::int64_t{32} << 20);
}

}  // namespace
}  // namespace shardprop
